//! Every PostgreSQL server on the host, also of other users, as `/proc` shows them.

use std::collections::{HashMap, HashSet, TryReserveError};

use crate::{
    linux::{
        error::{ReadError, absent_or},
        growth::{TryPush, try_collect},
        passwd,
        process::{
            Process,
            maps::{self, Mapping},
            segment::{self, Segment},
            stat, status,
        },
        root::Root,
        text::lines,
    },
    server::{facts::SharedMemoryType, postmaster_pid},
};

/// One server. What may not be read, as most of another user's, is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its postmaster.
    pub pid: u32,
    /// The user that it runs as.
    pub owner_uid: Option<u32>,
    /// That user's name in `/etc/passwd`.
    pub owner: Option<String>,
    /// Where its postmaster works, which is its data directory.
    pub data_directory: Option<Vec<u8>>,
    /// The absolute path behind `-D`, which everybody may see. It can be that of the configuration
    /// files alone.
    pub directory_argument: Option<Vec<u8>>,
    /// From `postmaster.pid`.
    pub port: Option<u16>,
    /// Its main shared memory segment.
    pub segment: Option<Segment>,
    /// What that was made by, as the segment shows it.
    pub shared_memory_type: Option<SharedMemoryType>,
}

/// A process that may be a server's, as it shows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// The name of its program, as in parentheses in `stat`.
    pub name: Vec<u8>,
    /// Its arguments, each ended by a NUL, or the title that it has given itself.
    pub command_line: Vec<u8>,
    /// Where it works. `None`: that may not be seen.
    pub directory: Option<Vec<u8>>,
}

/// What the program of a server is called.
const PROGRAMS: [&[u8]; 3] = [b"postgres", b"postmaster", b"edb-postgres"];

/// All servers, by number. `own` is one for certain, whatever it is called; `children` are for
/// certain none, and are not opened.
///
/// Where `/proc` is mounted with `hidepid`, other users' are not seen. `check_for_interrupts`
/// is called for each process of the host, so that a caller can stop.
///
/// Errors: a file that is malformed or fails to be read; never one that is absent. A process that
/// ends meanwhile is left out.
pub fn read(
    root: &Root,
    own: Option<u32>,
    children: &HashSet<u32>,
    mut check_for_interrupts: impl FnMut(),
) -> Result<Vec<Instance>, ReadError> {
    let mut buffer = Vec::with_capacity(4096);
    let mut candidates = Vec::new();
    for pid in Process::numbers(root)? {
        if children.contains(&pid) && own != Some(pid) {
            continue;
        }
        check_for_interrupts();
        let found = absent_or(candidate(root, pid, own, &mut buffer))?;
        if let Ok(Some(found)) = found {
            candidates.try_push(found)?;
        }
    }
    let mut pids = postmasters(&candidates)?;
    pids.extend(own.filter(|own| candidates.iter().any(|c| c.pid == *own)));
    pids.sort_unstable();
    pids.dedup();

    let users = absent_or(passwd::read(root))?.unwrap_or_default();
    let of = |pid| candidates.iter().find(|candidate| candidate.pid == pid);
    let mut instances = Vec::new();
    for candidate in pids.into_iter().filter_map(of) {
        check_for_interrupts();
        if let Ok(mut instance) = absent_or(instance(root, candidate, &mut buffer))? {
            let name = instance.owner_uid.and_then(|uid| users.name(uid));
            instance.owner = name.map(str::to_owned);
            instances.push(instance);
        }
    }
    Ok(instances)
}

/// The process, if its program is called as a server's, or it is `own`.
fn candidate(
    root: &Root,
    pid: u32,
    own: Option<u32>,
    buffer: &mut Vec<u8>,
) -> Result<Option<Candidate>, ReadError> {
    let process = Process::open(root, pid)?;
    let (stat, name) = stat::read_with_name(&process, buffer)?;
    if !PROGRAMS.contains(&name.as_slice()) && own != Some(pid) {
        return Ok(None);
    }
    Ok(Some(Candidate {
        pid,
        parent: stat.parent,
        name,
        command_line: process.raw_command_line(buffer)?.to_vec(),
        directory: absent_or(process.link("cwd"))?.ok(),
    }))
}

