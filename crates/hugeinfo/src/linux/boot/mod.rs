//! Huge pages that the next boot asks for: on the kernel's command line, in sysctl's files after
//! it, and in systemd's tmpfiles.d (Documentation/admin-guide/mm/hugetlbpage.rst; sysctl.d(5);
//! tmpfiles.d(5)).
//!
//! The next command line is taken to be the one that runs. What an initrd sets, credentials of
//! systemd, services such as tuned, and scripts are not looked at.

mod arguments;
mod cma;
mod command_line;
mod drop_ins;
mod edit;
mod glob;
mod hugetlb;
mod kernel;
mod number;
mod of_host;
mod request;
mod sysctl_conf;
mod tmpfiles;

use std::{collections::TryReserveError, sync::Arc};

use crate::linux::{
    error::{Absent, ReadError, fact},
    growth::TryPush,
    root::Root,
};

pub use drop_ins::{Content, DropIn, DropIns, Openness};
pub use edit::Edit;
pub use hugetlb::{CommandLine, parse_command_line};
pub use kernel::Kernel;
pub use request::{Asked, Doubt, Doubtful, Dropped, Phase, Place, Requests, What, Why};
pub use sysctl_conf::combine as combine_sysctl;
pub use tmpfiles::combine as combine_tmpfiles;

const COMMAND_LINE: &str = "/proc/cmdline";
/// What `sysctl --system` reads last, and systemd not at all: distributions link to it from a
/// directory, or do without it (Debian 13).
const SYSCTL_CONF: &str = "/etc/sysctl.conf";
/// There where systemd starts the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// What the next boot reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// What reads the command line.
    pub kernel: Kernel,
    /// The kernel's command line.
    pub command_line: Result<Vec<u8>, Absent>,
    /// The files of sysctl.
    pub sysctl: DropIns,
    /// The files of systemd-tmpfiles. `None`: systemd does not start this machine.
    pub tmpfiles: Option<DropIns>,
}

/// All that asks for huge pages at the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextBoot {
    /// Where it stands. Machines are copied for each step that is tried.
    pub sources: Arc<Sources>,
    /// `default_hugepagesz=`, where it is valid. Else the default size is the kernel's own.
    pub default_bytes: Option<u64>,
    /// What is carried out, in its order. Of two requests for one pool the later one counts.
    pub asked: Vec<Asked>,
    /// What is not, and why.
    pub dropped: Vec<Dropped>,
    /// Unknown things that may change it.
    pub doubts: Vec<Doubt>,
}

impl Sources {
    /// Errors: absent if neither the kernel's command line nor any file of sysctl's is to be
    /// had, or these are not the host's.
    pub fn read(root: &Root) -> Result<Result<Self, Absent>, ReadError> {
        let etc = match of_host::look(root)? {
            Ok(etc) => etc,
            Err(absent) => return Ok(Err(absent)),
        };
        let kernel = Kernel::read(root)?;
        let command_line = fact(root.read_filled(COMMAND_LINE))?;
        let has_systemd = fact(root.names(SYSTEMD))?.is_ok();
        let mut sysctl = drop_ins::read(root, "sysctl.d")?;
        if !has_systemd {
            let conf = drop_ins::read_file(root, SYSCTL_CONF.as_ref(), u64::MAX)?;
            // One that is not there is read as an empty one.
            if conf.text() != b"" || !conf.is_read() {
                sysctl.files.try_push(conf)?;
            }
        }
        let nothing_seen = sysctl.files.is_empty() && sysctl.unread.is_empty();
        if let (Err(absent), true) = (&command_line, nothing_seen) {
            return Ok(Err(absent.clone()));
        }
        sysctl.keep(|line| Ok(sysctl_conf::bears(line)))?;
        sysctl.respect_names();
        let mut tmpfiles = None;
        if has_systemd {
            let mut files = drop_ins::read(root, "tmpfiles.d")?;
            files.keep(|line| tmpfiles::bears(line, &kernel))?;
            files.respect_names();
            tmpfiles = Some(files);
        }
        if !etc.is_kept {
            sysctl.close();
            tmpfiles.iter_mut().for_each(DropIns::close);
        }
        Ok(Ok(Self {
            kernel,
            command_line,
            sysctl,
            tmpfiles,
        }))
    }

    fn line(&self) -> &[u8] {
        self.command_line.as_deref().unwrap_or_default()
    }
}

impl NextBoot {
    /// Errors: as [`Sources::read`].
    pub fn read(root: &Root) -> Result<Result<Self, Absent>, ReadError> {
        match Sources::read(root)? {
            Ok(sources) => Ok(Ok(Self::of(sources)?)),
            Err(absent) => Ok(Err(absent)),
        }
    }

