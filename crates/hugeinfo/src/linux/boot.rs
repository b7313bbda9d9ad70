//! Huge pages that were asked for when the machine started: on the kernel's command line, and by
//! sysctl's files after that (Documentation/admin-guide/mm/hugetlbpage.rst; sysctl.d(5)).

use std::{collections::BTreeMap, path::Path};

use crate::linux::{
    error::{Absent, ReadError, absent_or},
    root::Root,
    text::{lines, parse_number, split_once, words},
};

/// In the order in which they are read: of files of one name the first counts (sysctl.d(5)).
const SYSCTL_DIRECTORIES: [&str; 4] = [
    "etc/sysctl.d",
    "run/sysctl.d",
    "usr/local/lib/sysctl.d",
    "usr/lib/sysctl.d",
];

/// What `sysctl --system` reads last, and systemd not at all: distributions link to it from a
/// directory, or do without it (Debian 13).
const SYSCTL_CONF: &str = "etc/sysctl.conf";
/// There where systemd starts the machine (sd_booted(3)).
const SYSTEMD: &str = "run/systemd/system";

/// A number of persistent pages that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Their size; `None`: the default size.
    pub page_bytes: Option<u64>,
    /// How many.
    pub pages: u64,
    /// Who asks: `/proc/cmdline` or a file of sysctl's.
    pub source: String,
}

/// All requests; of two for one size the later one counts.
///
/// Errors: absent where neither the kernel's command line nor any file of sysctl's is to be had, as
/// in a container.
pub fn read(root: &Root) -> Result<Result<Vec<Request>, Absent>, ReadError> {
    const COMMAND_LINE: &str = "proc/cmdline";
    let mut requests = Vec::new();
    let command_line = absent_or(root.read(COMMAND_LINE))?;
    for (page_bytes, pages) in command_line
        .iter()
        .flat_map(|text| parse_command_line(text))
    {
        let source = format!("/{COMMAND_LINE}");
        requests.push(Request {
            page_bytes,
            pages,
            source,
        });
    }

    let files = sysctl_files(root)?;
    if let (Err(absent), true) = (command_line, files.is_empty()) {
        return Ok(Err(absent));
    }
    for file in files {
        let Ok(text) = absent_or(root.read_written(&file))? else {
            continue;
        };
        if let Some(pages) = parse_sysctl(&text) {
            let source = format!("/{file}");
            requests.push(Request {
                page_bytes: None,
                pages,
                source,
            });
        }
    }
    Ok(Ok(requests))
}

/// In the order in which they take effect.
fn sysctl_files(root: &Root) -> Result<Vec<String>, ReadError> {
    let mut by_name = BTreeMap::new();
    for directory in SYSCTL_DIRECTORIES {
        for name in absent_or(root.names(directory))?.into_iter().flatten() {
            let is_conf = Path::new(&name).extension().is_some_and(|e| e == "conf");
            if is_conf {
                let path = format!("{directory}/{name}");
                by_name.entry(name).or_insert(path);
            }
        }
    }
    let mut files: Vec<_> = by_name.into_values().collect();
    let by_systemd = absent_or(root.names(SYSTEMD))?.is_ok();
    if !by_systemd && absent_or(root.open_written(SYSCTL_CONF))?.is_ok() {
        files.push(SYSCTL_CONF.to_owned());
    }
    Ok(files)
}

/// `hugepages=N`, or `hugepages=0:N,1:M` by node, each for the `hugepagesz=` before it
/// (mm/hugetlb.c `hugepages_setup`).
pub fn parse_command_line(bytes: &[u8]) -> Vec<(Option<u64>, u64)> {
    let mut page_bytes = None;
    let mut requests = Vec::new();
    for word in words(bytes.trim_ascii()) {
        if let Some(size) = word.strip_prefix(b"hugepagesz=") {
            page_bytes = parse_size(size);
        } else if let Some(value) = word.strip_prefix(b"hugepages=") {
            let of_node = |part: &[u8]| match split_once(part, b':') {
                Some((_, pages)) => parse_number(pages),
                None => parse_number(part),
            };
            let pages: Option<Vec<u64>> = value.split(|&b| b == b',').map(of_node).collect();
            if let Some(pages) = pages {
                let pages = pages.into_iter().fold(0, u64::saturating_add);
                requests.push((page_bytes, pages));
            }
        }
    }
    requests
}

