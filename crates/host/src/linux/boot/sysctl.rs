//! Lines of sysctl.d(5), as systemd and procps read them, and changes to them.

use super::{
    NextBoot,
    command_line::plain_number,
    entry::{Edit, NOT_A_NUMBER, Place, Request, SETS_POOL, Unknown},
    files::SysctlFile,
};

/// The directory for files of the administrator.
pub(super) const DIRECTORY: &str = "/etc/sysctl.d";

/// The longest line that is replaced.
const LONGEST: usize = 1000;

/// A line that sets `vm.nr_hugepages`, or might set it.
enum Line {
    /// `None`: the value is not a plain number.
    Sets(Option<u64>),
    /// A pattern, a key that is excluded from patterns, or an alias.
    MightSet,
}

/// `None`: the line is a comment or about other keys.
fn parse(line: &str) -> Option<Line> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (line.strip_prefix('-')?, None),
    };
    // A dash ignores errors. A dot as the first separator stands for a slash.
    let key = key.trim();
    let key = key.strip_prefix('-').unwrap_or(key);
    let key = match key.find(['.', '/']) {
        Some(at) if key[at..].starts_with('.') => key.replace('.', "/"),
        _ => key.to_owned(),
    };
    let parts: Vec<_> = key.split('/').filter(|part| !part.is_empty()).collect();
    match (parts.as_slice(), value) {
        // The kernel ignores all text after the first blank (kernel/sysctl.c `proc_get_long`).
        (["vm", "nr_hugepages"], Some(value)) => {
            let number = value.split_ascii_whitespace().next();
            Some(Line::Sets(number.and_then(plain_number)))
        }
        (["vm", "nr_hugepages" | "nr_hugepages_mempolicy"], _) => Some(Line::MightSet),
        _ => might_match(&key, "vm/nr_hugepages").then_some(Line::MightSet),
    }
}

/// True if `pattern` is a pattern of glob(7) that might match `name`. Compares only the text before
/// the first and after the last special character.
fn might_match(pattern: &str, name: &str) -> bool {
    let is_special = |c| matches!(c, '*' | '?' | '[' | ']' | '{' | '}');
    let (Some(first), Some(last)) = (pattern.find(is_special), pattern.rfind(is_special)) else {
        return false;
    };
    name.starts_with(&pattern[..first]) && name.ends_with(&pattern[last + 1..])
}

/// Evaluates all files in the order in which they are read. The last line counts.
pub(super) fn evaluate(next: &mut NextBoot, files: &[SysctlFile], page_bytes: Option<u64>) {
    let first_unknown = next.unknown.len();
    let mut last = None;
    for file in files {
        let unknown = |line, why| Unknown {
            file: file.path.clone(),
            line,
            page_bytes,
            why,
        };
        let text = match &file.text {
            Ok(text) => text,
            Err(why) => {
                next.unknown
                    .extend(file.is_read.then(|| unknown(None, why)));
                continue;
            }
        };
        for (number, line) in (1..).zip(text.lines()) {
            let Some(parsed) = parse(line) else { continue };
            let request = |pages| Request {
                page_bytes,
                pages,
                place: Place::new(&file.path, number, line),
            };
            match parsed {
                Line::Sets(pages) if !file.is_read => {
                    next.not_read = Some(request(pages.unwrap_or(0)));
                }
                Line::MightSet if !file.is_read => {}
                Line::Sets(Some(pages)) => {
                    // Earlier lines have no effect.
                    next.unknown.truncate(first_unknown);
                    last = Some(request(pages));
                }
                Line::Sets(None) => next.unknown.push(unknown(Some(number), NOT_A_NUMBER)),
                Line::MightSet => next.unknown.push(unknown(Some(number), SETS_POOL)),
            }
        }
    }
    next.requests.extend(last);
}

impl NextBoot {
    /// Returns the edit that sets this number of pages of the default size, and the boot
    /// configuration after it: in place of the line that counts now, or in a file that is read
    /// later. `None`: the number is set already, or no such edit sets it.
    pub(super) fn change_sysctl(&self, page_bytes: u64, pages: u64) -> Option<(Edit, Self)> {
        let line = format!("vm.nr_hugepages = {pages}");
        let is_set = |next: &Self| next.pages(page_bytes).is_some_and(|r| r.pages == pages);
        if is_set(self) {
            return None;
        }
        let now = self.pages(page_bytes);
        let in_place = now.and_then(|request| self.in_place_of(&request.place, &line));
        let appended = ["60-hugepages.conf", "zz-hugepages.conf"];
        let appended = appended.map(|name| self.appended_to(name, &line));
        let candidates = [in_place].into_iter().chain(appended).flatten();
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
        let path = format!("{DIRECTORY}/{name}");
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
