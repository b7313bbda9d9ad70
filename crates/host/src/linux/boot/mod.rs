//! Huge pages that the next boot sets up: by the kernel command line and by sysctl.d(5)
//! (Documentation/admin-guide/mm/hugetlbpage.rst).
//!
//! The next boot is assumed to use the kernel command line and the default page size of the running
//! kernel. Other mechanisms such as tmpfiles.d, tuned and `hugetlb_cma=` are not simulated: each
//! file or word that might set a pool is [`Unknown`]. Units, an initrd and the credentials of
//! systemd are not examined.

mod command_line;
mod edit;
mod entry;
mod files;
mod host;
mod sysctl;
mod tmpfiles;

use std::{path::Path, sync::Arc};

pub use command_line::Kernel;
pub use entry::{Edit, Place, Request, Scope, Unknown, WhyUnknown, Words};
use entry::{File, Kind};
pub use host::is_etc_kept;

use crate::linux::{
    error::{Absent, ReadError, fact},
    hugepages, meminfo,
    root::Root,
};

/// This directory exists if systemd started the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// Settings of huge pages at the next boot. All sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextBoot {
    /// In the order in which they are applied. The last one for a pool determines it.
    pub requests: Vec<Request>,
    /// A line in `/etc/sysctl.conf` that sets the default pool and that systemd does not read,
    /// because no sysctl.d directory has a link to this file, as on Debian 13.
    pub not_read: Option<Request>,
    /// Files, lines and words that might change the number of persistent pages, except those that a
    /// later sysctl line overrides. See [`NextBoot::unknown_of`] for a single pool.
    pub unknown: Vec<Unknown>,
    /// False if changes in `/etc` do not survive a reboot, or if `/etc` is read-only.
    pub is_kept: bool,
    /// Other keys of sysctl.d that are understood, in the order in which they are written. Those
    /// that a later unreadable file might set are left out.
    vm: Vec<(&'static str, u64, Place)>,
    /// Shared, because the model copies machines for each step that it tries.
    inputs: Arc<Inputs>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    kernel: Kernel,
    /// `None`: unknown.
    command_line: Option<String>,
    has_systemd: bool,
    /// By kind and name.
    files: Vec<File>,
    /// The directories for drop-in files in `/etc` that exist.
    directories: Vec<String>,
}

impl NextBoot {
    /// Reads all sources of the running system.
    ///
    /// Errors: absent if `/etc` is not that of the host, as in a container, or if that is unknown;
    /// also if there is neither a kernel command line nor a configuration file.
    pub fn read(root: &Root) -> Result<Result<Self, Absent>, ReadError> {
        let names = fact(root.names(hugepages::DIRECTORY))?.ok();
        let size = |name: &String| hugepages::parse_name(name);
        let memory = fact(root.read_record("proc/meminfo"))?.unwrap_or_default();
        let memory = meminfo::parse(&memory).ok();
        let kernel = Kernel {
            sizes: names.map(|names| names.iter().filter_map(size).collect()),
            default_bytes: memory.and_then(|memory| memory.default_huge_page_bytes),
        };
        Self::read_for(root, kernel, is_etc_kept(root)?)
    }

    /// Like [`Self::read`], for callers that already have the page sizes and [`is_etc_kept`].
    pub fn read_for(
        root: &Root,
        kernel: Kernel,
        is_etc_kept: Result<bool, Absent>,
    ) -> Result<Result<Self, Absent>, ReadError> {
        let is_kept = match is_etc_kept {
            Ok(is_kept) => is_kept,
            Err(absent) => return Ok(Err(absent)),
        };
        // Containers and sandboxes hide the command line with an empty file.
        let command_line = fact(root.read_record(entry::COMMAND_LINE))?;
        let has_systemd = fact(root.names(SYSTEMD))?.is_ok();
        let files = files::read(root, has_systemd)?;
        if let (Err(absent), true) = (&command_line, files.is_empty()) {
            return Ok(Err(absent.clone()));
        }
        let exists = |path: &&str| root.path(path).is_dir();
        let line = command_line.map(|line| String::from_utf8_lossy(&line).into_owned());
        let inputs = Inputs {
            kernel,
            command_line: line.ok(),
            has_systemd,
            files,
            directories: existing(exists),
        };
        Ok(Ok(Self::evaluate(inputs, is_kept)))
    }