/// A size as the kernel's `memparse` takes it: `2M`, `1G`, `2048K`.
fn parse_size(text: &[u8]) -> Option<u64> {
    let (digits, shift) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 10),
        (b'M' | b'm', digits) => (digits, 20),
        (b'G' | b'g', digits) => (digits, 30),
        _ => (text, 0),
    };
    parse_number(digits)?.checked_mul(1 << shift)
}

/// The last `vm.nr_hugepages` of a file of sysctl's.
pub fn parse_sysctl(bytes: &[u8]) -> Option<u64> {
    lines(bytes)
        .filter_map(|(_, line)| {
            let (name, value) = split_once(line, b'=')?;
            let name = name.trim_ascii();
            // A dash before it: no complaint if it fails.
            let name = name.strip_prefix(b"-").unwrap_or(name);
            let is_ours = matches!(name, b"vm.nr_hugepages" | b"vm/nr_hugepages");
            is_ours.then(|| parse_number(value.trim_ascii()))?
        })
        .last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        for (text, expected) in [
            ("quiet", vec![]),
            ("hugepages=600", vec![(None, 600)]),
            (
                "default_hugepagesz=2M hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512\n",
                vec![(Some(1 << 30), 4), (Some(2 << 20), 512)],
            ),
            (
                "hugepagesz=2048K hugepages=0:100,1:150",
                vec![(Some(2 << 20), 250)],
            ),
            ("hugepages=x hugepages=", vec![]),
            ("hugepages=1:", vec![]),
        ] {
            assert_eq!(parse_command_line(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn files_of_sysctl() {
        for (text, expected) in [
            ("", None),
            ("# vm.nr_hugepages = 5\n; vm.nr_hugepages=6\n", None),
            ("vm.nr_hugepages = 537\n", Some(537)),
            (
                "vm.swappiness=1\n-vm/nr_hugepages=1\nvm.nr_hugepages=2",
                Some(2),
            ),
            (
                "vm.nr_hugepages_mempolicy = 7\nvm.nr_hugepages = many\n",
                None,
            ),
        ] {
            assert_eq!(parse_sysctl(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn the_last_file_counts_and_a_name_hides_its_like() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let root = Root::at(directory.path());
        assert!(read(&root)?.is_err());

        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, text)
        };
        write("proc/cmdline", "hugepages=1")?;
        write("usr/lib/sysctl.d/50-a.conf", "vm.nr_hugepages=2")?;
        write("usr/lib/sysctl.d/60-b.conf", "vm.nr_hugepages=3")?;
        write("etc/sysctl.d/60-b.conf", "vm.nr_hugepages=4")?;
        write("etc/sysctl.d/99-c.txt", "vm.nr_hugepages=5")?;
        let all = |root| -> Result<Vec<_>, ReadError> {
            let requests = read(root)?.unwrap_or_default();
            Ok(requests.into_iter().map(|r| (r.pages, r.source)).collect())
        };
        let mut expected = vec![
            (1, "/proc/cmdline".to_owned()),
            (2, "/usr/lib/sysctl.d/50-a.conf".to_owned()),
            (4, "/etc/sysctl.d/60-b.conf".to_owned()),
        ];
        assert_eq!(all(&root)?, expected);

        write("etc/sysctl.conf", "vm.nr_hugepages=6")?;
        expected.push((6, "/etc/sysctl.conf".to_owned()));
        assert_eq!(all(&root)?, expected);

        std::fs::create_dir_all(directory.path().join("run/systemd/system"))?;
        expected.pop();
        assert_eq!(all(&root)?, expected);
        std::os::unix::fs::symlink(
            "../sysctl.conf",
            directory.path().join("etc/sysctl.d/99-sysctl.conf"),
        )?;
        expected.push((6, "/etc/sysctl.d/99-sysctl.conf".to_owned()));
        assert_eq!(all(&root)?, expected);
        Ok(())
    }
}