/// The numbers of those that are postmasters.
///
/// Not: children, which have given themselves a title or, just forked, still look like their
/// parent; the program run for something else than to be a server; a script of that name. A second
/// server whose parent is another's postmaster, as in a container where that is process 1, is one.
///
/// Errors: not enough memory.
pub fn postmasters(candidates: &[Candidate]) -> Result<Vec<u32>, TryReserveError> {
    let mut by_pid = HashMap::new();
    for candidate in candidates {
        by_pid.try_reserve(1)?;
        by_pid.insert(candidate.pid, candidate);
    }
    let looks_like_its_parent = |child: &Candidate| {
        by_pid.get(&child.parent).is_some_and(|parent| {
            child.command_line == parent.command_line
                && (child.directory == parent.directory
                    || child.directory.is_none()
                    || parent.directory.is_none())
        })
    };
    let postmasters = candidates
        .iter()
        .filter(|candidate| PROGRAMS.contains(&candidate.name.as_slice()))
        .filter(|candidate| serves(&candidate.command_line) && !looks_like_its_parent(candidate));
    try_collect(postmasters.map(|candidate| Ok(candidate.pid)))
}

/// Whether these are the arguments of a server: of one of its programs, and not those that make it
/// do something else and end.
fn serves(command_line: &[u8]) -> bool {
    let mut arguments = arguments(command_line);
    let program = arguments.next().unwrap_or_default();
    let name = program.rsplit(|&b| b == b'/').next().unwrap_or_default();
    // A title such as `postgres: checkpointer`, under which the rest of the arguments may still be
    // seen.
    let is_title = PROGRAMS.iter().any(|name| {
        let rest = program.strip_prefix(*name);
        rest.is_some_and(|rest| rest.starts_with(b":"))
    });
    // A script's interpreter, or nothing: it has ended.
    if is_title || !PROGRAMS.contains(&name) {
        return false;
    }
    let mut arguments = arguments.peekable();
    // Those that PostgreSQL knows in the first place only (main/main.c).
    let first = arguments.peek().copied().unwrap_or_default();
    let does_something_else = [
        &b"--single"[..],
        b"--boot",
        b"--check",
        b"--describe-config",
        b"--help",
        b"-?",
        b"--version",
        b"-V",
    ];
    if does_something_else.contains(&first) || first.starts_with(b"--fork") {
        return false;
    }
    let mut is_value = false;
    for argument in arguments {
        if is_value {
            is_value = false;
        } else if argument.starts_with(b"-C") {
            return false;
        } else {
            is_value = takes_next(argument);
        }
    }
    true
}

/// Whether the value of an option is the next argument: `-D DIR`, unlike `-DDIR`, `-F`, `--port=1`.
fn takes_next(argument: &[u8]) -> bool {
    // postmaster/postmaster.c
    matches!(argument, [b'-', letter] if b"BcdDfhkNprStWo".contains(letter))
}

fn arguments(command_line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = command_line.strip_suffix(b"\0").unwrap_or(command_line);
    end.split(|&b| b == 0)
}

/// The absolute path behind `-D`. It can be that of the configuration files alone, where these say
/// where the data is.
pub fn directory_argument(command_line: &[u8]) -> Option<&[u8]> {
    let mut arguments = arguments(command_line).skip(1);
    let mut directory = None;
    while let Some(argument) = arguments.next() {
        if argument == b"-D" {
            directory = arguments.next();
        } else if let Some(value) = argument.strip_prefix(b"-D") {
            directory = Some(value);
        } else if takes_next(argument) {
            arguments.next();
        }
    }
    directory.filter(|path| path.starts_with(b"/"))
}