    /// Evaluates the texts of files, which are given with their absolute paths. The caller leaves
    /// hidden files out. `/etc/sysctl.conf` stands for a file without a link to it.
    pub fn parse(
        command_line: &str,
        texts: &[(&str, &str)],
        has_systemd: bool,
        kernel: Kernel,
    ) -> Self {
        let file = |(path, text): &(&str, &str)| {
            let local = path.starts_with("/etc/").then(|| (*path).to_owned());
            File::new(Path::new(path), local, Ok(text.as_bytes()))
        };
        let mut files: Vec<File> = texts.iter().map(file).collect();
        files.retain(|file| has_systemd || file.kind != Kind::Tmpfiles);
        files.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        let exists = |directory: &&str| texts.iter().any(|(path, _)| path.starts_with(directory));
        let inputs = Inputs {
            kernel,
            command_line: Some(command_line.to_owned()),
            has_systemd,
            files,
            directories: existing(exists),
        };
        Self::evaluate(inputs, true)
    }

    fn evaluate(inputs: Inputs, is_kept: bool) -> Self {
        let inputs = Arc::new(inputs);
        let mut next = Self {
            requests: Vec::new(),
            not_read: None,
            unknown: Vec::new(),
            is_kept,
            vm: Vec::new(),
            inputs: Arc::clone(&inputs),
        };
        match &inputs.command_line {
            Some(line) => command_line::evaluate(&mut next, line, &inputs.kernel),
            None => next.unknown.push(Unknown::new(
                entry::COMMAND_LINE,
                None,
                Scope::AnySize,
                WhyUnknown::Unreadable,
            )),
        }
        sysctl::evaluate(&mut next, &inputs);
        tmpfiles::evaluate(&mut next, &inputs);
        next
    }

    /// Returns the request that determines the number of persistent pages of this size. `default`
    /// is the default size of the kernel. `None`: nothing sets them, or that is unknown.
    pub fn pages(&self, page_bytes: u64, default: u64) -> Option<&Request> {
        let is_known = !self.is_unknown(page_bytes, default);
        self.last(page_bytes, default).filter(|_| is_known)
    }

    fn last(&self, page_bytes: u64, default: u64) -> Option<&Request> {
        let is_it = |request: &&Request| request.page_bytes.unwrap_or(default) == page_bytes;
        self.requests.iter().rfind(is_it)
    }

    /// True if something unknown might change the number of persistent pages of this size.
    pub fn is_unknown(&self, page_bytes: u64, default: u64) -> bool {
        self.unknown_of(page_bytes, default).next().is_some()
    }

    /// Returns everything unknown that might change the number of persistent pages of this size.
    pub fn unknown_of(&self, page_bytes: u64, default: u64) -> impl Iterator<Item = &Unknown> {
        let is_default = page_bytes == default;
        let request = self.last(page_bytes, default);
        // sysctl.d is read after the kernel command line.
        let overrides_line = request.is_some_and(|r| r.place.file != entry::COMMAND_LINE);
        self.unknown.iter().filter(move |unknown| {
            let is_affected = match unknown.scope {
                Scope::AnySize => true,
                Scope::DefaultSize => is_default,
                Scope::Size(bytes) => bytes == page_bytes,
            };
            is_affected && !(overrides_line && unknown.file == entry::COMMAND_LINE)
        })
    }

    /// Returns the value of `vm.KEY` for `overcommit_memory`, `overcommit_ratio` and
    /// `overcommit_kbytes`. Setting one of the last two resets the other to 0. `None`: sysctl.d
    /// does not set it, or that is unknown because a file cannot be read.
    pub fn vm(&self, key: &str) -> Option<(u64, &Place)> {
        let is_limit = |key: &str| matches!(key, "overcommit_ratio" | "overcommit_kbytes");
        let is_same = |set: &&(&str, u64, Place)| set.0 == key || is_limit(set.0) && is_limit(key);
        let (last, value, place) = self.vm.iter().rfind(is_same)?;
        Some((if *last == key { *value } else { 0 }, place))
    }
}

fn existing(exists: impl Fn(&&str) -> bool) -> Vec<String> {
    let all = [edit::SYSCTL, edit::TMPFILES].into_iter();
    all.filter(exists).map(str::to_owned).collect()
}
