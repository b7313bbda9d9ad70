//! `/proc/PID/status`: the identity of a process (fs/proc/array.c `task_state`), and its memory by
//! kind, without a walk of page tables (fs/proc/task_mmu.c `task_mem`).

use crate::linux::{
    error::{ReadError, absent_or},
    list::{self, List},
    process::Process,
    root::Root,
    text::{lines, parse_hex, parse_kilobytes, parse_number, split_once},
};

const NAME: &str = "status";

/// Memory in bytes. `None`: the kernel has no such line. A zombie, which has ended but was not
/// reaped, has no values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// `VmPeak`: the largest virtual size so far.
    pub virtual_peak: Option<u64>,
    /// `VmSize`: the virtual size.
    pub virtual_size: Option<u64>,
    /// `VmRSS`: resident memory, including shared memory but not huge pages.
    pub rss: Option<u64>,
    /// `RssAnon`, since Linux 4.5.
    pub rss_anon: Option<u64>,
    /// `RssFile`, since Linux 4.5.
    pub rss_file: Option<u64>,
    /// `RssShmem`, since Linux 4.5.
    pub rss_shmem: Option<u64>,
    /// `VmPTE`: page tables.
    pub page_tables: Option<u64>,
    /// `VmSwap`: swapped-out private memory, without shared memory.
    pub swap: Option<u64>,
    /// `HugetlbPages`: hugetlb memory that the process has faulted in, without pages behind shared
    /// page tables.
    pub hugetlb: Option<u64>,
}

impl Memory {
    /// Shared memory and huge pages that the process has faulted in, in bytes. Unknown values count
    /// as 0.
    pub fn shared_faulted_in(&self) -> u64 {
        let on_small_pages = self.rss_shmem.unwrap_or_default();
        on_small_pages.saturating_add(self.hugetlb.unwrap_or_default())
    }
}

/// Reads the memory of a process. Errors: absent if it has ended.
pub fn read_memory(process: &Process, buffer: &mut Vec<u8>) -> Result<Memory, ReadError> {
    process.parse_leniently(NAME, buffer, parse_memory)
}

/// Reads the memory of `parent` or of a child of it, with a single read. `None`: the process is
/// neither, or it has ended.
pub fn read_memory_of_member(
    root: &Root,
    parent: u32,
    pid: u32,
) -> Result<Option<Memory>, ReadError> {
    let read = absent_or(root.read_record(format!("proc/{pid}/{NAME}")))?;
    Ok(read
        .ok()
        .filter(|text| pid == parent || parse_parent(text) == Some(parent))
        .map(|text| parse_memory(&text)))
}

/// Parses `PPid`: the PID of the parent. `None`: no such line.
fn parse_parent(bytes: &[u8]) -> Option<u32> {
    let line = lines(bytes).find_map(|(_, line)| line.strip_prefix(b"PPid:"))?;
    u32::try_from(parse_number(line.trim_ascii())?).ok()
}

/// Parses the text. Lines with other names are ignored. Stops once all values are known, after half
/// of the file. A line without a valid number of kB has no value.
pub fn parse_memory(bytes: &[u8]) -> Memory {
    let mut memory = Memory::default();
    let mut unknown = 9;
    for (_, line) in lines(bytes) {
        let Some((name, value)) = split_once(line, b':') else {
            continue;
        };
        let field = match name {
            b"VmPeak" => &mut memory.virtual_peak,
            b"VmSize" => &mut memory.virtual_size,
            b"VmRSS" => &mut memory.rss,
            b"RssAnon" => &mut memory.rss_anon,
            b"RssFile" => &mut memory.rss_file,
            b"RssShmem" => &mut memory.rss_shmem,
            b"VmPTE" => &mut memory.page_tables,
            b"VmSwap" => &mut memory.swap,
            b"HugetlbPages" => &mut memory.hugetlb,
            _ => continue,
        };
        let Some(bytes) = parse_kilobytes(value) else {
            continue;
        };
        if field.replace(bytes).is_none() {
            unknown -= 1;
            if unknown == 0 {
                break;
            }
        }
    }
    memory
}

/// The user and the PIDs of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// `Uid`: the effective user ID. `None`: no such line.
    pub uid: Option<u32>,
    /// The user ID, if the process has no other one, as a setuid program has.
    pub only_uid: Option<u32>,
    /// The group ID, if the process has no other one, as a setgid program has. Supplementary groups
    /// do not count.
    pub only_gid: Option<u32>,
    /// `NSpid`, since Linux 4.1: the PID in our namespace and in each nested one. The last one is
    /// the PID that the process itself sees. Empty: no such line.
    pub numbers: Vec<u32>,
}

