//! What people can change so that the next boot sets up another number, and what it then reads.

use std::collections::TryReserveError;

use super::{
    NextBoot, SYSCTL_CONF, Sources,
    command_line::{Parameter, edited, parameters},
    drop_ins::{Content, DropIn, DropIns, Openness},
    glob,
    hugetlb::WORDS,
    request::{Asked, Phase, Place, What},
};
use crate::linux::{hugepages, text::lines};

/// One change. Below `/etc` alone: what lies elsewhere belongs to packages, or is gone after a
/// boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// A line in place of each line of a file that reads exactly so.
    Replace {
        /// The file, where all links are followed.
        file: String,
        /// What a line has to read: printable ASCII and tabs.
        old: String,
        /// What it then reads.
        new: String,
    },
    /// A line at the end of a file, which may be missing.
    Append {
        /// The file.
        file: String,
        /// The line.
        line: String,
        /// Whether its directory is missing, too.
        makes_directory: bool,
    },
    /// Words of the kernel's command line.
    Words {
        /// In place of these. None: at the end.
        old: Vec<String>,
        /// Those that are written.
        new: String,
        /// Whether they would say something else elsewhere on the line.
        position_matters: bool,
    },
}

impl NextBoot {
    /// The next boot after that change.
    pub fn with(&self, edit: &Edit) -> Result<Self, TryReserveError> {
        let mut sources = Sources::clone(&self.sources);
        for files in std::iter::once(&mut sources.sysctl).chain(&mut sources.tmpfiles) {
            match edit {
                Edit::Replace { file, old, new } => files.replace(file, old, new),
                Edit::Append { file, line, .. } => files.append(file, line),
                Edit::Words { .. } => {}
            }
        }
        if let (Edit::Words { old, new, .. }, Ok(line)) = (edit, &mut sources.command_line) {
            *line = edited(line, old, new);
        }
        Self::of(sources)
    }

    /// Lines of sysctl's for `vm.NAME = value`, most welcome first. Not each of them has the last
    /// word. `now` are the lines that set it, or something that it competes with, in their order.
    pub(crate) fn edits_of_sysctl<'p>(
        &self,
        name: &str,
        value: u64,
        now: impl DoubleEndedIterator<Item = &'p Place>,
    ) -> Vec<Edit> {
        let line = format!("vm.{name} = {value}");
        self.sources.sysctl.edits(&line, now)
    }

    /// The same for the pool of the default size.
    pub(crate) fn edits_of_default_pool(&self, pages: u64) -> Vec<Edit> {
        let now = self.asked.iter().filter(|a| {
            a.phase == Phase::Sysctl && a.what == What::Pages && a.page_bytes.is_none()
        });
        self.edits_of_sysctl("nr_hugepages", pages, now.map(|asked| &asked.place))
    }

    /// The same in systemd's tmpfiles.d. None where systemd does not start this machine.
    pub(crate) fn edits_of_tmpfiles(&self, page_bytes: u64, pages: u64) -> Vec<Edit> {
        let Some(files) = &self.sources.tmpfiles else {
            return Vec::new();
        };
        let now = self.asked.iter().filter(|a| {
            a.phase == Phase::Tmpfiles && a.what == What::Pages && self.is_of(a, page_bytes)
        });
        let pool = hugepages::directory(page_bytes);
        let line = format!("w {pool}/nr_hugepages - - - - {pages}");
        files.edits(&line, now.map(|asked| &asked.place))
    }

    /// The same on the kernel's command line.
    pub(crate) fn edits_of_command_line(&self, page_bytes: u64, pages: u64) -> Vec<Edit> {
        let now = self.asked.iter().filter(|a| {
            let is_word = a.phase == Phase::CommandLine && a.what != What::Overcommit;
            is_word && self.is_of(a, page_bytes)
        });
        let mut old: Vec<String> = now.map(|asked| asked.place.text.clone()).collect();
        old.dedup();
        if !old.is_empty() {
            return vec![Edit::Words {
                old,
                new: format!("hugepages={pages}"),
                position_matters: false,
            }];
        }
        let new = format!("hugepagesz={} hugepages={pages}", as_parameter(page_bytes));
        let is_about_pools = |p: Parameter<'_>| WORDS.iter().any(|name| p.is(name));
        vec![Edit::Words {
            old,
            new,
            position_matters: parameters(self.sources.line()).any(is_about_pools),
        }]
    }

    fn is_of(&self, asked: &Asked, page_bytes: u64) -> bool {
        asked.page_bytes.unwrap_or(self.default_size()) == page_bytes
    }
}