fn instance(
    root: &Root,
    candidate: &Candidate,
    buffer: &mut Vec<u8>,
) -> Result<Instance, ReadError> {
    let pid = candidate.pid;
    let process = Process::open(root, pid)?;
    let identity = status::read_identity(&process, buffer)?;
    let own_number = identity.numbers.last().copied().unwrap_or(pid);
    // No kernel's file: whatever is wrong with it, the server is there.
    let lock_file = process.read_regular("cwd/postmaster.pid").ok();
    let port = lock_file
        .and_then(|bytes| postmaster_pid::parse(&bytes))
        .filter(|file| file.pid == own_number)
        .map(|file| file.port);
    let main = process.parse_whole("maps", buffer, maps::EXPECTED, main_segment);
    let main = absent_or(main)?.ok().flatten();
    let segment = match main {
        Some((address, _)) => absent_or(segment::read(&process, address))?.ok(),
        None => None,
    };
    // One that has ended meanwhile is left out.
    stat::read(&process, buffer)?;
    Ok(Instance {
        pid,
        owner_uid: identity.uid,
        owner: None,
        data_directory: candidate.directory.clone(),
        directory_argument: directory_argument(&candidate.command_line).map(<[u8]>::to_vec),
        port,
        segment,
        shared_memory_type: main.map(|(_, made_by)| made_by),
    })
}

/// An address in the main segment of a postmaster, by `maps`, and what that was made by: the
/// largest shared memory object, all its mappings together. `None`: there is none.
///
/// That there are others, such as the small System V segment that guards the data directory, is why
/// size decides. Errors: the number of a line that is not a mapping.
pub fn main_segment(maps: &[u8]) -> Result<Option<(u64, SharedMemoryType)>, usize> {
    let mut objects: Vec<(Mapping, u64)> = Vec::new();
    for (number, line) in lines(maps) {
        let mapping = maps::parse_line(line).ok_or(number)?;
        if !is_shared_memory(&mapping) {
            continue;
        }
        let extent = mapping.extent;
        match objects
            .iter_mut()
            .find(|(first, _)| first.extent.is_same_object(&extent))
        {
            Some((_, bytes)) => *bytes = bytes.saturating_add(extent.bytes()),
            None => objects.push((mapping, extent.bytes())),
        }
    }
    let largest = objects.into_iter().max_by_key(|(_, bytes)| *bytes);
    Ok(largest.map(|(first, _)| {
        let made_by = match first.path.starts_with(SYSTEM_V) {
            true => SharedMemoryType::Sysv,
            false => SharedMemoryType::Mmap,
        };
        (first.extent.start, made_by)
    }))
}

/// How the kernel names System V segments (ipc/shm.c `newseg`).
const SYSTEM_V: &[u8] = b"/SYSV";

