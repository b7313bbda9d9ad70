//! Classifies the mappings of a PostgreSQL process by their use.

use crate::linux::{
    error::{ReadError, absent_or},
    process::{Process, maps::Extent, segment, smaps::Entry},
};

/// The use of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingKind {
    /// The main shared memory segment, with any name.
    MainSegment,
    /// The small System V segment that guards the data directory.
    SysvShim,
    /// Dynamic shared memory, of any `dynamic_shared_memory_type`.
    DynamicSharedMemory,
    /// `brk` memory.
    Heap,
    /// The stack of the main thread.
    Stack,
    /// Memory without a file.
    Anonymous,
    /// The executable file of the process.
    Executable,
    /// A shared library.
    Library,
    /// Any other file.
    File,
    /// Kernel memory such as `[vdso]`.
    Kernel,
}

impl MappingKind {
    /// The value shown in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MainSegment => "main segment",
            Self::SysvShim => "sysv shim",
            Self::DynamicSharedMemory => "dynamic shared memory",
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::Executable => "executable",
            Self::Library => "library",
            Self::File => "file",
            Self::Kernel => "kernel",
        }
    }
}

/// Facts that identify mappings of one process, by address because names are ambiguous.
#[derive(Debug, Clone, Default)]
pub struct Landmarks {
    /// A mapping of the main segment.
    pub main: Option<Extent>,
    /// The mapping of the System V segment.
    pub shim: Option<Extent>,
    /// The target of `/proc/PID/exe`.
    pub executable: Option<Vec<u8>>,
}

impl Landmarks {
    /// Reads the facts. `main` and `shim` are addresses inside these segments of the process.
    ///
    /// Errors: as for [`segment::object`], except that an absent segment has no mapping.
    pub fn of(process: &Process, main: u64, shim: u64) -> Result<Self, ReadError> {
        let holding = |address| absent_or(segment::object(process, address));
        Ok(Self {
            main: holding(main)?.ok(),
            shim: holding(shim)?.ok(),
            executable: absent_or(process.executable())?.ok(),
        })
    }

    /// Returns the use of a mapping.
    pub fn kind(&self, entry: &Entry) -> MappingKind {
        let extent = &entry.mapping.extent;
        let path = entry.mapping.path.as_slice();
        let is_part_of =
            |whole: &Option<Extent>| whole.is_some_and(|whole| whole.is_same_object(extent));
        if is_part_of(&self.main) {
            return MappingKind::MainSegment;
        }
        if is_part_of(&self.shim) {
            return MappingKind::SysvShim;
        }
        match path {
            b""
            | b"/dev/zero"
            | b"/dev/zero (deleted)"
            | b"/anon_hugepage"
            | b"/anon_hugepage (deleted)" => MappingKind::Anonymous,
            b"[heap]" => MappingKind::Heap,
            b"[stack]" => MappingKind::Stack,
            // The stack of a thread, before Linux 4.5.
            [b'[', name @ ..] if name.starts_with(b"stack:") => MappingKind::Stack,
            // Mappings of kernel descriptors: [io_uring], [perf_event].
            _ if path.starts_with(b"anon_inode:") => MappingKind::Kernel,
            [b'[', name @ ..] if name.starts_with(b"anon") => MappingKind::Anonymous,
            [b'[', ..] => MappingKind::Kernel,
            _ if is_dynamic_shared_memory(path) => MappingKind::DynamicSharedMemory,
            _ if self.executable.as_deref() == Some(path) => MappingKind::Executable,
            _ if is_library(path) => MappingKind::Library,
            _ => MappingKind::File,
        }
    }
}

/// The types `posix`, `mmap` and `sysv` (storage/ipc/dsm_impl.c).
fn is_dynamic_shared_memory(path: &[u8]) -> bool {
    let contains = |part: &[u8]| path.windows(part.len()).any(|window| window == part);
    path.starts_with(b"/dev/shm/PostgreSQL.")
        || contains(b"/pg_dynshmem/mmap.")
        || path.starts_with(b"/SYSV")
}