impl DropIns {
    /// Only the last lines that set the pool are candidates, because a later line overrides earlier
    /// ones.
    fn edits<'p>(&self, line: &str, now: impl DoubleEndedIterator<Item = &'p Place>) -> Vec<Edit> {
        /// Maximum number of candidates, because each is simulated.
        const MOST: usize = 4;
        let last = now.rev().take(MOST);
        let in_place = last.filter_map(|place| self.in_place_of(place, line));
        let names = match self.is_open {
            Openness::Closed => Vec::new(),
            Openness::There | Openness::Missing => self.names(),
        };
        let appended = names.into_iter().map(|name| Edit::Append {
            file: format!("{}/{name}", self.directory),
            line: line.to_owned(),
            makes_directory: self.is_open == Openness::Missing,
        });
        in_place.chain(appended).collect()
    }

    /// A pattern may set more than pools.
    fn in_place_of(&self, place: &Place, line: &str) -> Option<Edit> {
        let drop_in = self.files.iter().find(|file| file.path == place.file)?;
        let old = lines(drop_in.text()).find(|(number, _)| *number == place.line)?;
        let old = str::from_utf8(old.1).ok()?;
        let is_plain = old.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~'));
        (is_plain && !glob::is_pattern(old.as_bytes())).then_some(Edit::Replace {
            file: drop_in.local.clone()?,
            old: old.to_owned(),
            new: line.to_owned(),
        })
    }

    /// Of files that a line can be appended to: before all others, where it usually is, and after
    /// all others.
    fn names(&self) -> Vec<String> {
        let last = self.files.iter().filter(|file| file.path != SYSCTL_CONF);
        let last = last.map(DropIn::name).max().unwrap_or_default();
        // An underscore comes after the dot of `.conf`.
        let after = last.strip_suffix(".conf").unwrap_or(last);
        let names = [
            "hugepages.conf".to_owned(),
            "zz-hugepages.conf".to_owned(),
            format!("{after}_hugepages.conf"),
            "00-hugepages.conf".to_owned(),
        ];
        let is_open = |name: &String| {
            let mut others = self.files.iter().filter(|file| file.name() == name);
            others.all(DropIn::takes_lines)
        };
        names.into_iter().filter(is_open).collect()
    }

    fn replace(&mut self, file: &str, old: &str, new: &str) {
        for drop_in in &mut self.files {
            if drop_in.local.as_deref() != Some(file) {
                continue;
            }
            if let Content::Text(text) = &mut drop_in.content {
                let lines = text.split(|&b| b == b'\n').map(|line| {
                    let is_it = line == old.as_bytes();
                    if is_it { new.as_bytes() } else { line }
                });
                *text = lines.collect::<Vec<_>>().join(&b'\n');
            }
        }
    }

    fn append(&mut self, file: &str, line: &str) {
        let Some((directory, name)) = file.rsplit_once('/') else {
            return;
        };
        if directory != self.directory {
            return;
        }
        let line = format!("{line}\n").into_bytes();
        self.is_open = Openness::There;
        let there = self.files.iter_mut().find(|drop_in| drop_in.path == file);
        if let Some(drop_in) = there {
            if let Content::Text(text) = &mut drop_in.content {
                text.extend_from_slice(&line);
            }
            return;
        }
        let comes_later = |other: &DropIn| other.path == SYSCTL_CONF || other.name() > name;
        let at = self.files.iter().position(comes_later);
        let at = at.unwrap_or(self.files.len());
        let new = DropIn {
            path: file.to_owned(),
            local: Some(file.to_owned()),
            content: Content::Text(line),
        };
        self.files.insert(at, new);
    }
}

impl DropIn {
    /// One of ours: what is kept of a file that says nothing about huge pages may have no end of
    /// its last line.
    fn takes_lines(&self) -> bool {
        self.local.as_ref() == Some(&self.path) && self.text().ends_with(b"\n")
    }
}

/// A size as the kernel's command line takes it (`memparse`).
fn as_parameter(page_bytes: u64) -> String {
    if page_bytes.is_multiple_of(1 << 30) {
        format!("{}G", page_bytes >> 30)
    } else if page_bytes.is_multiple_of(1 << 20) {
        format!("{}M", page_bytes >> 20)
    } else {
        format!("{}K", page_bytes >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{drop_ins::DropIn, kernel::Kernel};
    use super::*;

    /// Each candidate is simulated with all files. With `w+` every line counts, not only the last.
    #[test]
    fn candidates_are_few_however_many_lines_set_a_pool() -> Result<(), TryReserveError> {
        let pool = hugepages::directory(2 << 20);
        let line = |pages: u32| format!("w+ {pool}/nr_hugepages - - - - {pages}\n");
        let text: String = (1..=256).map(line).collect();
        let file = DropIn {
            path: "/etc/tmpfiles.d/a.conf".to_owned(),
            local: Some("/etc/tmpfiles.d/a.conf".to_owned()),
            content: Content::Text(text.into_bytes()),
        };
        let next = NextBoot::of(Sources {
            kernel: Kernel {
                version: (6, 1),
                sizes: Some(vec![2 << 20]),
                hpage_bytes: 2 << 20,
                nodes: None,
                most_sizes: 1,
                has_cma: true,
            },
            command_line: Ok(Vec::new()),
            sysctl: DropIns::default(),
            tmpfiles: Some(DropIns {
                directory: "/etc/tmpfiles.d".to_owned(),
                files: vec![file],
                ..DropIns::default()
            }),
        })?;
        assert_eq!(next.asked.len(), 256);
        let edits = next.edits_of_tmpfiles(2 << 20, 9);
        assert!(edits.len() <= 8, "{}", edits.len());
        Ok(())
    }
}
