//! The huge pages that the next boot sets up, and the changes that lead to other numbers.

use std::{path::Path, sync::Arc};

use super::{
    command_line,
    entry::{self, Change, Edit, Ineffective, Kernel, Place, Request, Unknown, Words},
    files::{self, Files, SysctlFile},
    sysctl,
};
use crate::linux::{
    error::{Absent, ReadError, fact},
    mounts::of_machine,
    root::Root,
};
use crate::units::{GIGANTIC, PageSize};

/// This directory exists if systemd started the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// The longest line that is replaced.
const LONGEST: usize = 1000;

/// Settings of huge pages at the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextBoot {
    /// In the order in which they are applied. The last one for a pool determines it.
    pub requests: Vec<Request>,
    /// A line for the default pool that has no effect.
    pub ineffective: Option<Ineffective>,
    /// Files, lines and words that might change the number of persistent pages, except those that a
    /// later sysctl line overrides. See [`NextBoot::unknown_of`] for a single pool.
    pub unknown: Vec<Unknown>,
    /// False if changes in `/etc` do not survive a reboot, or if `/etc` is read-only.
    pub is_kept: bool,
    /// Shared, because the model copies machines for each step that it tries.
    inputs: Arc<Inputs>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    kernel: Kernel,
    /// `None`: unknown.
    command_line: Option<String>,
    files: Files,
    /// Whether the directory for sysctl files of the administrator exists.
    has_directory: bool,
}

