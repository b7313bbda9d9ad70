//! Changes to the files and words that the next boot reads.

use std::path::Path;

use super::{
    Inputs, NextBoot, command_line,
    entry::{Edit, File, Kind, Place},
    files::Budget,
};
use crate::{linux::transparent_hugepage, shell};

/// Pages of this size and larger are better set on the kernel command line, because a running
/// kernel rarely finds contiguous memory for them.
const GIGANTIC: u64 = 1 << 30;

/// The directory for sysctl files of the administrator.
pub(super) const SYSCTL: &str = "/etc/sysctl.d";
/// The directory for tmpfiles.d files of the administrator.
pub(super) const TMPFILES: &str = "/etc/tmpfiles.d";

impl NextBoot {
    /// Returns the change after which the next boot sets up this number of pages.
    ///
    /// `None`: the number is set already; `/etc` does not survive a reboot; the kernel has no such
    /// size; or something unknown might override the change.
    pub fn set_pages(&self, page_bytes: u64, default: u64, pages: u64) -> Option<Edit> {
        let is_set = |next: &Self| {
            let set = next
                .pages(page_bytes, default)
                .map_or(0, |request| request.pages);
            set == pages && !next.is_unknown(page_bytes, default)
        };
        let now = self
            .pages(page_bytes, default)
            .map(|request| &request.place);
        let on_line = now.filter(|place| place.file == super::entry::COMMAND_LINE);
        let is_default = page_bytes == self.default_size(default);
        let candidates = if is_default && !(on_line.is_some() && page_bytes >= GIGANTIC) {
            self.edits(SYSCTL, now, &format!("vm.nr_hugepages = {pages}"))
        } else {
            let old = on_line.map_or("", |place| &place.text);
            let size = match old.rsplit_once(' ') {
                Some((size, _)) => format!("{size} "),
                None if old.is_empty() => format!("hugepagesz={} ", as_word(page_bytes)),
                None => String::new(),
            };
            let line = self.inputs.command_line.as_deref()?;
            vec![Edit::CommandLine {
                new: format!("{size}hugepages={pages}"),
                instead_of: old.split_whitespace().map(str::to_owned).collect(),
                at_end: old.is_empty() && line.contains("hugepages"),
            }]
        };
        self.first(candidates, is_set)
    }

    /// Returns the change that keeps `vm.KEY = value` over a reboot, for the keys of
    /// [`NextBoot::vm`]. `None`: as for [`NextBoot::set_pages`].
    pub fn set_vm(&self, key: &str, value: u64) -> Option<Edit> {
        let is_set = |next: &Self| next.vm(key).is_some_and(|set| set.0 == value);
        let now = self.vm.iter().rfind(|set| set.0 == key).map(|set| &set.2);
        self.first(
            self.edits(SYSCTL, now, &format!("vm.{key} = {value}")),
            is_set,
        )
    }

    /// Returns the change that keeps the mode of a file below
    /// `/sys/kernel/mm/transparent_hugepage`, such as `enabled` or `hugepages-64kB/enabled`, over a
    /// reboot: a line of tmpfiles.d, or a word on the command line of a machine without systemd.
    /// `None`: as for [`NextBoot::set_pages`].
    pub fn set_thp(&self, file: &str, mode: &str) -> Option<Edit> {
        let is_set = |next: &Self| next.thp(file).is_some_and(|set| set.0 == mode);
        let now = self.thp(file).map(|set| set.1);
        let candidates = if self.inputs.has_systemd {
            let path = format!("{}/{file}", transparent_hugepage::DIRECTORY);
            self.edits(TMPFILES, now.as_ref(), &format!("w {path} - - - - {mode}"))
        } else {
            vec![Edit::CommandLine {
                new: format!("{}={mode}", thp_word(file)?),
                instead_of: now.into_iter().map(|place| place.text).collect(),
                at_end: false,
            }]
        };
        self.first(candidates, is_set)
    }

    /// Returns the settings after a change.
    pub fn after(&self, edit: &Edit) -> Self {
        let mut inputs = Inputs::clone(&self.inputs);
        match edit {
            Edit::Replace { file, old, new } => {
                let is_it = |other: &&mut File| other.local.as_ref() == Some(file);
                for file in inputs.files.iter_mut().filter(is_it) {
                    let lines = file.lines.iter_mut().flatten();
                    for (_, line) in lines.filter(|(_, line)| line == old) {
                        new.clone_into(line);
                    }
                }
            }
            Edit::Append { file, line, .. } => inputs.append(file, line),
            Edit::CommandLine {
                new, instead_of, ..
            } => {
                if let Some(line) = &mut inputs.command_line {
                    *line = edited(line, instead_of, new);
                }
            }
        }
        Self::evaluate(inputs, self.is_kept)
    }

