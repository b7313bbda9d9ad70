//! How a change of the next boot is typed.

use crate::{escape, linux::boot::Edit, shell::quoted};

/// Returns the shell command that makes this edit as root. For the kernel command line, returns the
/// words that it needs. `None` if a file name cannot be quoted in a shell command.
pub(super) fn edited(edit: &Edit) -> Option<String> {
    Some(match edit {
        // Typed twice, it finds nothing any more.
        Edit::Replace { file, old, new } => {
            format!(
                "sed -i {} {}",
                quoted(substitution(old, new))?,
                quoted(file)?
            )
        }
        // It adds to what is there meanwhile, a line that is there twice is as good as one, and
        // PostgreSQL may read the file whatever root's umask.
        Edit::Append {
            file,
            line,
            makes_directory,
        } => {
            let directory = file.rsplit_once('/').filter(|_| *makes_directory);
            let mkdir = match directory {
                Some((directory, _)) => format!("mkdir -p {} && ", quoted(directory)?),
                None => String::new(),
            };
            format!(
                "(umask 022 && {mkdir}echo {} >> {})",
                quoted(line)?,
                quoted(file)?
            )
        }
        Edit::Words {
            old,
            new,
            position_matters,
        } => {
            let place = match position_matters {
                true => ", at the end of GRUB_CMDLINE_LINUX_DEFAULT",
                false => "",
            };
            let instead = match old.is_empty() {
                true => String::new(),
                false => format!(" in place of {}", old.join(" ")),
            };
            format!("for the next boot, on the kernel command line{place}: {new}{instead}")
        }
    })
}

/// Describes the edit for a person, for names that cannot be quoted in a shell command.
pub(super) fn by_hand(edit: &Edit) -> String {
    match edit {
        Edit::Replace {
            file, new: line, ..
        }
        | Edit::Append { file, line, .. } => format!(
            "write \"{}\" into {} by hand: this name cannot be quoted in a shell command",
            escape::name(line),
            escape::name(file)
        ),
        Edit::Words { new, .. } => new.clone(),
    }
}

/// A whole line for a whole line, as sed takes it.
fn substitution(old: &str, new: &str) -> String {
    let is_free = |c: &char| !old.contains(*c) && !new.contains(*c);
    let delimiter = DELIMITERS.into_iter().find(is_free).unwrap_or('/');
    let is_special = |c: char| r"\.*[^$".contains(c) || c == delimiter;
    let mut pattern = String::with_capacity(old.len());
    for c in old.chars() {
        if c == '\t' {
            pattern.push_str("[[:blank:]]");
            continue;
        }
        if is_special(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    let mut replacement = String::with_capacity(new.len());
    for c in new.chars() {
        if c == '\\' || c == '&' || c == delimiter {
            replacement.push('\\');
        }
        replacement.push(c);
    }
    format!("s{delimiter}^{pattern}${delimiter}{replacement}{delimiter}")
}

/// None of them means anything to sed, nor to bash within quotes.
const DELIMITERS: [char; 6] = ['/', ',', '#', '@', '%', ':'];
