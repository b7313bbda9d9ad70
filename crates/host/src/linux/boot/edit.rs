//! Changes to the files that the next boot reads, and words for the kernel command line.

use std::path::Path;

use super::{
    Inputs, NextBoot, command_line,
    entry::{COMMAND_LINE, Edit, File, Kind, Place, Request, Words},
    tmpfiles,
};
use crate::linux::transparent_hugepage;

/// Pages of this size and larger stay on the kernel command line, because a running kernel rarely
/// finds contiguous memory for them.
const GIGANTIC: u64 = 1 << 30;

/// The longest line that is replaced.
const LONGEST: usize = 1000;

/// The directory for sysctl files of the administrator.
pub(super) const SYSCTL: &str = "/etc/sysctl.d";
/// The directory for tmpfiles.d files of the administrator.
pub(super) const TMPFILES: &str = "/etc/tmpfiles.d";

impl NextBoot {
    /// Returns the change after which the next boot sets up this number of pages.
    ///
    /// `None`: the number is set already; `/etc` does not survive a reboot; something unknown might
    /// override the change; or only the kernel command line can set it, see
    /// [`NextBoot::words_for_pages`].
    pub fn set_pages(&self, page_bytes: u64, default: u64, pages: u64) -> Option<Edit> {
        if self.needs_words(page_bytes, default) {
            return None;
        }
        let set = |next: &Self| next.pages(page_bytes, default).map(|r| r.pages);
        let now = self.last(page_bytes, default).map(|r| &r.place);
        let candidates = self.edits(SYSCTL, now, &format!("vm.nr_hugepages = {pages}"));
        self.first(candidates, |next| set(next) == Some(pages))
    }

    /// Returns the words on the kernel command line that set this number of pages, and the settings
    /// with these words.
    ///
    /// `None`: the number is set already; sysctl.d can set it, see [`NextBoot::set_pages`]; the
    /// kernel has no such size; or the effect of the words is unknown.
    pub fn words_for_pages(
        &self,
        page_bytes: u64,
        default: u64,
        pages: u64,
    ) -> Option<(Words, Self)> {
        let line = self.inputs.command_line.as_deref()?;
        let is_unknown = self.is_unknown(page_bytes, default);
        if is_unknown || !self.is_kept || !self.needs_words(page_bytes, default) {
            return None;
        }
        let is_it = |request: &Request| request.page_bytes == Some(page_bytes);
        if let Some(at) = self.requests.iter().position(is_it) {
            let mut after = self.clone();
            let request = &mut after.requests[at];
            let old = request.place.text.clone();
            let size = old.rsplit_once(' ').map(|(size, _)| format!("{size} "));
            request.place.text = format!("{}hugepages={pages}", size.unwrap_or_default());
            let words = Words {
                new: request.place.text.clone(),
                instead_of: Some(old),
                at_end: false,
            };
            let before = std::mem::replace(&mut request.pages, pages);
            return (before != pages).then_some((words, after));
        }
        let new = format!("hugepagesz={} hugepages={pages}", as_word(page_bytes));
        let (line, words) = add_words(line, &new);
        let mut inputs = Inputs::clone(&self.inputs);
        inputs.command_line = Some(line);
        let after = Self::evaluate(inputs, self.is_kept);
        after.pages(page_bytes, default)?;
        Some((words, after))
    }

    /// True if only the kernel command line can set the number of pages, or does it better.
    fn needs_words(&self, page_bytes: u64, default: u64) -> bool {
        let now = self.last(page_bytes, default);
        page_bytes != default
            || page_bytes >= GIGANTIC && now.is_some_and(|r| r.place.file == COMMAND_LINE)
    }

    /// Returns the change that keeps `vm.KEY = value` over a reboot, for the keys of
    /// [`NextBoot::vm`]. `None`: as for [`NextBoot::set_pages`].
    pub fn set_vm(&self, key: &str, value: u64) -> Option<Edit> {
        let is_set = |next: &Self| next.vm(key).is_some_and(|set| set.0 == value);
        let now = self.vm.iter().rfind(|set| set.0 == key).map(|set| &set.2);
        let candidates = self.edits(SYSCTL, now, &format!("vm.{key} = {value}"));
        self.first(candidates, is_set)
    }