impl NextBoot {
    /// Reads all sources of the running system.
    ///
    /// Errors: absent if `/etc` is not that of the host, as in a container, or if that is unknown;
    /// also if there is neither a kernel command line nor a configuration file.
    pub fn read(
        root: &Root,
        kernel: Kernel,
        is_etc_kept: Result<bool, Absent>,
    ) -> Result<Result<Self, Absent>, ReadError> {
        let is_kept = match is_etc_kept {
            Ok(is_kept) => is_kept,
            Err(absent) => return Ok(Err(absent)),
        };
        // Containers and sandboxes hide the command line with an empty file.
        let command_line = fact(of_machine(root, root.read_record(entry::COMMAND_LINE)))?;
        let has_systemd = fact(root.names(SYSTEMD))?.is_ok();
        let files = files::read(root, has_systemd)?;
        if let (Err(absent), true) = (&command_line, files.sysctl.is_empty()) {
            return Ok(Err(absent.clone()));
        }
        let line = command_line.map(|line| String::from_utf8_lossy(&line).into_owned());
        let inputs = Inputs {
            kernel,
            command_line: line.ok(),
            files,
            has_directory: root.path(sysctl::DIRECTORY).is_dir(),
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
        let mut files = Files::default();
        for &(path, text) in texts {
            match path.contains("/sysctl.") {
                true => {
                    let file = SysctlFile::with_text(path, text, has_systemd);
                    files.sysctl.push(file);
                }
                false => {
                    let lines = files::lines_of_other(Path::new(path), text);
                    files.others.extend(lines);
                }
            }
        }
        files.sysctl.sort_by(|a, b| a.order().cmp(&b.order()));
        let inputs = Inputs {
            kernel,
            command_line: Some(command_line.to_owned()),
            files,
            has_directory: (texts.iter()).any(|(path, _)| path.starts_with(sysctl::DIRECTORY)),
        };
        Self::evaluate(inputs, true)
    }

    fn evaluate(inputs: Inputs, is_kept: bool) -> Self {
        let inputs = Arc::new(inputs);
        let mut next = Self {
            requests: Vec::new(),
            ineffective: None,
            unknown: Vec::new(),
            is_kept,
            inputs: Arc::clone(&inputs),
        };
        match &inputs.command_line {
            Some(line) => {
                (next.requests, next.unknown) = command_line::evaluate(line, &inputs.kernel);
            }
            None => next.unknown.push(Unknown {
                file: entry::COMMAND_LINE.to_owned(),
                line: None,
                page_bytes: None,
                why: entry::UNREADABLE,
            }),
        }
        let default = inputs.kernel.default_bytes;
        let by_sysctl = sysctl::evaluate(&inputs.files.sysctl, default);
        next.requests.extend(by_sysctl.last);
        next.ineffective = by_sysctl.ineffective;
        next.unknown.extend(by_sysctl.unknown);
        next.unknown.extend(inputs.files.others.iter().cloned());
        next
    }

    /// Returns the settings with other inputs.
    fn with(&self, change: impl FnOnce(&mut Inputs)) -> Self {
        let mut inputs = Inputs::clone(&self.inputs);
        change(&mut inputs);
        Self::evaluate(inputs, self.is_kept)
    }

    /// Returns the request that determines the number of persistent pages of this size. `None`:
    /// nothing sets them, or that is unknown.
    pub fn pages(&self, page_bytes: u64) -> Option<&Request> {
        let is_known = !self.is_unknown(page_bytes);
        self.last(page_bytes).filter(|_| is_known)
    }

    fn last(&self, page_bytes: u64) -> Option<&Request> {
        let is_it = |request: &&Request| request.page_bytes == Some(page_bytes);
        self.requests.iter().rfind(is_it)
    }

    /// True if something unknown might change the number of persistent pages of this size.
    pub fn is_unknown(&self, page_bytes: u64) -> bool {
        self.unknown_of(page_bytes).next().is_some()
    }

    /// Returns everything unknown that might change the number of persistent pages of this size.
    pub fn unknown_of(&self, page_bytes: u64) -> impl Iterator<Item = &Unknown> {
        // sysctl.d is read after the kernel command line.
        let last = self.last(page_bytes);
        let overrides_line = last.is_some_and(|request| !request.place.is_command_line());
        self.unknown.iter().filter(move |unknown| {
            unknown.page_bytes.is_none_or(|bytes| bytes == page_bytes)
                && !(overrides_line && unknown.file == entry::COMMAND_LINE)
        })
    }

    /// Returns the change after which the next boot sets up this number of pages, and the settings
    /// after it.
    ///
    /// `None`: the number is set already; something unknown might override the change; `/etc` does
    /// not survive a reboot; or no change is known to have this effect.
    pub fn change(&self, page_bytes: u64, pages: u64) -> Option<(Change, Self)> {
        if !self.is_kept || self.is_unknown(page_bytes) {
            return None;
        }
        // sysctl.d sets only pages of the default size.
        let is_default = self.inputs.kernel.default_bytes == Some(page_bytes);
        let is_on_line = (self.last(page_bytes)).is_some_and(|r| r.place.is_command_line());
        if !is_default || PageSize(page_bytes) >= GIGANTIC && is_on_line {
            let (words, after) = self.change_words(page_bytes, pages)?;
            return Some((Change::Words(words), after));
        }
        let (edit, after) = self.change_sysctl(page_bytes, pages)?;
        Some((Change::Edit(edit), after))
    }

    /// Returns the words on the kernel command line that set this number of pages, and the boot
    /// configuration with these words. `None`: the number is set already, or the effect of the
    /// words is unknown.
    fn change_words(&self, page_bytes: u64, pages: u64) -> Option<(Words, Self)> {
        let is_it = |request: &Request| {
            request.place.is_command_line() && request.page_bytes == Some(page_bytes)
        };
        if let Some(at) = self.requests.iter().position(is_it) {
            let mut after = self.clone();
            let request = &mut after.requests[at];
            let old = request.place.text.clone();
            let size = old.rsplit_once(' ').map(|(size, _)| format!("{size} "));
            request.place.text = format!("{}hugepages={pages}", size.unwrap_or_default());
            let words = Words {
                new: request.place.text.clone(),
                instead_of: Some(old),
            };
            let before = std::mem::replace(&mut request.pages, pages);
            return (before != pages).then_some((words, after));
        }
        let line = self.inputs.command_line.as_deref()?;
        let (changed, words) = command_line::with_words(line, page_bytes, pages);
        let after = self.with(|inputs| inputs.command_line = Some(changed));
        (after.pages(page_bytes)?.pages == pages).then_some((words, after))
    }

    /// Returns the edit that sets this number of pages of the default size, and the boot
    /// configuration after it: in place of the line that counts now, or in a file that is read
    /// later. `None`: the number is set already, or no such edit sets it.
    fn change_sysctl(&self, page_bytes: u64, pages: u64) -> Option<(Edit, Self)> {
        let line = format!("vm.nr_hugepages = {pages}");
        let is_set = |next: &Self| next.pages(page_bytes).is_some_and(|r| r.pages == pages);
        if is_set(self) {
            return None;
        }
        let ineffective = self.ineffective.iter().map(|line| &line.request);
        let present = self.pages(page_bytes).into_iter().chain(ineffective);
        let in_place = present.map(|request| self.in_place_of(&request.place, &line));
        let appended = ["60-hugepages.conf", "zz-hugepages.conf"];
        let appended = appended.map(|name| self.appended_to(name, &line));
        let candidates = in_place.chain(appended).flatten();
        candidates
            .map(|edit| {
                let after = self.after(&edit);
                (edit, after)
            })
            .find(|(_, after)| is_set(after))
    }

    fn in_place_of(&self, place: &Place, line: &str) -> Option<Edit> {
        let mut files = self.inputs.files.sysctl.iter();
        let file = files.find(|file| file.path == place.file)?;
        let old = file.text.as_ref().ok()?.split('\n').nth(place.line - 1)?;
        let is_plain =
            old.len() <= LONGEST && old.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~'));
        is_plain.then_some(Edit::Replace {
            file: file.local.clone()?,
            old: old.to_owned(),
            new: line.to_owned(),
        })
    }

    /// A new file would hide files with its name in other directories.
    fn appended_to(&self, name: &str, line: &str) -> Option<Edit> {
        let path = format!("{}/{name}", sysctl::DIRECTORY);
        let mut files = self.inputs.files.sysctl.iter();
        let is_open = files
            .find(|file| file.name == name.as_bytes())
            .is_none_or(|file| {
                let text = file.text.as_deref().unwrap_or("?");
                file.local.as_ref() == Some(&path) && (text.is_empty() || text.ends_with('\n'))
            });
        is_open.then(|| Edit::Append {
            file: path,
            line: line.to_owned(),
            makes_directory: !self.inputs.has_directory,
        })
    }

    /// Returns the boot configuration after an edit.
    #[must_use]
    pub fn after(&self, edit: &Edit) -> Self {
        self.with(|inputs| match edit {
            Edit::Replace { file, old, new } => {
                let is_it = |other: &&mut SysctlFile| other.local.as_ref() == Some(file);
                for file in inputs.files.sysctl.iter_mut().filter(is_it) {
                    if let Ok(text) = &mut file.text {
                        let lines = text.split('\n');
                        let lines = lines.map(|line| if line == old { new } else { line });
                        *text = lines.collect::<Vec<_>>().join("\n");
                    }
                }
            }
            Edit::Append {
                file: path, line, ..
            } => {
                inputs.has_directory = true;
                let new = SysctlFile::with_text(path, "", true);
                let files = &mut inputs.files.sysctl;
                let at = files.partition_point(|file| file.order() < new.order());
                if files.get(at).is_none_or(|file| file.order() != new.order()) {
                    files.insert(at, new);
                }
                if let Ok(text) = &mut files[at].text {
                    text.push_str(&format!("{line}\n"));
                }
            }
        })
    }
}
