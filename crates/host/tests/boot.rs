//! Settings of the next boot, and changes to them.

#![allow(clippy::expect_used)]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use host::linux::{
    boot::{Change, Edit, Kernel, NextBoot, is_etc_kept},
    root::Root,
};
use proptest::prelude::*;
use tempfile::TempDir;

const MB2: u64 = 2 << 20;
const GB: u64 = 1 << 30;

fn kernel() -> Kernel {
    Kernel {
        sizes: Some(vec![MB2, GB]),
        default_bytes: Some(MB2),
    }
}

fn parse(command_line: &str, files: &[(&str, &str)]) -> NextBoot {
    NextBoot::parse(command_line, files, true, kernel())
}

/// Returns the pages of a size. `None`: unknown.
fn pages(next: &NextBoot, page_bytes: u64) -> Option<u64> {
    let request = next.pages(page_bytes);
    let pages = request.map_or(0, |request| request.pages);
    (!next.is_unknown(page_bytes)).then_some(pages)
}

/// Debian's kernels in QEMU with two nodes of 4 GB, one line each: the version, the command line
/// after `quiet`, the default size, and the pages of each size and node, in kB.
const KERNELS: &str = include_str!("boot/kernels.txt");

#[test]
fn command_lines_of_real_kernels() {
    let (mut known, mut wrong) = (0, Vec::new());
    for row in KERNELS.lines().filter(|row| !row.starts_with('#')) {
        let mut columns = row.split('|').skip(1);
        let mut column = || columns.next().expect("a column");
        let (line, seen) = (column(), column());
        let (default, by_node) = seen.split_once(' ').expect("a default size");
        let mut totals: BTreeMap<u64, u64> = BTreeMap::new();
        for word in by_node.split_whitespace() {
            let (pool, pages) = word.split_once('=').expect("pages");
            let size = pool.split('@').next().expect("a size");
            let size: u64 = size.parse().expect("a number");
            *totals.entry(size << 10).or_default() += pages.parse::<u64>().expect("a number");
        }
        let default = default.strip_prefix("default=").expect("a size");
        let default = default.parse::<u64>().expect("a number") << 10;
        let kernel = Kernel {
            default_bytes: Some(default),
            ..kernel()
        };
        let next = NextBoot::parse(line, &[], true, kernel);
        for (size, total) in totals {
            if next.is_unknown(size) {
                continue;
            }
            known += 1;
            let pages = next.pages(size).map_or(0, |r| r.pages);
            // The guest has memory for few 1 GB pages.
            if pages != total && !(pages > total && size == GB) {
                wrong.push(row);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(known > 130, "{known} of 424 pools are known");
}

/// The edit that sets 537 pages of a size.
fn edit(next: &NextBoot, page_bytes: u64) -> Option<Edit> {
    match next.change(page_bytes, 537)? {
        (Change::Edit(edit), after) => {
            assert_eq!(after, next.after(&edit));
            Some(edit)
        }
        (Change::Words(_), _) => None,
    }
}

fn replace(file: &str, old: &str, new: &str) -> Option<Edit> {
    Some(Edit::Replace {
        file: file.to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
    })
}

fn append(file: &str, line: &str) -> Option<Edit> {
    Some(Edit::Append {
        file: file.to_owned(),
        line: line.to_owned(),
        makes_directory: false,
    })
}

/// The words for 537 pages of a size.
#[derive(Debug, PartialEq, Eq)]
enum Advice {
    Add(&'static str),
    Replace(&'static str, &'static str),
    None,
}

fn advice(next: &NextBoot, page_bytes: u64) -> Advice {
    let leak = |text: String| -> &'static str { text.leak() };
    let Some((Change::Words(words), after)) = next.change(page_bytes, 537) else {
        return Advice::None;
    };
    let set = after.pages(page_bytes).expect("a request");
    let new = words.new.trim_end_matches(" --");
    assert_eq!((set.pages, set.place.text.as_str()), (537, new));
    match words.instead_of {
        Some(old) => Advice::Replace(leak(old), leak(words.new)),
        None => Advice::Add(leak(words.new)),
    }
}

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";

#[test]
fn words_of_the_command_line() {
    use Advice::{Add, None as No, Replace};
    const BOTH: &str = "hugepagesz=1G hugepages=537";
    let instead = Replace("hugepagesz=1G hugepages=4", BOTH);
    for (line, small, large, expected) in [
        ("quiet", Some(0), Some(0), &Add(BOTH)),
        ("hugepages=20", Some(20), Some(0), &Add(BOTH)),
        (
            "hugepagesz=2M hugepages=4 hugepagesz=1G hugepages=4",
            Some(4),
            Some(4),
            &instead,
        ),
        (
            "hugepagesz=1G hugepages=4 default_hugepagesz=2M hugepages=5",
            Some(5),
            Some(4),
            &instead,
        ),
        (
            "hugepages=4 quiet hugepagesz=1024m splash hugepages=04 -- hugepages=7",
            Some(4),
            None,
            &No,
        ),
        (
            "default_hugepagesz=2M quiet hugepagesz=1GB splash hugepages=4 -- hugepages=7",
            Some(0),
            Some(4),
            &Replace("hugepagesz=1GB hugepages=4", "hugepagesz=1GB hugepages=537"),
        ),
        (
            "huge-pages=5 \"hugepages=6\" foo=\"a hugepages=9 b\"",
            Some(6),
            Some(0),
            &Add(BOTH),
        ),
        // Sizes that the kernel does not have.
        ("hugepagesz=3M hugepages=4", None, None, &No),
        ("default_hugepagesz=16G", None, None, &No),
        // Words of one size are unknown.
        ("hugepages=many", None, Some(0), &Add(BOTH)),
        ("hugepages=0x10", None, Some(0), &Add(BOTH)),
        ("hugepagesz=1G hugepages=0:4,1:4", Some(0), None, &No),
        (
            "hugepages=0:4 hugepagesz=1G hugepages=4",
            None,
            Some(4),
            &instead,
        ),
        (
            "hugepagesz=1G hugepages=4 hugetlb_cma=8G",
            Some(0),
            None,
            &No,
        ),
        ("sysctl.vm.nr_hugepages=5", None, Some(0), &Add(BOTH)),
        // The kernel would ignore a size that is named again.
        ("hugepagesz=1G", Some(0), Some(0), &No),
        // Words after `--` are arguments of the first process.
        (
            "quiet -- single",
            Some(0),
            Some(0),
            &Replace("--", "hugepagesz=1G hugepages=537 --"),
        ),
        ("hugepages=1 init=--x --\n", Some(1), Some(0), &No),
        ("hugepages=1 init=--x", Some(1), Some(0), &Add(BOTH)),
        // Kernel versions differ, or the notation is unusual.
        (
            "hugepagesz=3M hugepages=1 hugepagesz=2M hugepages=4 hugepagesz=1G hugepages=4",
            None,
            None,
            &No,
        ),
        ("hugepages=20 hugepages=20", None, None, &No),
        ("hugepages=20 hugepages=40", None, None, &No),
        ("hugepages=20 hugepagesz=2M hugepages=20", None, None, &No),
        (
            "hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=4",
            None,
            None,
            &No,
        ),
        ("hugepagesz=1G hugepages=4 hugepages=5", None, None, &No),
        ("hugepagesz=0x40000000 hugepages=4", None, None, &No),
        ("hugepagesz=02M hugepages=4", None, None, &No),
        ("hugepagesz= hugepages=4", None, None, &No),
    ] {
        let next = parse(line, &[]);
        assert_eq!(
            (pages(&next, MB2), pages(&next, GB)),
            (small, large),
            "{line}"
        );
        assert_eq!(advice(&next, GB), *expected, "{line}");
        assert_eq!(advice(&next, MB2), No, "sysctl.d sets the default");
    }
    // 1 GB pages as the default size.
    let kernel = || Kernel {
        default_bytes: Some(GB),
        ..kernel()
    };
    for (line, now, expected) in [
        (
            "default_hugepagesz=1G hugepagesz=1G hugepages=4",
            Some(4),
            instead,
        ),
        (
            "default_hugepagesz=1G hugepages=4",
            Some(4),
            Replace(
                "default_hugepagesz=1G hugepages=4",
                "default_hugepagesz=1G hugepages=537",
            ),
        ),
        (
            "hugepages=4 default_hugepagesz=1G",
            Some(4),
            Replace("hugepages=4", "hugepages=537"),
        ),
        ("default_hugepagesz=1G", None, No),
    ] {
        let next = NextBoot::parse(line, &[], true, kernel());
        assert_eq!(next.pages(GB).map(|r| r.pages), now, "{line}");
        assert_eq!(advice(&next, GB), expected, "{line}");
        let edit = edit(&next, GB);
        assert_eq!(edit.is_some(), now.is_none(), "{line}");
    }
    let line = "default_hugepagesz=1G hugepagesz=1G hugepages=4";
    let file = ("/etc/sysctl.d/a.conf", "vm.nr_hugepages=5\n");
    let next = NextBoot::parse(line, &[file], true, kernel());
    let expected = replace(file.0, "vm.nr_hugepages=5", "vm.nr_hugepages = 537");
    assert_eq!(next.pages(GB).map(|r| r.pages), Some(5));
    assert_eq!(edit(&next, GB), expected);
    // An arm64 kernel with 64 kB pages has no 1 GB pages.
    let kernel = Kernel {
        sizes: Some(vec![MB2, 512 << 20, 16 << 30]),
        default_bytes: Some(512 << 20),
    };
    let next = NextBoot::parse("hugepagesz=1G hugepages=4", &[], true, kernel);
    assert!(next.is_unknown(GB));
    assert_eq!(advice(&next, GB), No);
}

#[test]
fn sysctl_lines_and_their_edits() {
    let wanted = "vm.nr_hugepages = 537";
    let new = |name: &str| append(&format!("/etc/sysctl.d/{name}.conf"), wanted);
    let instead = |file: &str, old: &str| replace(file, old, wanted);
    let (a, b) = ("/etc/sysctl.d/a.conf", "/etc/sysctl.d/b.conf");
    for (files, expected_pages, expected) in [
        (&[(a, "")][..], Some(0), new("60-hugepages")),
        (
            &[(a, "# vm.nr_hugepages=5\n; vm.nr_hugepages=6\n")],
            Some(0),
            new("60-hugepages"),
        ),
        (
            &[(a, "#\n\tvm.nr_hugepages=5 # why")],
            Some(5),
            instead(a, "\tvm.nr_hugepages=5 # why"),
        ),
        (
            &[(a, "-vm/nr_hugepages = 16\n")],
            Some(16),
            instead(a, "-vm/nr_hugepages = 16"),
        ),
        (
            &[(a, "vm.nr_hugepages=5\n"), (b, "/vm/nr_hugepages=6")],
            Some(6),
            instead(b, "/vm/nr_hugepages=6"),
        ),
        // Files of packages, and lines that sed would not match, are not edited.
        (
            &[
                (a, ""),
                ("/usr/lib/sysctl.d/50-x.conf", "vm.nr_hugepages=5\n"),
            ],
            Some(5),
            new("60-hugepages"),
        ),
        (
            &[(a, ""), ("/usr/lib/sysctl.d/x.conf", "vm.nr_hugepages=5\n")],
            Some(5),
            new("zz-hugepages"),
        ),
        (
            &[
                (a, ""),
                ("/usr/lib/sysctl.d/zzz.conf", "vm.nr_hugepages=5\n"),
            ],
            Some(5),
            None,
        ),
        (
            &[
                (a, ""),
                ("/usr/lib/sysctl.d/60-hugepages.conf", "vm.nr_hugepages=5\n"),
            ],
            Some(5),
            new("zz-hugepages"),
        ),
        (
            &[(a, "vm.nr_hugepages=5\r\n")],
            Some(5),
            new("zz-hugepages"),
        ),
        (
            &[("/etc/sysctl.d/pages.conf", "")],
            Some(0),
            new("60-hugepages"),
        ),
        // Our own files, which exist already.
        (
            &[("/etc/sysctl.d/60-hugepages.conf", "vm.swappiness = 1\n")],
            Some(0),
            new("60-hugepages"),
        ),
        (
            &[("/etc/sysctl.d/60-hugepages.conf", "vm.swappiness = 1")],
            Some(0),
            new("zz-hugepages"),
        ),
        // Not a plain number.
        (
            &[(a, "vm.nr_hugepages=5\n"), (b, "vm.nr_hugepages=5;\n")],
            None,
            None,
        ),
        // Patterns, exclusions and aliases are unknown.
        (
            &[(a, "vm.nr_hugepages=5\n"), (b, "vm.nr_*=6\n")],
            None,
            None,
        ),
        (
            &[
                (a, "vm.nr_hugepages=5\n"),
                (b, "vm.nr_hugepages_mempolicy=6\n"),
            ],
            None,
            None,
        ),
        (
            &[(a, "vm.nr_hugepages=5\n"), (b, "-vm.nr_hugepages\n")],
            None,
            None,
        ),
        (
            &[(a, "vm.nr_*=6\n"), (b, "vm.nr_hugepages=5\n")],
            Some(5),
            instead(b, "vm.nr_hugepages=5"),
        ),
        (
            &[(a, "net.ipv4.conf.*.rp_filter=1\n*.x=1\n-net.*.y\n")],
            Some(0),
            new("60-hugepages"),
        ),
        // Other mechanisms come later or in an unknown order.
        (
            &[
                (a, "vm.nr_hugepages=5\n"),
                (
                    "/etc/tmpfiles.d/x.conf",
                    "w /proc/sys/vm/nr_hugepages - - - - 5\n",
                ),
            ],
            None,
            None,
        ),
        (
            &[(
                "/etc/tmpfiles.d/x.conf",
                "w /sys/kernel/mm/hugepages/*/nr_hugepages - - - - 5\n",
            )],
            None,
            None,
        ),
        (
            &[
                (a, ""),
                (
                    "/etc/tmpfiles.d/x.conf",
                    &format!("#\nw {POOL} - - - - 5\n"),
                ),
            ],
            Some(0),
            new("60-hugepages"),
        ),
        (
            &[
                (a, ""),
                ("/etc/tmpfiles.d/x.conf", "d /dev/hugepages/libvirt\n"),
            ],
            Some(0),
            new("60-hugepages"),
        ),
        (
            &[(
                "/usr/lib/tuned/oracle/tuned.conf",
                "[sysctl]\nvm.nr_hugepages=5\n",
            )],
            None,
            None,
        ),
        (
            &[
                (a, ""),
                (
                    "/usr/lib/tuned/x/tuned.conf",
                    "[vm]\ntransparent_hugepages=never\n#vm.nr_hugepages=5\n",
                ),
            ],
            Some(0),
            new("60-hugepages"),
        ),
    ] {
        let next = parse("quiet", files);
        assert_eq!(pages(&next, MB2), expected_pages, "{files:?}");
        assert_eq!(edit(&next, MB2), expected, "{files:?}");
    }
    // sysctl.d is read after the command line.
    let next = parse(
        "hugepages=0:9 sysctl.vm.nr_hugepages=7",
        &[(a, "vm.nr_hugepages=5\nvm.nr_overcommit_hugepages=4\n")],
    );
    assert_eq!(pages(&next, MB2), Some(5));
    assert_eq!(next.change(MB2, 5), None, "nothing to edit");
    // A file that names the pool of one size does not make the other unknown.
    let x = "/etc/tmpfiles.d/x.conf";
    let line = format!("w! {POOL} - - - - 5\n");
    let profile = format!("[sysfs]\n{POOL}=4\n");
    for file in [(x, &*line), ("/usr/lib/tuned/x/tuned.conf", &*profile)] {
        let next = parse("", &[file]);
        assert_eq!((pages(&next, MB2), pages(&next, GB)), (Some(0), None));
        assert_eq!(advice(&next, GB), Advice::None);
    }
    let next = parse("", &[(x, "\nw /proc/sys/vm/nr_hugepages - - - - 5")]);
    assert_eq!((pages(&next, MB2), pages(&next, GB)), (None, None));
    assert_eq!(
        next.unknown[0].to_string(),
        "/etc/tmpfiles.d/x.conf:2 sets the pool in another way"
    );
}

/// Only plain numbers are interpreted. The kernel accepts some of the others, and refuses those
/// that set 0 pages here.
#[test]
fn numbers_and_sizes() {
    for (text, expected) in [
        ("5", Some(5)),
        ("5 # c", Some(5)),
        ("5\t7", Some(5)),
        ("0", Some(0)),
        ("0x10", None),
        ("010", None),
        ("5;", Some(0)),
        ("+5", Some(0)),
        ("-5", None),
        ("5,6", Some(0)),
        ("", None),
        ("99999999999999999999", None),
    ] {
        let line = format!("vm.nr_hugepages = {text}\n");
        let next = parse("", &[("/etc/sysctl.d/a.conf", &line)]);
        assert_eq!(pages(&next, MB2), expected, "{text}");
    }
    for (text, expected) in [
        ("1G", Some(12)),
        ("1GB", Some(12)),
        ("1g", Some(12)),
        ("1024M", Some(12)),
        ("1048576k", Some(12)),
        ("1073741824", Some(12)),
        ("2G", None),
        ("0x40000000", None),
        ("02000M", None),
        ("1T", None),
        ("1Gx", None),
        ("M", None),
        ("", None),
        ("-1G", None),
        ("99999999999999G", None),
    ] {
        let next = parse(&format!("hugepagesz={text} hugepages=12"), &[]);
        assert_eq!(pages(&next, GB), expected, "{text}");
    }
}

#[test]
fn line_that_the_kernel_refuses_is_replaced() {
    let file = "/etc/sysctl.d/a.conf";
    for value in ["537MB", "5,6", "5;", "+5", "\"5\"", "many"] {
        let line = format!("vm.nr_hugepages = {value}");
        let next = parse("hugepages=3", &[(file, &line)]);
        assert_eq!(pages(&next, MB2), Some(3), "{value}");
        let ineffective = next.ineffective.as_ref().expect("a line").to_string();
        let expected = format!("{file}:1 sets {line}, but the kernel refuses this value");
        assert_eq!(ineffective, expected);
        let expected = replace(file, &line, "vm.nr_hugepages = 537");
        assert_eq!(edit(&next, MB2), expected);
        let next = parse("", &[(file, &format!("{line}\nvm.nr_hugepages = 7\n"))]);
        assert_eq!((pages(&next, MB2), next.ineffective), (Some(7), None));
        // procps writes the first line, systemd only the second one.
        let next = parse("", &[(file, &format!("vm.nr_hugepages = 7\n{line}\n"))]);
        assert_eq!(pages(&next, MB2), None);
        assert_eq!(next.unknown.len(), 1);
    }
}

#[test]
fn sysctl_conf_counts_without_systemd() {
    let files = [
        ("/etc/sysctl.conf", "\nvm.nr_hugepages = 300\n"),
        ("/etc/sysctl.d/z.conf", "vm.nr_hugepages=5\n"),
    ];
    let next = parse("", &files);
    assert_eq!(pages(&next, MB2), Some(5));
    assert_eq!(
        next.ineffective.expect("a line").to_string(),
        "/etc/sysctl.conf:2 sets vm.nr_hugepages = 300, but systemd does not read this file (Debian 13 and newer)"
    );
    let next = NextBoot::parse("", &files, false, kernel());
    assert_eq!(pages(&next, MB2), Some(300));
    let expected = replace(
        "/etc/sysctl.conf",
        "vm.nr_hugepages = 300",
        "vm.nr_hugepages = 537",
    );
    assert_eq!(edit(&next, MB2), expected);
}

/// A machine as a tree of files.
struct Host(TempDir);

const MOUNTS: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";

impl Host {
    fn with(files: &[(&str, &str)]) -> Self {
        let host = Self(tempfile::tempdir().expect("a directory"));
        for (path, text) in [
            ("/proc/cmdline", "quiet\n"),
            ("/run/systemd/system/x", ""),
            ("/proc/1/mountinfo", MOUNTS),
            ("/proc/self/mountinfo", MOUNTS),
            ("/etc/hostname", ""),
        ] {
            host.write(path, text);
        }
        host.link("pid:[4026531836]", "/proc/self/ns/pid");
        for (path, text) in files {
            host.write(path, text);
        }
        host
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        path
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).expect("write");
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        let path = self.path(path);
        let _ = fs::remove_file(&path);
        symlink(target, path).expect("a link");
    }

    /// Makes a link to itself, which not even root can read.
    fn hide(&self, path: &str) {
        self.link(path.rsplit('/').next().expect("a name"), path);
    }

    fn read(&self) -> Result<NextBoot, String> {
        let root = Root::at(self.0.path());
        let is_kept = is_etc_kept(&root).expect("mounts");
        let next = NextBoot::read(&root, kernel(), is_kept).expect("read");
        next.map_err(|absent| absent.to_string())
    }

    fn next(&self) -> NextBoot {
        self.read().expect("sources")
    }

    /// Applies an edit to the files.
    fn apply(&self, edit: &Edit) {
        let read = |file| fs::read_to_string(self.path(file)).unwrap_or_default();
        match edit {
            Edit::Replace { file, old, new } => {
                let text = read(file);
                let lines = text
                    .split('\n')
                    .map(|line| if line == old { new } else { line });
                self.write(file, &lines.collect::<Vec<_>>().join("\n"));
            }
            Edit::Append {
                file,
                line,
                makes_directory,
            } => {
                let directory = self.0.path().join(file.trim_start_matches('/'));
                assert_eq!(
                    directory.parent().map(Path::exists),
                    Some(!makes_directory),
                    "{file}"
                );
                self.write(file, &format!("{}{line}\n", read(file)));
            }
        }
    }

    fn unknown(&self) -> Vec<String> {
        let unknown = self.next().unknown;
        unknown.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn files_hide_files_of_other_directories() {
    let host = Host::with(&[
        ("/proc/cmdline", "quiet hugepages=9\n"),
        ("/usr/lib/sysctl.d/50-a.conf", "#\nvm.nr_hugepages=2\n"),
        ("/usr/lib/sysctl.d/60-b.conf", "vm.nr_hugepages=3\n"),
        ("/etc/sysctl.d/60-b.conf", "vm.nr_overcommit_hugepages=4\n"),
        ("/run/sysctl.d/99-gone.conf", "vm.nr_hugepages=5\n"),
        ("/etc/sysctl.d/99-c.txt", "vm.nr_hugepages=6\n"),
        ("/etc/sysctl.conf", "vm.nr_hugepages=7\n"),
    ]);
    let source = || host.next().pages(MB2).expect("a request").place.to_string();
    assert_eq!(source(), "/usr/lib/sysctl.d/50-a.conf:2");
    assert!(host.next().ineffective.is_some());
    let hidden = "/etc/sysctl.d/50-a.conf";
    for target in ["/dev/null", "nowhere", "/etc"] {
        host.link(target, hidden);
        assert_eq!(source(), "/proc/cmdline (hugepages=9)", "{target}");
    }
    host.link("../sysctl.conf", "/etc/sysctl.d/99-sysctl.conf");
    assert_eq!(source(), "/etc/sysctl.d/99-sysctl.conf:1");
    assert_eq!(host.next().ineffective, None);
    let expected = replace(
        "/etc/sysctl.conf",
        "vm.nr_hugepages=7",
        "vm.nr_hugepages = 537",
    );
    assert_eq!(edit(&host.next(), MB2), expected);
    fs::remove_dir_all(host.path("/run/systemd")).expect("rm");
    assert_eq!(source(), "/etc/sysctl.conf:1");
}

#[test]
fn files_of_other_programs_are_unknown() {
    const MINE: &str = "/usr/lib/tuned/profiles/mine/tuned.conf";
    const ACTIVE: &str = "/etc/tuned/active_profile";
    let line = "w /proc/sys/vm/nr_hugepages - - - - 5\n";
    let host = Host::with(&[("/usr/lib/tmpfiles.d/x.conf", line)]);
    let expected = "/usr/lib/tmpfiles.d/x.conf:1 sets the pool in another way";
    assert_eq!(host.unknown(), [expected]);
    host.link("/dev/null", "/etc/tmpfiles.d/x.conf");
    assert_eq!(host.unknown(), [""; 0]);
    // Only systemd reads tmpfiles.d.
    let host = Host::with(&[("/etc/tmpfiles.d/x.conf", line)]);
    fs::remove_dir_all(host.path("/run/systemd")).expect("rm");
    assert_eq!(host.unknown(), [""; 0]);
    // tuned's active profile, and the profiles that it includes.
    host.write(ACTIVE, "oracle mine\n");
    host.write(MINE, "[sysctl]\nvm.nr_hugepages=5\n");
    let sets_pool = |file: &str| format!("{file} sets the pool in another way");
    assert_eq!(host.unknown(), [sets_pool(&format!("{MINE}:2"))]);
    host.write(MINE, "[main]\ninclude = throughput-performance, -base\n");
    assert_eq!(host.unknown(), [""; 0]);
    let base = "/etc/tuned/base/tuned.conf";
    host.write(base, "[main]\ninclude=mine\n[sysctl]\nvm.nr_hugepages=5\n");
    assert_eq!(host.unknown(), [sets_pool(&format!("{base}:4"))]);
    for file in [ACTIVE, MINE] {
        let host = Host::with(&[(ACTIVE, "mine\n"), (MINE, "[main]\n")]);
        assert_eq!(host.unknown(), [""; 0]);
        host.hide(file);
        assert_eq!(host.unknown(), [format!("{file} cannot be read")]);
    }
    let names: Vec<_> = (0..17).map(|n| format!("p{n}")).collect();
    host.write(ACTIVE, &names.join(" "));
    assert_eq!(host.unknown(), [format!("{ACTIVE} is too large to read")]);
}

#[test]
fn unreadable_and_large_files_are_unknown() {
    const LINE: &str = "vm.nr_hugepages=7";
    let too_large = |file: &str| format!("{file} is too large to read");
    let unreadable = |file: &str| format!("{file} cannot be read");
    let padded = |bytes: usize| format!("{}\n{LINE}\n", "#".repeat(bytes - LINE.len() - 2));
    let large = 256 << 10;
    for (is_read, text) in [
        (true, padded(large)),
        (false, padded(large + 1)),
        (
            true,
            format!(
                "kernel.x={}\n{LINE}\n{}",
                "1".repeat(2000),
                "a=1\n".repeat(10_000)
            ),
        ),
    ] {
        let host = Host::with(&[("/etc/sysctl.d/x.conf", &text)]);
        let expected = if is_read { Some(7) } else { None };
        assert_eq!(pages(&host.next(), MB2), expected, "{}", &text[..40]);
    }
    let host = Host::with(&[]);
    for name in 0..1025 {
        host.write(&format!("/etc/sysctl.d/{name}.conf"), "");
    }
    assert_eq!(host.unknown(), [too_large("/etc/sysctl.d")]);
    assert_eq!(edit(&host.next(), MB2), None);
    // The limit of all files together.
    let host = Host::with(&[]);
    for name in 0..5 {
        host.write(&format!("/etc/sysctl.d/{name}.conf"), &padded(large));
    }
    assert_eq!(host.unknown(), [too_large("/etc/sysctl.d/4.conf")]);
    assert_eq!(pages(&host.next(), MB2), None);

    // A later line overrides a file that cannot be read.
    let line = [("/etc/sysctl.d/50.conf", "vm.nr_hugepages=2\n")];
    for (hidden, expected, expected_edit) in [
        (
            "10.conf",
            Some(2),
            replace(line[0].0, "vm.nr_hugepages=2", "vm.nr_hugepages = 537"),
        ),
        ("60-k.conf", None, None),
    ] {
        let host = Host::with(&line);
        host.hide(&format!("/etc/sysctl.d/{hidden}"));
        assert_eq!(pages(&host.next(), MB2), expected, "{hidden}");
        assert_eq!(pages(&host.next(), GB), Some(0), "{hidden}");
        assert_eq!(edit(&host.next(), MB2), expected_edit, "{hidden}");
    }
    let host = Host::with(&[("/proc/cmdline", ""), line[0]]);
    assert_eq!(
        (pages(&host.next(), MB2), pages(&host.next(), GB)),
        (Some(2), None)
    );
    assert_eq!(edit(&host.next(), GB), None);
    host.hide("/etc/tmpfiles.d");
    assert_eq!(pages(&host.next(), MB2), None);
    let expected = ["/proc/cmdline", "/etc/tmpfiles.d"].map(unreadable);
    assert_eq!(host.unknown(), expected);
}

#[test]
fn names_that_cannot_be_quoted_are_not_edited() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    for (name, shown, expected) in [
        (&b"z\xff.conf"[..], r"z\377.conf", None),
        (b"zz\xff.conf", r"zz\377.conf", None),
        (
            br"a\377.conf",
            r"a\377.conf",
            append("/etc/sysctl.d/zz-hugepages.conf", "vm.nr_hugepages = 537"),
        ),
    ] {
        let host = Host::with(&[("/etc/sysctl.d/x.conf", "")]);
        let path = host
            .path("/etc/sysctl.d/x")
            .with_file_name(OsStr::from_bytes(name));
        fs::write(path, "vm.nr_hugepages = 5\n").expect("write");
        let next = host.next();
        let source = next.pages(MB2).expect("a request").place.to_string();
        assert_eq!(source, format!("/etc/sysctl.d/{shown}:1"));
        assert_eq!(edit(&next, MB2), expected, "{shown}");
    }
}

#[test]
fn files_of_containers_are_not_read() {
    const RUN: &str = "30 27 0:25 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,mode=755\n";
    let first = format!("{MOUNTS}{RUN}");
    for (own, elsewhere) in [
        (first.clone(), None),
        // A unit with PrivateTmp=yes and ProtectSystem=full.
        (
            "127 1 254:0 / / rw - ext4 /dev/vda rw\n130 127 0:25 / /run rw - tmpfs tmpfs rw\n\
             131 127 254:0 /etc /etc ro - ext4 /dev/vda rw\n\
             132 127 0:33 / /tmp rw - tmpfs tmpfs rw\n"
                .to_owned(),
            None,
        ),
        // Containers with the PID namespace of the host: with a volume at /run, and with the
        // host's /etc.
        (
            "127 1 0:41 / / rw - overlay overlay rw,lowerdir=/x\n".to_owned(),
            Some("/etc"),
        ),
        (
            "127 1 254:0 / / rw - ext4 /dev/vda rw\n130 127 0:99 / /run rw - tmpfs tmpfs rw\n"
                .to_owned(),
            Some("/run/systemd/system"),
        ),
        (
            "127 1 0:41 / / rw - overlay overlay rw\n\
             128 127 254:0 /etc /etc ro - ext4 /dev/vda rw\n"
                .to_owned(),
            Some("/run/systemd/system"),
        ),
        // RootDirectory=, and a chroot.
        (
            "127 1 254:0 /srv/x / rw - ext4 /dev/vda rw\n".to_owned(),
            Some("/etc"),
        ),
        (
            "128 27 0:21 / /proc rw - proc proc rw\n".to_owned(),
            Some("/etc"),
        ),
        (
            format!("{first}131 27 0:50 / /etc/sysctl.d rw - tmpfs tmpfs rw\n"),
            Some("/etc/sysctl.d"),
        ),
        (
            format!("{first}131 27 0:50 / /etcetera rw - tmpfs tmpfs rw\n"),
            None,
        ),
    ] {
        let host = Host::with(&[
            ("/proc/1/mountinfo", &first),
            ("/proc/self/mountinfo", &own),
        ]);
        let not_own = "is not the host's (as in a container)";
        let expected = elsewhere.map(|path| format!("{path} {not_own}"));
        assert_eq!(host.read().err(), expected, "{own}");
    }
    let host = Host::with(&[]);
    host.link("pid:[4026532198]", "/proc/self/ns/pid");
    assert_eq!(
        host.read().err().as_deref(),
        Some("/etc is not the host's (as in a container)")
    );
    let host = Host::with(&[]);
    fs::remove_dir_all(host.path("/proc/1")).expect("rm");
    assert!(
        host.read()
            .is_err_and(|absent| absent.ends_with("/proc/1/mountinfo is missing"))
    );
    let host = Host::with(&[]);
    fs::remove_file(host.path("/proc/cmdline")).expect("rm");
    assert!(
        host.read()
            .is_err_and(|absent| absent.ends_with("/proc/cmdline is missing"))
    );
}

#[test]
fn files_that_do_not_survive_a_reboot_are_not_edited() {
    for (mounts, is_kept) in [
        (MOUNTS, true),
        ("27 1 254:0 / / ro - ext4 /dev/vda rw\n", false),
        (
            "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 0:30 / /etc rw - tmpfs tmpfs rw\n",
            false,
        ),
    ] {
        let host = Host::with(&[
            ("/etc/sysctl.d/x.conf", "vm.nr_hugepages=5\n"),
            ("/proc/1/mountinfo", mounts),
            ("/proc/self/mountinfo", mounts),
        ]);
        let next = host.next();
        assert_eq!(next.is_kept, is_kept, "{mounts}");
        assert_eq!(pages(&next, MB2), Some(5));
        assert_eq!(edit(&next, MB2).is_some(), is_kept);
        assert_eq!(next.change(GB, 9).is_some(), is_kept);
    }
}

/// A line of a sysctl file.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..9_u32).prop_map(|n| format!("vm.nr_hugepages={n}")),
        (0..9_u32).prop_map(|n| format!(" -vm/nr_hugepages = {n} # c")),
        Just("vm.nr_hugepages = 3MB".to_owned()),
        Just("# comment".to_owned()),
        Just(String::new()),
    ]
}

fn files() -> impl Strategy<Value = Vec<(String, String)>> {
    let directory = prop::sample::select(vec!["/etc", "/usr/lib", "/usr/local/lib"]);
    let name = prop::sample::select(vec!["10-a", "60-hugepages", "99-b", "y"]);
    let path = (directory, name).prop_map(|(d, n)| format!("{d}/sysctl.d/{n}.conf"));
    let text = prop::collection::vec(line(), 0..4).prop_map(|lines| lines.join("\n"));
    let end = prop::sample::select(vec!["", "\n"]);
    let text = (text, end).prop_map(|(text, end)| text + end);
    prop::collection::vec((path, text), 0..5)
}

proptest! {
    // Each case is a tree of files.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The model of an edit agrees with the edited files.
    #[test]
    fn edits_set_the_number(
        files in files(),
        command_line in prop::sample::select(vec![
            "quiet", "hugepages=3", "hugepagesz=1G hugepages=3",
            "hugepages=3 hugepagesz=1G hugepages=3",
            "hugepagesz=2M hugepages=3 quiet",
        ]),
        has_systemd in any::<bool>(),
        page_bytes in prop::sample::select(vec![MB2, GB]),
        wanted in 0..9_u64,
    ) {
        let host = Host::with(&[("/proc/cmdline", command_line)]);
        for (path, text) in &files {
            host.write(path, text);
        }
        if !has_systemd {
            fs::remove_dir_all(host.path("/run/systemd")).expect("rm");
        }
        let next = host.next();
        let is_refused = |(_, text): &(String, String)| text.contains("3MB");
        prop_assert!(next.unknown.is_empty() || files.iter().any(is_refused));
        prop_assume!(next.unknown.is_empty());
        let Some((change, after)) = next.change(page_bytes, wanted) else {
            // No edit can follow a file of a package that is read last.
            let is_set = pages(&next, page_bytes) == Some(wanted);
            let is_last = next.pages(page_bytes).is_some_and(|r| !r.place.file.starts_with("/etc"));
            prop_assert!(is_set || is_last || page_bytes != MB2 || !has_systemd);
            return Ok(());
        };
        prop_assert_eq!(after.pages(page_bytes).map(|r| r.pages), Some(wanted));
        // Repeating the change is not necessary, and other pools do not change.
        prop_assert_eq!(after.change(page_bytes, wanted), None);
        let other = MB2 + GB - page_bytes;
        prop_assert_eq!(pages(&next, other), pages(&after, other));
        if let Change::Edit(edit) = change {
            host.apply(&edit);
            let read = host.next();
            prop_assert_eq!(&read.requests, &after.requests);
            prop_assert_eq!(&read.ineffective, &after.ineffective);
        }
    }

    #[test]
    fn any_text_is_evaluated(
        command_line in "(hugepages=|hugepagesz=|.{0,9}| ){0,9}",
        sysctl in "(vm.nr_hugepages=|.{0,9}|\n){0,9}",
        tmpfiles in "[wz][+!-]{0,2} \"?/(sys|proc)/.{0,60}",
        page_bytes in any::<u64>(),
    ) {
        let files = [
            ("/etc/sysctl.d/a.conf", &*sysctl),
            ("/etc/tmpfiles.d/a.conf", &tmpfiles),
            ("/x", &sysctl),
        ];
        let next = parse(&command_line, &files);
        if let Some((_, after)) = next.change(page_bytes, 3) {
            prop_assert_eq!(after.pages(page_bytes).map(|r| r.pages), Some(3));
        }
    }
}