    fn first(&self, candidates: Vec<Edit>, is_set: impl Fn(&Self) -> bool) -> Option<Edit> {
        if !self.is_kept || is_set(self) {
            return None;
        }
        candidates
            .into_iter()
            .find(|edit| is_set(&self.after(edit)))
    }

    /// Returns candidates for a line: in place of the line that counts now, and in files that are
    /// read at different times.
    fn edits(&self, directory: &str, now: Option<&Place>, line: &str) -> Vec<Edit> {
        let files = self.inputs.files.iter();
        let files = files.filter(|file| file.directory() == Some(directory));
        let mut names = files.clone().rev().map(|file| str::from_utf8(&file.name));
        let last = names.find_map(Result::ok).unwrap_or_default();
        // An underscore sorts after the dot of `.conf`.
        let after_last = format!("{}_hugepages.conf", last.trim_end_matches(".conf"));
        let names = [
            "60-hugepages.conf",
            "zz-hugepages.conf",
            &after_last,
            "00-hugepages.conf",
        ];
        let appended = names.into_iter().filter_map(|name| {
            let file = format!("{directory}/{name}");
            // A new file would hide files with its name in other directories.
            let mut others = files.clone().filter(|other| other.name == name.as_bytes());
            let is_ours = |other: &File| other.local.as_ref() == Some(&file) && other.is_complete;
            let is_open = others.all(is_ours) && shell::quoted(name).is_some();
            is_open.then(|| Edit::Append {
                file,
                line: line.to_owned(),
                makes_directory: !self.inputs.directories.iter().any(|d| d == directory),
            })
        });
        let in_place = now.and_then(|place| self.in_place_of(place, line));
        in_place.into_iter().chain(appended).collect()
    }

    fn in_place_of(&self, place: &Place, line: &str) -> Option<Edit> {
        let mut files = self.inputs.files.iter();
        let file = files.find(|file| file.path == place.file)?;
        let mut lines = file.lines.iter().flatten();
        let (_, old) = lines.find(|(number, _)| *number == place.line)?;
        let is_plain = old.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~'));
        is_plain.then_some(Edit::Replace {
            file: file.local.clone()?,
            old: old.clone(),
            new: line.to_owned(),
        })
    }
}

impl File {
    /// The directory of the administrator for files of this kind.
    fn directory(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Sysctl => Some(SYSCTL),
            Kind::Tmpfiles => Some(TMPFILES),
            Kind::SysctlConf | Kind::Other => None,
        }
    }
}

impl Inputs {
    fn append(&mut self, path: &str, line: &str) {
        let is_it = |file: &File| file.local.as_deref() == Some(path);
        let at = self.files.iter().position(is_it).unwrap_or_else(|| {
            let new = Budget::default().file(Path::new(path), Some(path.to_owned()), Ok(b""));
            self.directories.extend(new.directory().map(str::to_owned));
            let is_before = |file: &File| (file.kind, &file.name) < (new.kind, &new.name);
            let at = self.files.iter().take_while(|file| is_before(file)).count();
            self.files.insert(at, new);
            at
        });
        let file = &mut self.files[at];
        file.line_count += 1;
        if let Ok(lines) = &mut file.lines {
            lines.push((file.line_count, line.to_owned()));
        }
    }
}

/// The word for a file below `/sys/kernel/mm/transparent_hugepage`
/// (Documentation/admin-guide/mm/transhuge.rst).
pub(super) fn thp_word(file: &str) -> Option<&'static str> {
    match file {
        "enabled" => Some("transparent_hugepage"),
        "shmem_enabled" => Some("transparent_hugepage_shmem"),
        _ => None,
    }
}

/// Returns the command line after [`Edit::CommandLine`].
fn edited(line: &str, instead_of: &[String], new: &str) -> String {
    let mut words = command_line::split(line);
    let end = words.iter().position(|word| *word == "--");
    let mut at = end.unwrap_or(words.len());
    let mut from = 0;
    for old in instead_of {
        if let Some(found) = words[from..].iter().position(|word| word == old) {
            from += found;
            words.remove(from);
            at = at.min(from);
        }
    }
    words.insert(at, new);
    words.join(" ")
}

/// Formats a page size for the kernel command line.
fn as_word(page_bytes: u64) -> String {
    match page_bytes {
        bytes if bytes.is_multiple_of(1 << 30) => format!("{}G", bytes >> 30),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes => format!("{}K", bytes >> 10),
    }
}