    /// What these come to.
    pub fn of(sources: Sources) -> Result<Self, TryReserveError> {
        let mut doubts = Vec::new();
        // The kernel always has it: one that is missing or empty is hidden.
        if sources.command_line.is_err() {
            let (phase, of) = (Phase::CommandLine, What::Pages);
            doubt(&mut doubts, phase, of, COMMAND_LINE, Doubtful::Unread)?;
        }
        let of_line = parse_command_line(sources.line(), COMMAND_LINE, &sources.kernel)?;
        let (mut asked, mut dropped) = (of_line.asked, of_line.dropped);
        let arguments = arguments::parse(sources.line(), COMMAND_LINE, &sources.kernel)?;
        append(&mut asked, arguments.asked)?;
        append(&mut dropped, arguments.dropped)?;
        let by_sysctl = sysctl_conf::combine(&sources.sysctl)?;
        doubts_of_sysctl(&sources.sysctl, &by_sysctl.asked, &mut doubts)?;
        append(&mut asked, by_sysctl.asked)?;
        append(&mut dropped, by_sysctl.dropped)?;
        if let Some(files) = &sources.tmpfiles {
            let by_tmpfiles = tmpfiles::combine(files, &sources.kernel)?;
            append(&mut asked, by_tmpfiles.asked)?;
            append(&mut dropped, by_tmpfiles.dropped)?;
            append(&mut doubts, by_tmpfiles.doubts)?;
            // The first line of a path counts, and the last path of a file: any may change it.
            for (file, what) in unread(files) {
                for of in [What::Pages, What::Overcommit] {
                    doubt(&mut doubts, Phase::Tmpfiles, of, file, what)?;
                }
            }
        }
        Ok(Self {
            sources: Arc::new(sources),
            default_bytes: of_line.default_bytes,
            asked,
            dropped,
            doubts,
        })
    }

    /// What of `CommitLimit` sysctl's files set: the name below `/proc/sys/vm`, the value, where,
    /// in the order in which it is written.
    pub fn commit_limit(&self) -> Result<Vec<(&'static str, u64, Place)>, TryReserveError> {
        sysctl_conf::commit_limit(&self.sources.sysctl)
    }

    /// Whether each of sysctl's files that come after that one could be read.
    pub(crate) fn is_read_to_the_end_after(&self, path: &str) -> bool {
        let DropIns { files, unread, .. } = &self.sources.sysctl;
        let mut after = files.iter().rev().take_while(|file| file.path != path);
        unread.is_empty() && after.all(DropIn::is_read)
    }

    /// The default size of the next boot.
    pub fn default_size(&self) -> u64 {
        self.default_bytes
            .unwrap_or(self.sources.kernel.hpage_bytes)
    }
}

fn append<T>(all: &mut Vec<T>, more: Vec<T>) -> Result<(), TryReserveError> {
    all.try_reserve(more.len())?;
    all.extend(more);
    Ok(())
}

/// Returns the files and directories whose contents are unknown, with the reason.
fn unread(files: &DropIns) -> impl Iterator<Item = (&str, Doubtful)> {
    let of_files = files.files.iter().filter_map(|file| match file.content {
        Content::Text(_) => None,
        Content::Unread => Some((file.path.as_str(), Doubtful::Unread)),
        Content::TooLarge => Some((file.path.as_str(), Doubtful::TooLarge)),
    });
    let directories = files.unread.iter();
    of_files.chain(directories.map(|path| (path.as_str(), Doubtful::Unread)))
}

/// A file that cannot be read counts for nothing where a readable one after it sets the same key; a
/// pattern gives way to it wherever it lies.
fn doubts_of_sysctl(
    files: &DropIns,
    asked: &[Asked],
    doubts: &mut Vec<Doubt>,
) -> Result<(), TryReserveError> {
    let position = |path: &str| files.files.iter().position(|file| file.path == path);
    for of in [What::Pages, What::Overcommit] {
        let last = asked.iter().rev().find(|request| request.what == of);
        let last = last.filter(|request| !request.place.text.contains(['*', '?', '[']));
        let settled = last.and_then(|request| position(&request.place.file));
        for (file, what) in unread(files) {
            let is_settled = settled.zip(position(file)).is_some_and(|(by, at)| at < by);
            if !is_settled {
                doubt(doubts, Phase::Sysctl, of, file, what)?;
            }
        }
    }
    Ok(())
}

fn doubt(
    doubts: &mut Vec<Doubt>,
    phase: Phase,
    of: What,
    file: &str,
    what: Doubtful,
) -> Result<(), TryReserveError> {
    doubts.try_push(Doubt {
        phase,
        of,
        file: file.to_owned(),
        what,
    })
}