/// Reads the identity of a process. Errors: absent if it has ended.
pub fn read_identity(process: &Process, buffer: &mut Vec<u8>) -> Result<Identity, ReadError> {
    process.parse_leniently(NAME, buffer, parse_identity)
}

/// Parses the text. Lines with other names are ignored. A line with other characters than digits
/// has no value.
pub fn parse_identity(bytes: &[u8]) -> Identity {
    let mut identity = Identity::default();
    for (_, line) in lines(bytes) {
        match split_once(line, b':') {
            // Real, effective, saved and file system ID.
            Some((b"Uid", value)) => {
                let ids = numbers(value);
                identity.uid = ids.get(1).copied();
                identity.only_uid = only(&ids);
            }
            Some((b"Gid", value)) => identity.only_gid = only(&numbers(value)),
            Some((b"NSpid", value)) => identity.numbers = numbers(value),
            _ => {}
        }
    }
    identity
}

fn only(ids: &[u32]) -> Option<u32> {
    match ids {
        [real, rest @ ..] if rest.len() == 3 && rest.iter().all(|id| id == real) => Some(*real),
        _ => None,
    }
}

/// Reads `Mems_allowed_list`: the NUMA nodes that the cgroup of the process allows
/// (kernel/cgroup/cpuset.c `cpuset_task_status_allowed`). `None`: no such line, because the kernel
/// has no cpusets and thus no restriction.
///
/// Errors: absent if the process has ended.
pub fn read_allowed_nodes(
    process: &Process,
    buffer: &mut Vec<u8>,
) -> Result<Option<List>, ReadError> {
    process.parse(
        NAME,
        buffer,
        "a list of nodes was expected",
        parse_allowed_nodes,
    )
}

/// Parses the line. Lines with other names are ignored. Errors: the number of a line that is not a
/// list.
pub fn parse_allowed_nodes(bytes: &[u8]) -> Result<Option<List>, usize> {
    for (number, line) in lines(bytes) {
        if let Some(list) = line.strip_prefix(b"Mems_allowed_list:") {
            return list::parse(list).map(Some).ok_or(number);
        }
    }
    Ok(None)
}

/// Reads whether a process or its children can gain `CAP_SYS_RESOURCE`, with which they can lower
/// `oom_score_adj`. Errors: absent if it has exited.
pub fn read_can_gain_resource(
    process: &Process,
    buffer: &mut Vec<u8>,
) -> Result<Option<bool>, ReadError> {
    process.parse_leniently(NAME, buffer, parse_can_gain_resource)
}

/// Parses the bounding set: `CapBnd:\t000001ffffffffff`. `None`: no such line, or an unknown form.
pub fn parse_can_gain_resource(bytes: &[u8]) -> Option<bool> {
    /// Bit of `CAP_SYS_RESOURCE` (include/uapi/linux/capability.h).
    const SYS_RESOURCE: u32 = 24;
    let mask = lines(bytes).find_map(|(_, line)| match split_once(line, b':') {
        Some((b"CapBnd", mask)) => parse_hex(mask.trim_ascii()),
        _ => None,
    })?;
    Some(mask >> SYS_RESOURCE & 1 == 1)
}