/// `libc.so.6`, `plpgsql.so`, `ld-linux-x86-64.so.2 (deleted)`.
fn is_library(path: &[u8]) -> bool {
    let name = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let name = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
    name.ends_with(b".so") || name.windows(4).any(|window| window == b".so.")
}

#[cfg(test)]
mod tests {
    use crate::linux::process::{maps::parse_line, smaps::Figures};

    use super::*;

    fn entry(line: &str) -> Entry {
        let mapping = parse_line(line.as_bytes()).expect("a mapping");
        Entry {
            mapping,
            figures: Figures::default(),
        }
    }

    #[test]
    fn main_segment_is_recognized_by_its_address() {
        for name in [
            "/dev/zero (deleted)",
            "/anon_hugepage (deleted)",
            "/SYSV0052e2c1 (deleted)",
        ] {
            let entries = [
                entry(&format!(
                    "7f0000000000-7f0010000000 rw-s 00000000 00:01 42 {name}"
                )),
                entry(&format!(
                    "7f0010000000-7f0020000000 rw-s 10000000 00:01 42 {name}"
                )),
                // Its ID can be equal to the inode of the main segment (ipc/shm.c).
                entry("7f0020000000-7f0020001000 rw-s 00000000 00:01 42 /SYSV0052e2c1 (deleted)"),
                entry("7f0030000000-7f0030001000 rw-s 00000000 00:01 9 /SYSV5f02e2c1 (deleted)"),
                entry("7f0040000000-7f0040001000 rw-s 00000000 00:01 77 /dev/zero (deleted)"),
            ];
            let landmarks = Landmarks {
                main: Some(entries[1].mapping.extent),
                shim: Some(entries[2].mapping.extent),
                executable: None,
            };
            let kinds: Vec<_> = entries.iter().map(|entry| landmarks.kind(entry)).collect();
            assert_eq!(
                kinds,
                [
                    MappingKind::MainSegment,
                    MappingKind::MainSegment,
                    MappingKind::SysvShim,
                    MappingKind::DynamicSharedMemory,
                    MappingKind::Anonymous
                ]
            );
        }
    }

    #[test]
    fn other_mappings_are_classified_by_name() {
        let landmarks = Landmarks {
            executable: Some(b"/usr/lib/postgresql/15/bin/postgres".to_vec()),
            ..Landmarks::default()
        };
        for (name, kind) in [
            ("", MappingKind::Anonymous),
            ("[heap]", MappingKind::Heap),
            ("[stack]", MappingKind::Stack),
            ("[anon:glibc: malloc]", MappingKind::Anonymous),
            ("[stack:4711]", MappingKind::Stack),
            ("anon_inode:[io_uring]", MappingKind::Kernel),
            ("[vdso]", MappingKind::Kernel),
            ("[vvar_vclock]", MappingKind::Kernel),
            (
                "/dev/shm/PostgreSQL.2349203",
                MappingKind::DynamicSharedMemory,
            ),
            (
                "/srv/pg data/pg_dynshmem/mmap.17 (deleted)",
                MappingKind::DynamicSharedMemory,
            ),
            (
                "/usr/lib/postgresql/15/bin/postgres",
                MappingKind::Executable,
            ),
            (
                "/usr/lib/postgresql/15/lib/plpgsql.so",
                MappingKind::Library,
            ),
            ("/usr/lib/libc.so.6 (deleted)", MappingKind::Library),
            ("/usr/lib/locale/locale-archive", MappingKind::File),
            ("/srv/.sorted", MappingKind::File),
        ] {
            let line = format!("7f0000000000-7f0000001000 r--p 00000000 fe:00 42 {name}");
            let line = if name.starts_with('/') {
                line
            } else {
                line.replace(" fe:00 42", " 00:00 0")
            };
            assert_eq!(landmarks.kind(&entry(&line)), kind, "{name}");
        }
    }
}
