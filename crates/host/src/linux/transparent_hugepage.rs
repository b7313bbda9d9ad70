//! `/sys/kernel/mm/transparent_hugepage`: the modes in which the kernel puts ordinary memory on
//! huge pages (Documentation/admin-guide/mm/transhuge.rst; mm/huge_memory.c, mm/shmem.c).

use crate::linux::{
    error::{ReadError, absent_or},
    hugepages,
    root::Root,
    text::{parse_counter, words},
};

/// The directory of the modes.
pub const DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

/// The present modes, as the kernel names them. `None`: the kernel has no such file, or access is
/// denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modes {
    /// `enabled`, for private memory: `always`, `madvise`, `never`.
    pub enabled: Option<String>,
    /// `defrag`, the effort of the kernel: `always`, `defer`, `defer+madvise`, `madvise`, `never`.
    pub defrag: Option<String>,
    /// `shmem_enabled`, for anonymous shared memory such as the main segment: `always`,
    /// `within_size`, `advise`, `never`, `deny`, `force`.
    pub shmem_enabled: Option<String>,
    /// The modes of each size, smallest first, since Linux 6.8.
    pub sizes: Vec<SizeModes>,
}

/// The modes of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeModes {
    pub page_bytes: u64,
    /// Like [`Modes::enabled`], or `inherit`, the mode for all sizes.
    pub enabled: Option<String>,
    /// Like [`Modes::shmem_enabled`], or `inherit`. Since Linux 6.11.
    pub shmem_enabled: Option<String>,
}

/// Reads the modes.
///
/// Errors: absent if the kernel has no transparent huge pages, or `/sys` is not mounted or
/// hidden.
pub fn read(root: &Root) -> Result<Modes, ReadError> {
    let names = root.names_in_sys(DIRECTORY)?;
    let mode = |file: &str| read_mode(root, &format!("{DIRECTORY}/{file}"));
    let mut sizes = names
        .iter()
        .filter_map(|name| Some((name, hugepages::parse_name(name)?)))
        .map(|(name, page_bytes)| {
            Ok(SizeModes {
                page_bytes,
                enabled: mode(&format!("{name}/enabled"))?,
                shmem_enabled: mode(&format!("{name}/shmem_enabled"))?,
            })
        })
        .collect::<Result<Vec<_>, ReadError>>()?;
    sizes.sort_by_key(|size| size.page_bytes);
    Ok(Modes {
        enabled: mode("enabled")?,
        defrag: mode("defrag")?,
        shmem_enabled: mode("shmem_enabled")?,
        sizes,
    })
}

/// `hpage_pmd_size`: size in bytes of the transparent huge pages that one page table entry maps.
///
/// Errors: absent if the kernel has no transparent huge pages.
pub fn pmd_bytes(root: &Root) -> Result<u64, ReadError> {
    let path = format!("{DIRECTORY}/hpage_pmd_size");
    root.parse(path, "a number of bytes was expected", |bytes| {
        parse_counter(bytes.trim_ascii())
            .filter(|&bytes| bytes > 0)
            .ok_or(1)
    })
}

fn read_mode(root: &Root, path: &str) -> Result<Option<String>, ReadError> {
    let expected = "words were expected, one of them in brackets";
    let parse = |bytes: &[u8]| parse(bytes).map(str::to_owned).ok_or(1);
    Ok(absent_or(root.parse(path, expected, parse))?.ok())
}

/// Parses the word in brackets in `always [madvise] never`.
pub fn parse(bytes: &[u8]) -> Option<&str> {
    let chosen = words(bytes.trim_ascii())
        .find_map(|word| word.strip_prefix(b"[")?.strip_suffix(b"]"))
        .filter(|word| !word.is_empty())?;
    str::from_utf8(chosen).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn word_in_brackets_is_the_mode() {
        for (text, mode) in [
            ("always [madvise] never\n", Some("madvise")),
            (
                "always defer [defer+madvise] madvise never\n",
                Some("defer+madvise"),
            ),
            ("[always]", Some("always")),
            ("always madvise never\n", None),
            ("[] never", None),
            ("[always never", None),
            ("", None),
        ] {
            assert_eq!(parse(text.as_bytes()), mode, "{text:?}");
        }
        assert_eq!(parse(b"[\xff]"), None);
    }

    #[test]
    fn modes_of_all_sizes() {
        let tree = tempfile::tempdir().expect("a directory");
        let root = Root::at(tree.path());
        assert!(!read(&root).expect_err("no /sys").is_missing());
        fs::create_dir_all(tree.path().join("sys/kernel")).expect("a directory");
        assert!(read(&root).expect_err("no such kernel").is_missing());
        let write = |file: &str, text: &str| {
            let path = tree
                .path()
                .join("sys/kernel/mm/transparent_hugepage")
                .join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        };
        write("enabled", "always [madvise] never\n");
        write("defrag", "always defer defer+madvise [madvise] never\n");
        write("khugepaged/defrag", "1\n");
        write(
            "hugepages-2048kB/enabled",
            "always [inherit] madvise never\n",
        );
        write("hugepages-64kB/enabled", "always inherit madvise [never]\n");
        write(
            "hugepages-64kB/shmem_enabled",
            "always [inherit] within_size advise never\n",
        );
        let modes = read(&root).expect("modes");
        assert_eq!(modes.enabled.as_deref(), Some("madvise"));
        assert_eq!(modes.defrag.as_deref(), Some("madvise"));
        assert_eq!(modes.shmem_enabled, None);
        let sizes: Vec<_> = modes
            .sizes
            .iter()
            .map(|size| {
                (
                    size.page_bytes,
                    size.enabled.as_deref(),
                    size.shmem_enabled.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            sizes,
            [
                (64 << 10, Some("never"), Some("inherit")),
                (2 << 20, Some("inherit"), None)
            ]
        );
        write("enabled", "on\n");
        assert!(matches!(read(&root), Err(ReadError::Malformed { .. })));
    }
}
