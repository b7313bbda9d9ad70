//! What boot loaders are told of the next command line. Which of them the machine uses cannot be
//! told from here, so their files are only held beside the command line that runs.

use super::{command_line::parameters, request::Place};
use crate::linux::{
    error::{ReadError, absent_or},
    growth::TryPush,
    root::Root,
    text::{lines, split_once},
};

const GRUB: &str = "/etc/default/grub";
const GRUB_PARTS: &str = "/etc/default/grub.d";
/// For kernel-install(8).
const KERNEL: &str = "/etc/kernel/cmdline";
/// Of the Boot Loader Specification: systemd-boot, and GRUB on Fedora and its kin.
const ENTRIES: &str = "/boot/loader/entries";

/// The lines whose words about huge pages are not those of the command line that runs.
pub(super) fn differing(root: &Root, running: &[u8]) -> Result<Vec<Place>, ReadError> {
    let expected = words_about_pools(running);
    let mut differing = Vec::new();
    let mut check = |file: &str, number, line: &[u8]| {
        if words_about_pools(line) == expected {
            return Ok(());
        }
        differing.try_push(Place::new(file, number, line))
    };
    if let Some((file, number, line)) = grub(root)? {
        check(&file, number, &line)?;
    }
    if let Some(text) = written(root, KERNEL)? {
        check(KERNEL, 1, text.trim_ascii())?;
    }
    for name in absent_or(root.names(ENTRIES))?.unwrap_or_default() {
        let file = format!("{ENTRIES}/{name}");
        let text = if name.ends_with(".conf") {
            written(root, &file)?
        } else {
            None
        };
        for (number, line) in lines(&text.unwrap_or_default()) {
            let options = line.strip_prefix(b"options").filter(|o| !o.contains(&b'$'));
            if let Some(options) = options {
                check(&file, number, options.trim_ascii())?;
            }
        }
    }
    differing.sort();
    Ok(differing)
}

fn written(root: &Root, file: &str) -> Result<Option<Vec<u8>>, ReadError> {
    match root.read_written(file) {
        Ok(text) => Ok(Some(text)),
        Err(ReadError::NoMemory(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// Name and value, in their order.
fn words_about_pools(line: &[u8]) -> Vec<(&[u8], Option<&[u8]>)> {
    let names = [
        "hugepages",
        "hugepagesz",
        "default_hugepagesz",
        "hugetlb_cma",
    ];
    parameters(line)
        .filter(|p| names.iter().any(|name| p.is(name)))
        .map(|p| (p.name, p.value))
        .collect()
}

/// What `grub-mkconfig` makes of its settings, and the last line that says something of it. `None`:
/// there are none, or they are more than plain assignments.
fn grub(root: &Root) -> Result<Option<(String, usize, Vec<u8>)>, ReadError> {
    let mut files = vec![GRUB.to_owned()];
    let mut parts = absent_or(root.names(GRUB_PARTS))?.unwrap_or_default();
    parts.sort();
    for part in parts.into_iter().filter(|name| name.ends_with(".cfg")) {
        files.try_push(format!("{GRUB_PARTS}/{part}"))?;
    }
    let names: [&[u8]; 2] = [b"GRUB_CMDLINE_LINUX", b"GRUB_CMDLINE_LINUX_DEFAULT"];
    let mut values: [Vec<u8>; 2] = Default::default();
    let mut last = None;
    for file in files {
        let text = written(root, &file)?.unwrap_or_default();
        for (number, line) in lines(&text) {
            let Some((name, value)) = split_once(line.trim_ascii(), b'=') else {
                continue;
            };
            let (name, appends) = match name.strip_suffix(b"+") {
                Some(name) => (name, true),
                None => (name, false),
            };
            let Some(at) = names.iter().position(|n| *n == name) else {
                continue;
            };
            let Some(value) = shell_word(value, &names, &values) else {
                return Ok(None);
            };
            if !appends {
                values[at].clear();
            }
            values[at].extend_from_slice(&value);
            last = Some((file.clone(), number));
        }
    }
    let line = values.join(&b' ');
    Ok(last.map(|(file, number)| (file, number, line)))
}

/// The value of an assignment, with the two variables put in that it may name.
fn shell_word(text: &[u8], names: &[&[u8]; 2], values: &[Vec<u8>; 2]) -> Option<Vec<u8>> {
    let quote = text.first().copied().filter(|b| matches!(b, b'"' | b'\''));
    let inner = match quote {
        Some(quote) => {
            let inner = &text[1..];
            &inner[..inner.iter().position(|&b| b == quote)?]
        }
        None => text
            .split(u8::is_ascii_whitespace)
            .next()
            .unwrap_or_default(),
    };
    if quote == Some(b'\'') {
        return Some(inner.to_vec());
    }
    let mut word = Vec::with_capacity(inner.len());
    let mut parts = inner.split(|&b| b == b'$');
    word.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let (name, rest) = match part.strip_prefix(b"{") {
            Some(part) => split_once(part, b'}')?,
            None => part.split_at(part.iter().take_while(|b| is_name(b)).count()),
        };
        let at = names.iter().position(|n| *n == name)?;
        word.extend_from_slice(&values[at]);
        word.extend_from_slice(rest);
        // What doubles itself on every line would never end.
        if word.len() > 1 << 16 {
            return None;
        }
    }
    (!word.iter().any(|b| matches!(b, b'`' | b'\\'))).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_found() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let root = Root::at(directory.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, text)
        };
        let differing = |running: &str| -> Result<Vec<String>, ReadError> {
            let places = differing(&root, running.as_bytes())?;
            Ok(places.iter().map(ToString::to_string).collect())
        };
        assert_eq!(differing("hugepages=5")?, [""; 0]);
        write(
            GRUB,
            "# x\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n",
        )?;
        assert_eq!(differing("quiet")?, [""; 0]);
        assert_eq!(differing("hugepages=5")?, ["/etc/default/grub:3"]);
        let more = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepages=5\"\n";
        write("/etc/default/grub.d/50-x.cfg", more)?;
        assert_eq!(differing("ro hugepages=5")?, [""; 0]);
        assert_eq!(differing("ro")?, ["/etc/default/grub.d/50-x.cfg:1"]);
        write(
            "/etc/default/grub.d/60-x.cfg",
            "GRUB_CMDLINE_LINUX=$(date)\n",
        )?;
        assert_eq!(differing("ro")?, [""; 0]);
        write(KERNEL, "root=/dev/vda hugepages=6\n")?;
        write(
            "/boot/loader/entries/a.conf",
            "title x\noptions ro hugepages=5\n",
        )?;
        write("/boot/loader/entries/b.conf", "options $kernelopts\n")?;
        assert_eq!(differing("hugepages=5")?, ["/etc/kernel/cmdline:1"]);
        assert_eq!(differing("hugepages=6")?, ["/boot/loader/entries/a.conf:2"]);
        Ok(())
    }
}
