//! `/proc/sys/vm`: how the kernel allocates memory (Documentation/admin-guide/sysctl/vm.rst).

use crate::linux::{
    error::{ReadError, fact},
    root::Root,
    text::parse_number,
};

/// The directory with one file for each setting.
pub const DIRECTORY: &str = "/proc/sys/vm";

/// `None`: the kernel has no such setting, or reading it is not allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vm {
    /// `overcommit_memory`: 0 guesses, 1 refuses nothing, 2 commits at most `CommitLimit`.
    pub overcommit_memory: Option<i64>,
    /// `overcommit_ratio`: percent of RAM, less the pools of huge pages, that count for
    /// `CommitLimit`.
    pub overcommit_ratio: Option<i64>,
    /// `overcommit_kbytes`, in bytes, which replaces the ratio. `Some(0)`: the ratio applies.
    pub overcommit_bytes: Option<i64>,
    /// `admin_reserve_kbytes`, in bytes: the part of `CommitLimit` that only root can use.
    pub admin_reserve_bytes: Option<i64>,
    /// `user_reserve_kbytes`, in bytes: the most that a process has to leave of `CommitLimit`, so
    /// that a large one can be stopped.
    pub user_reserve_bytes: Option<i64>,
    /// `panic_on_oom`: 1 if the kernel panics instead of killing a process when the host runs out
    /// of memory, 2 also if a cgroup or some nodes do.
    pub panic_on_oom: Option<i64>,
    /// `swappiness`: 0 to 200, how much the kernel prefers swapping to dropping cached files.
    pub swappiness: Option<i64>,
    /// `hugetlb_shm_group`: the group that is allowed to create System V segments on huge pages.
    /// It does not affect PostgreSQL.
    pub hugetlb_shm_group: Option<i64>,
    /// `hugetlb_optimize_vmemmap`: whether the kernel frees most `struct page` entries of new huge
    /// pages, 7 of 8 base pages for 2 MB. Releasing such a page needs that memory back (Linux
    /// 5.19).
    pub hugetlb_optimize_vmemmap: Option<bool>,
}

/// Reads only the files about overcommit, and those about the limit only if it applies.
pub fn read_overcommit(root: &Root) -> Result<Vm, ReadError> {
    let mode = number(root, "overcommit_memory")?;
    let vm = Vm {
        overcommit_memory: mode,
        ..Vm::default()
    };
    if mode != Some(2) {
        return Ok(vm);
    }
    Ok(Vm {
        overcommit_ratio: number(root, "overcommit_ratio")?,
        overcommit_bytes: kilobytes(root, "overcommit_kbytes")?,
        admin_reserve_bytes: kilobytes(root, "admin_reserve_kbytes")?,
        user_reserve_bytes: kilobytes(root, "user_reserve_kbytes")?,
        ..vm
    })
}

/// Reads a setting in kB, and returns bytes.
fn kilobytes(root: &Root, name: &str) -> Result<Option<i64>, ReadError> {
    let number = read_as(root, name, |bytes| parse(bytes)?.checked_mul(1024));
    Ok(fact(number)?.ok())
}

fn number(root: &Root, name: &str) -> Result<Option<i64>, ReadError> {
    Ok(fact(read_number(root, name))?.ok())
}

/// Reads the files.
pub fn read(root: &Root) -> Result<Vm, ReadError> {
    let number = |name| number(root, name);
    Ok(Vm {
        overcommit_memory: number("overcommit_memory")?,
        overcommit_ratio: number("overcommit_ratio")?,
        overcommit_bytes: kilobytes(root, "overcommit_kbytes")?,
        admin_reserve_bytes: kilobytes(root, "admin_reserve_kbytes")?,
        user_reserve_bytes: kilobytes(root, "user_reserve_kbytes")?,
        panic_on_oom: number("panic_on_oom")?,
        swappiness: number("swappiness")?,
        hugetlb_shm_group: number("hugetlb_shm_group")?,
        hugetlb_optimize_vmemmap: number("hugetlb_optimize_vmemmap")?.map(|value| value != 0),
    })
}

pub(crate) fn read_number(root: &Root, name: &str) -> Result<i64, ReadError> {
    read_as(root, name, parse)
}

fn read_as(
    root: &Root,
    name: &str,
    parse: impl Fn(&[u8]) -> Option<i64>,
) -> Result<i64, ReadError> {
    let path = format!("{DIRECTORY}/{name}");
    root.parse(path, "a number was expected", |bytes| parse(bytes).ok_or(1))
}

/// Parses a decimal number. The kernel accepts negative values for some settings.
pub fn parse(bytes: &[u8]) -> Option<i64> {
    let text = bytes.trim_ascii();
    let (digits, is_negative) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let magnitude = i64::try_from(parse_number(digits)?).ok()?;
    Some(if is_negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_a_sign() {
        for (text, number) in [
            ("0\n", Some(0)),
            ("9223372036854775807\n", Some(i64::MAX)),
            ("-1\n", Some(-1)),
            ("-9223372036854775807\n", Some(-i64::MAX)),
            ("-9223372036854775808\n", None),
            ("9223372036854775808\n", None),
            ("1 2\n", None),
            ("--1\n", None),
            ("-\n", None),
            ("", None),
        ] {
            assert_eq!(parse(text.as_bytes()), number, "{text:?}");
        }
    }
}