fn is_shared_memory(mapping: &Mapping) -> bool {
    let name = mapping.path.as_slice();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let is_named = name == b"/anon_hugepage" || name == b"/dev/zero" || name.starts_with(SYSTEM_V);
    is_named && mapping.is_shared()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, name: &str, command_line: &str) -> Candidate {
        let mut command_line = command_line.replace(' ', "\0").into_bytes();
        command_line.push(0);
        Candidate {
            pid,
            parent,
            name: name.as_bytes().to_vec(),
            command_line,
            directory: None,
        }
    }

    fn titled(pid: u32, parent: u32, title: &str) -> Candidate {
        Candidate {
            command_line: format!("{title}\0\0\0").into_bytes(),
            ..process(pid, parent, "postgres", "")
        }
    }

    #[test]
    fn servers_and_their_children() {
        const MAIN: &str = "/usr/lib/postgresql/15/bin/postgres -D /var/lib/postgresql/15/main -c config_file=/etc/x";
        let all = [
            process(700, 1, "postgres", MAIN),
            titled(701, 700, "postgres: 15/main: checkpointer "),
            titled(702, 700, "postgres: 15/main: app app [local] idle"),
            // Just giving itself a title.
            process(
                704,
                1,
                "postgres",
                "postgres:/15/bin/postgres -D /var/lib/postgresql/15/main",
            ),
            // Just forked.
            process(703, 700, "postgres", MAIN),
            process(800, 1, "postmaster", "/usr/bin/postmaster -D /srv/data"),
            process(801, 1, "edb-postgres", "/opt/edb-postgres -D/srv/edb"),
            process(802, 1, "postgres", "postgres"),
            // What the planned configuration of 700 would need, asked for by one of its backends.
            process(
                900,
                702,
                "postgres",
                "/usr/lib/postgresql/15/bin/postgres -D /tmp/x -C shared_memory_size",
            ),
            process(901, 1, "postgres", "postgres -Cport -D /srv/data"),
            process(
                902,
                1,
                "postgres",
                "postgres --single -D /srv/data postgres",
            ),
            process(903, 1, "postgres", "postgres --boot -x 1"),
            process(904, 1, "postgres", "postgres --describe-config"),
            process(905, 1, "postgres", "postgres --version"),
            process(
                906,
                1,
                "postgres",
                "/bin/sh /usr/local/bin/postgres -D /srv/data",
            ),
            process(907, 1, "postgres_export", "postgres_exporter"),
            // It has ended.
            titled(908, 1, ""),
        ];
        assert_eq!(postmasters(&all), Ok(vec![700, 800, 801, 802]));
    }

    #[test]
    fn what_looks_like_an_option_can_be_a_value() {
        let all = [
            process(1, 0, "postgres", "postgres -D -C -p 5433"),
            process(2, 0, "postgres", "postgres -c -C --port=1"),
            process(3, 0, "postgres", "postgres -F -C port"),
        ];
        assert_eq!(postmasters(&all), Ok(vec![1, 2]));
    }

    #[test]
    fn a_server_that_another_has_inherited() {
        let in_directory = |pid, parent, directory: &str| Candidate {
            directory: Some(directory.as_bytes().to_vec()),
            ..process(pid, parent, "postgres", "postgres")
        };
        let all = [
            in_directory(1, 0, "/srv/a"),
            in_directory(20, 1, "/srv/a"),
            in_directory(30, 1, "/srv/b"),
            process(40, 1, "postgres", "postgres -D /srv/c"),
        ];
        assert_eq!(postmasters(&all), Ok(vec![1, 30, 40]));
    }

    #[test]
    fn the_directory_on_the_command_line() {
        for (command_line, directory) in [
            ("postgres\0-D\0/srv/pg data\0", Some("/srv/pg data")),
            ("postgres\0-D/srv/a\0-D\0/srv/b\0", Some("/srv/b")),
            ("postgres\0-c\0-D/srv/a\0", None),
            ("postgres\0-D\0data\0", None),
            ("postgres\0-D", None),
            ("postgres", None),
            ("", None),
        ] {
            assert_eq!(
                directory_argument(command_line.as_bytes()),
                directory.map(str::as_bytes),
                "{command_line:?}"
            );
        }
    }

    #[test]
    fn the_largest_shared_object_is_the_main_segment() {
        let maps = "\
            55cbefb1f000-55cbf0000000 r--p 00000000 fe:00 12 /usr/bin/postgres\n\
            7f0000000000-7f0000100000 rw-s 00000000 00:01 42 /dev/zero (deleted)\n\
            7f0000100000-7f0000300000 rw-s 00100000 00:01 42 /dev/zero (deleted)\n\
            7f0000300000-7f0000500000 rw-s 00000000 00:01 9 /SYSV5f02e2c1 (deleted)\n\
            7f0000500000-7f0000501000 rw-s 00000000 00:01 3 /SYSV0052e2c1 (deleted)\n\
            7f0001000000-7f0011000000 rw-p 00000000 00:01 7 /dev/zero (deleted)\n\
            7f0011000000-7f0021000000 rw-s 00000000 00:19 5 /dev/shm/PostgreSQL.1\n";
        let by_mmap = (0x7f00_0000_0000, SharedMemoryType::Mmap);
        assert_eq!(main_segment(maps.as_bytes()), Ok(Some(by_mmap)));
        let system_v = maps.lines().skip(3).take(2).collect::<Vec<_>>().join("\n");
        let by_system_v = (0x7f00_0030_0000, SharedMemoryType::Sysv);
        assert_eq!(main_segment(system_v.as_bytes()), Ok(Some(by_system_v)));
        assert_eq!(main_segment(b""), Ok(None));
        assert_eq!(main_segment(b"\nnonsense\n"), Err(2));
    }
}