    /// Returns the line of tmpfiles.d that keeps the mode of a file below
    /// `/sys/kernel/mm/transparent_hugepage`, such as `enabled` or `hugepages-64kB/enabled`, over a
    /// reboot. `None`: as for [`NextBoot::set_pages`], or systemd did not start this machine.
    pub fn set_thp(&self, file: &str, mode: &str) -> Option<Edit> {
        if !self.inputs.has_systemd {
            return None;
        }
        let now = tmpfiles::mode(&self.inputs.files, file).ok()?;
        let path = format!("{}/{file}", transparent_hugepage::DIRECTORY);
        let line = format!("w {path} - - - - {mode}");
        let candidates = self.edits(TMPFILES, now.as_ref().map(|set| &set.1), &line);
        self.first(candidates, |next| next.thp(file).as_deref() == Some(mode))
    }

    /// Returns the word on the kernel command line that does the same where systemd did not start
    /// the machine. `None`: the line has it, the file has no word, or the line is unknown.
    pub fn words_for_thp(&self, file: &str, mode: &str) -> Option<Words> {
        let line = self.inputs.command_line.as_deref()?;
        let name = thp_word(file)?;
        if !self.is_kept || self.inputs.has_systemd {
            return None;
        }
        let new = format!("{name}={mode}");
        match command_line::value(line, name) {
            Some((value, _)) if value == mode => None,
            Some((_, place)) => Some(Words {
                new,
                instead_of: Some(place.text),
                at_end: false,
            }),
            None => Some(add_words(line, &new).1),
        }
    }

    /// Returns the mode that is set for a file below `/sys/kernel/mm/transparent_hugepage`: by
    /// tmpfiles.d, or else by the kernel command line. `None`: it is not set, or that is unknown.
    pub fn thp(&self, file: &str) -> Option<String> {
        let line = || command_line::value(self.inputs.command_line.as_deref()?, thp_word(file)?);
        let set = tmpfiles::mode(&self.inputs.files, file).ok()?;
        set.or_else(line).map(|(mode, _)| mode)
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
        let appended = [
            "60-hugepages.conf",
            "zz-hugepages.conf",
            "00-hugepages.conf",
        ]
        .into_iter()
        .filter_map(|name| {
            let file = format!("{directory}/{name}");
            // A new file would hide files with its name in other directories.
            let is_open = self
                .inputs
                .files
                .iter()
                .filter(|other| {
                    other.directory() == Some(directory) && other.name == name.as_bytes()
                })
                .all(|other| other.local.as_ref() == Some(&file) && other.is_complete);
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
        let is_plain =
            old.len() <= LONGEST && old.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~'));
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
            let new = File::new(Path::new(path), Some(path.to_owned()), Ok(b""));
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

/// Adds words to a kernel command line, before the word `--`, because later words are arguments of
/// the first process.
fn add_words(line: &str, new: &str) -> (String, Words) {
    let is_end = |at: &usize| {
        let (before, after) = (&line[..*at], &line[*at + 2..]);
        let is_blank = |c: char| c.is_ascii_whitespace();
        before.chars().next_back().is_none_or(is_blank) && after.chars().next().is_none_or(is_blank)
    };
    let end = line.match_indices("--").map(|(at, _)| at).find(is_end);
    let after = match end {
        Some(at) => format!("{}{new} {}", &line[..at], &line[at..]),
        None => format!("{line} {new}"),
    };
    let words = Words {
        new: end.map_or_else(|| new.to_owned(), |_| format!("{new} --")),
        instead_of: end.map(|_| "--".to_owned()),
        at_end: end.is_none() && line.contains("hugepages"),
    };
    (after, words)
}

/// The word for a file below `/sys/kernel/mm/transparent_hugepage`
/// (Documentation/admin-guide/mm/transhuge.rst). The advice never changes `shmem_enabled`, which
/// has words, too.
fn thp_word(file: &str) -> Option<&'static str> {
    (file == "enabled").then_some("transparent_hugepage")
}

/// Formats a page size for the kernel command line.
fn as_word(page_bytes: u64) -> String {
    match page_bytes {
        bytes if bytes.is_multiple_of(1 << 30) => format!("{}G", bytes >> 30),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes => format!("{}K", bytes >> 10),
    }
}