/// Parses numbers separated by blanks. Empty if one of them is not valid.
fn numbers(value: &[u8]) -> Vec<u32> {
    value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| u32::try_from(parse_number(word)?).ok())
        .collect::<Option<_>>()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend() {
        let memory = parse_memory(
            b"Name:\tpostgres\nUmask:\t0077\nVmPeak:\t148392404 kB\nVmSize:\t  8603364 kB\nVmPTE:\t  327680 kB\n\
              HugetlbPages:\t       0 kB\nRssShmem:\t 4294967296 kB\nHugeThing:\t1\nVmLib:\t x\n",
        );
        let expected = Memory {
            virtual_peak: Some(148_392_404 << 10),
            virtual_size: Some(8_603_364 << 10),
            page_tables: Some(320 << 20),
            hugetlb: Some(0),
            rss_shmem: Some(4 << 40),
            ..Memory::default()
        };
        assert_eq!(memory, expected);
    }

    #[test]
    fn values_are_found_in_any_order() {
        let mut lines = [
            "VmPeak:\t1 kB\n",
            "VmSize:\t2 kB\n",
            "VmRSS:\t3 kB\n",
            "RssAnon:\t4 kB\n",
            "RssFile:\t5 kB\n",
            "RssShmem:\t6 kB\n",
            "VmPTE:\t7 kB\n",
            "VmSwap:\t8 kB\n",
            "HugetlbPages:\t9 kB\n",
            "HugetlbPages:\t9 kB\n",
        ];
        let expected = Memory {
            virtual_peak: Some(1 << 10),
            virtual_size: Some(2 << 10),
            rss: Some(3 << 10),
            rss_anon: Some(4 << 10),
            rss_file: Some(5 << 10),
            rss_shmem: Some(6 << 10),
            page_tables: Some(7 << 10),
            swap: Some(8 << 10),
            hugetlb: Some(9 << 10),
        };
        for _ in 0..lines.len() {
            let memory = parse_memory(lines.concat().as_bytes());
            assert_eq!(memory, expected, "{lines:?}");
            lines.rotate_left(1);
        }
    }

    #[test]
    fn zombie_has_no_values() {
        assert_eq!(
            parse_memory(b"Name:\tpostgres\nState:\tZ (zombie)\n"),
            Memory::default()
        );
        assert_eq!(parse_memory(b""), Memory::default());
    }

    #[test]
    fn invalid_line_of_memory_has_no_value() {
        for line in [
            "VmSwap:\t12 MB",
            "VmSwap:\t kB",
            "VmSwap:\t18014398509481984 kB",
            "VmSwap:\t18446744073709551612 kB",
        ] {
            let text = format!("VmRSS:\t7 kB\n{line}\nVmPTE:\t8 kB\n");
            let expected = Memory {
                rss: Some(7 << 10),
                page_tables: Some(8 << 10),
                ..Memory::default()
            };
            assert_eq!(parse_memory(text.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn user_and_numbers() {
        let text = b"Name:\tpostgres\nPid:\t4711\nUid:\t1000\t105\t0\t105\nGid:\t7\t7\t7\t7\nNSpid:\t4711\t17\t1\nVmPeak:\t 12 kB\n";
        let expected = Identity {
            uid: Some(105),
            only_uid: None,
            only_gid: Some(7),
            numbers: vec![4711, 17, 1],
        };
        assert_eq!(parse_identity(text), expected);
        let setgid = parse_identity(b"Uid:\t5\t5\t5\t5\nGid:\t7\t42\t42\t42\n");
        assert_eq!((setgid.only_uid, setgid.only_gid), (Some(5), None));
        assert_eq!(parse_identity(b"Name:\tpostgres\n"), Identity::default());
    }

    #[test]
    fn bounding_set_is_a_mask() {
        for (text, expected) in [
            (
                "CapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\n",
                Some(false),
            ),
            (
                "CapEff:\t0000000000000000\nCapBnd:\t0000000001000000\n",
                Some(true),
            ),
            ("CapBnd:\t0\n", Some(false)),
            ("CapBnd:\tx\n", None),
            ("CapEff:\t000001ffffffffff\n", None),
        ] {
            assert_eq!(
                parse_can_gain_resource(text.as_bytes()),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn allowed_nodes() {
        let text = b"Name:\tx\nMems_allowed:\t00000000,00000005\nMems_allowed_list:\t0,2\n";
        assert_eq!(parse_allowed_nodes(text), Ok(list::parse(b"0,2")));
        assert_eq!(parse_allowed_nodes(b"Name:\tx\n"), Ok(None));
        assert_eq!(parse_allowed_nodes(b"Mems_allowed_list:\t-1\n"), Err(1));
    }

    #[test]
    fn invalid_line_of_identity_has_no_value() {
        for text in ["Uid:\t0\t-1\nNSpid:\t7\t1\n", "Uid:\t0\nNSpid:\t7\t1\n"] {
            let expected = Identity {
                numbers: vec![7, 1],
                ..Identity::default()
            };
            assert_eq!(parse_identity(text.as_bytes()), expected, "{text}");
        }
        for text in ["NSpid:\t\n", "NSpid:\t4294967296\n", "NSpid:\t1 x\n"] {
            assert_eq!(parse_identity(text.as_bytes()), Identity::default());
        }
    }
}
