//! Lines of sysctl.d(5), as systemd and procps read them, and changes to them.

use super::{
    command_line::plain_number,
    entry::{Ineffective, NOT_A_NUMBER, NOT_READ, Place, REFUSED, Request, SETS_POOL, Unknown},
    files::SysctlFile,
};

/// The directory for files of the administrator.
pub(super) const DIRECTORY: &str = "/etc/sysctl.d";

/// A line that sets `vm.nr_hugepages`, or might set it.
enum Line {
    /// `None`: the value is not a plain number.
    Sets(Option<u64>),
    /// The kernel refuses the value.
    Refused,
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
            Some(match value.split_ascii_whitespace().next() {
                Some(value) if is_refused(value) => Line::Refused,
                value => Line::Sets(value.and_then(plain_number)),
            })
        }
        (["vm", "nr_hugepages" | "nr_hugepages_mempolicy"], _) => Some(Line::MightSet),
        _ => might_match(&key, "vm/nr_hugepages").then_some(Line::MightSet),
    }
}

/// Whether the kernel certainly refuses a value, such as `1GB`. A leading zero can stand for octal
/// or hexadecimal digits, and a dash for a negative number.
fn is_refused(value: &str) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    !is_number && !value.starts_with(['0', '-'])
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

/// The effect of all files.
#[derive(Default)]
pub(super) struct Effect {
    /// The line that counts.
    pub(super) last: Option<Request>,
    /// See [`NextBoot::ineffective`](super::NextBoot::ineffective).
    pub(super) ineffective: Option<Ineffective>,
    pub(super) unknown: Vec<Unknown>,
}

/// Evaluates all files in the order in which they are read. The last line counts.
pub(super) fn evaluate(files: &[SysctlFile], page_bytes: Option<u64>) -> Effect {
    let mut next = Effect::default();
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
            let without_effect = |pages, why| {
                let request = request(pages);
                Some(Ineffective { request, why })
            };
            match parsed {
                Line::Sets(pages) if !file.is_read => {
                    next.ineffective = without_effect(pages.unwrap_or(0), NOT_READ);
                }
                Line::Refused | Line::MightSet if !file.is_read => {}
                Line::Sets(Some(pages)) => {
                    // Earlier lines have no effect.
                    next.unknown.clear();
                    next.last = Some(request(pages));
                    next.ineffective.take_if(|line| line.why == REFUSED);
                }
                // systemd writes only the last line, procps all of them.
                Line::Refused if next.last.is_none() && next.unknown.is_empty() => {
                    next.ineffective = without_effect(0, REFUSED);
                }
                Line::Refused => next.unknown.push(unknown(Some(number), NOT_A_NUMBER)),
                Line::Sets(None) => next.unknown.push(unknown(Some(number), NOT_A_NUMBER)),
                Line::MightSet => next.unknown.push(unknown(Some(number), SETS_POOL)),
            }
        }
    }
    next
}
