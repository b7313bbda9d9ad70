//! A process and its children, such as all processes of a server.

use crate::linux::{
    error::{ReadError, absent_or},
    growth::{TryPush, try_collect},
    process::{
        Process,
        stat::{self, Stat},
    },
    root::Root,
    text::{parse_number, words},
};

/// PIDs of `parent` and its children, in order.
///
/// Reads `/proc/PARENT/task/PARENT/children` (`CONFIG_PROC_CHILDREN`), or else the parents of all
/// processes of the host. The file can miss a child while another one exits (proc(5)), so PIDs that
/// the caller knows are added. A PID can be reused meanwhile: check it with [`member`].
/// `check_for_interrupts` is called for each process of the host that is read, so that a caller can
/// stop.
pub fn pids(
    root: &Root,
    parent: u32,
    known: impl IntoIterator<Item = u32>,
    check_for_interrupts: impl FnMut(),
) -> Result<Vec<u32>, ReadError> {
    let path = format!("proc/{parent}/task/{parent}/children");
    let mut pids = match absent_or(root.read(&path))? {
        Ok(bytes) => try_collect(parse_children(&bytes).map(Ok::<_, ReadError>))?,
        Err(_) => pids_by_parent(root, parent, check_for_interrupts)?,
    };
    pids.try_push(parent)?;
    for pid in known {
        pids.try_push(pid)?;
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// True if `parent` is the PID of this process or of its parent in this `/proc`.
///
/// If `/proc` is of another PID namespace, the PID means another process.
pub fn is_ours(root: &Root, parent: u32) -> Result<bool, ReadError> {
    let this = stat::read(&Process::this(root)?, &mut Vec::new())?;
    if parent != std::process::id() {
        return Ok(this.parent == parent);
    }
    let born = |stat: &Stat| (stat.parent, stat.start_ticks);
    let numbered = absent_or(open(root, parent, &mut Vec::new()))?;
    Ok(numbered.is_ok_and(|(_, stat)| born(&stat) == born(&this)))
}

/// Parses PIDs separated by blanks. Other words are skipped.
pub fn parse_children(bytes: &[u8]) -> impl Iterator<Item = u32> {
    words(bytes).filter_map(|word| u32::try_from(parse_number(word)?).ok())
}

fn pids_by_parent(
    root: &Root,
    parent: u32,
    mut check_for_interrupts: impl FnMut(),
) -> Result<Vec<u32>, ReadError> {
    let mut buffer = Vec::new();
    let mut pids = Vec::new();
    for pid in Process::numbers(root)? {
        check_for_interrupts();
        if absent_or(open(root, pid, &mut buffer))?.is_ok_and(|(_, stat)| stat.parent == parent) {
            pids.try_push(pid)?;
        }
    }
    Ok(pids)
}

/// Opens the process with this PID, if it is `parent` or a child of it. `None`: it is not, or it
/// has ended.
///
/// The check uses the opened directory, so later reads are from the same process, even if its PID
/// is reused.
pub fn member(
    root: &Root,
    parent: u32,
    pid: u32,
    buffer: &mut Vec<u8>,
) -> Result<Option<(Process, Stat)>, ReadError> {
    let opened = absent_or(open(root, pid, buffer))?.ok();
    Ok(opened.filter(|(_, stat)| pid == parent || stat.parent == parent))
}

fn open(root: &Root, pid: u32, buffer: &mut Vec<u8>) -> Result<(Process, Stat), ReadError> {
    let process = Process::open(root, pid)?;
    let stat = stat::read(&process, buffer)?;
    Ok((process, stat))
}
