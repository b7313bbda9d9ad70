//! A process and its children: a server, seen by the kernel.

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

/// The numbers of `parent` and its children, in order.
///
/// From `/proc/PARENT/task/PARENT/children` (`CONFIG_PROC_CHILDREN`), else from the parents of all
/// processes of the host. That file can miss a child while another ends (proc(5)): numbers that the
/// caller knows otherwise are added. A number promises nothing; ask [`member`].
/// `check_for_interrupts` is called for each process of the host that is looked at, so that a
/// caller can stop.
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

/// Whether `parent` is the number that this process's parent has in this `/proc`; that of this
/// process itself will do, too.
///
/// Where `/proc` is of another PID namespace, the PID means another process.
pub fn is_ours(root: &Root, parent: u32) -> Result<bool, ReadError> {
    let this = stat::read(&Process::this(root)?, &mut Vec::new())?;
    if parent != std::process::id() {
        return Ok(this.parent == parent);
    }
    let born = |stat: &Stat| (stat.parent, stat.start_ticks);
    let numbered = absent_or(open(root, parent, &mut Vec::new()))?;
    Ok(numbered.is_ok_and(|(_, stat)| born(&stat) == born(&this)))
}

/// PIDs, each followed by a blank. Words that are not a PID are skipped.
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

/// The process of that number, if it is `parent` or a child of it; `None` if it isn't, or has
/// ended.
///
/// The check goes through the opened directory, so that what is read from it afterwards is of the
/// same process, even if its PID has been reused.
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
