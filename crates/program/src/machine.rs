//! Reads the server and its machine.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    sync::Arc,
    time::Duration,
};

use advice::{
    model::machine::{Machine, ServerState},
    shared_thp_may_be_used,
};
use host::{
    linux::{
        boot::{NextBoot, is_etc_kept},
        cgroup::memory,
        container,
        error::{Absence, Absent, ReadError, fact},
        numa::node,
        process::{
            Process, children, maps, numa_maps, oom_score,
            segment::{self, Segment},
            smaps, stat,
            status::{self, Memory},
            through,
        },
        root::Root,
        text::parse_number,
        transparent_hugepage,
    },
    next_start::failed_start::FailedStart,
    server::{
        configuration::{self, Values},
        connection::Connection,
        facts::{Facts, Subject},
        instances::{self, Instance},
        postmaster_arguments, postmaster_pid,
        setting::{Setting, SettingSource},
        state::{Files, HugePages, NextSettings, ProcessFigures, Server, SharedMemoryType, State},
        visibility,
    },
    units::{parse_size, setting_value},
};
use rustix::time::{ClockId, clock_gettime};

use crate::{
    error::Error,
    is_root,
    next_start::NextStart,
    planned::{Detail, Settings, WATCHED, sizing},
    reservations::has_started,
    root,
    search::{self, Found},
    target::Target,
};

/// A server that runs, with its processes.
pub(crate) struct RunningServer {
    pub(crate) machine: Machine,
    pub(crate) members: Vec<Member>,
    pub(crate) subject: Subject,
    pub(crate) is_recovering: bool,
    /// From `PG_VERSION`. Empty: unknown.
    pub(crate) major_version: String,
}

/// Reads a server that runs, and its processes, for a report.
pub(crate) fn read_running(pid: u32, options: &crate::Server) -> Result<RunningServer, Error> {
    let root = root();
    search::start();
    let running = Running::open(&root, pid)?;
    // A number, because the file could be a link to any other.
    let version = running.process.read_regular("cwd/PG_VERSION").ok();
    let version = version.and_then(|bytes| parse_number(bytes.trim_ascii()));
    Ok(RunningServer {
        machine: running.machine(&root, options)?,
        subject: Subject {
            postmaster: Some(pid),
            address: running.address,
        },
        is_recovering: running.is_recovering(),
        major_version: version.map_or(String::new(), |number| number.to_string()),
        members: running.members,
    })
}

pub(crate) fn read(target: &Target, options: &crate::Server) -> Result<Machine, Error> {
    let options = target.options(options);
    let Some(pid) = target.postmaster else {
        let next = NextStart::read(&options, Detail::All)?;
        return stopped(&next, ServerState::Stopped);
    };
    let root = root();
    search::start();
    Running::open(&root, pid)?.machine(&root, &options)
}

/// A server that runs, with a known next start.
pub(crate) fn before_restart(pid: u32, next: &NextStart) -> Result<Machine, Error> {
    let root = root();
    search::start();
    let running = Running::open(&root, pid)?;
    let now = running.probable(Some(next))?;
    running.with(&root, &now, Ok(Some(next)))
}

/// The next start of a server that runs, if its files have not changed: as it runs now.
pub(crate) fn next_start_as_now(pid: u32) -> Result<Option<NextStart>, Error> {
    let running = Running::open(&root(), pid)?;
    let values = running.unchanged_values()?;
    let now = values.and_then(|values| running.started_with(&values));
    let data = fact(running.process.link("cwd"))?.ok();
    Ok(now.zip(data).map(|(now, data)| NextStart {
        version: String::new(),
        data_directory: Some(OsString::from_vec(data).into()),
        settings: Ok(now),
        from_files: None,
        options: Vec::new(),
        is_running: true,
        starts_at_boot: true,
        owner: running.owner,
    }))
}

/// A server that does not run, as if it were started from this process: with the same cgroups, NUMA
/// nodes and environment.
///
/// Errors: processes of its last run still have its memory.
pub(crate) fn stopped(next: &NextStart, server_state: ServerState) -> Result<Machine, Error> {
    if let Some(data) = &next.data_directory
        && let Err(error @ Error::Refused(_)) = has_started(data, next.owner)
    {
        return Err(error);
    }
    let root = root();
    search::start();
    let settings = next.settings.as_ref().ok();
    let unknown = || Server {
        huge_pages: HugePages::Try,
        shared_memory_type: SharedMemoryType::Mmap,
        huge_page_size_bytes: None,
        shared_memory_bytes: 0,
    };
    let server = settings.map_or_else(unknown, |settings| settings.server.clone());
    let nobody = Subject {
        postmaster: None,
        address: 0,
    };
    let facts = Facts::read(&root, server.clone(), &nobody)?.with_host(&root)?;
    // No session can change a setting.
    let places = settings.map_or_else(BTreeMap::new, |settings| {
        watched(settings, |name| {
            let source = settings.sources.get(name);
            source.cloned().unwrap_or(SettingSource::File(None))
        })
    });
    let facts = facts.with_pod_limits(|name| std::env::var_os(name));
    let facts = completed(&root, facts, None, next.owner, settings, places)?;
    let this = fact(Process::this(&root))?;
    let state = State {
        next: NextSettings {
            server: Some(server),
            files: prevents_start(next).unwrap_or_default(),
            ..facts.state.next
        },
        // It has no memory yet.
        segment: Ok(Segment {
            bytes: 0,
            page_bytes: Some(facts.state.base_page_bytes),
            mappings: 0,
        }),
        memory_limits: through(this.as_ref(), |this| memory::read(&root, this))?,
        ..facts.state
    };
    let mut machine = Machine::new(Facts { state, ..facts });
    machine.server_state = server_state;
    Ok(machine)
}

/// Adds the facts about the host that are the same for a server that runs and one that does not.
/// `places` are its settings, with the place to change them.
fn completed(
    root: &Root,
    facts: Facts,
    own: Option<u32>,
    owner: Option<u32>,
    settings: Option<&Settings>,
    places: BTreeMap<&'static str, Setting>,
) -> Result<Facts, ReadError> {
    let next_boot = NextBoot::read(root, facts.state.kernel(), is_etc_kept(root)?)?;
    Ok(Facts {
        is_whole: true,
        nodes: fact(node::read(root, || ()))?,
        is_container: container::is_container(root)?,
        visibility: visibility::read(root)?,
        max_connections: settings.map_or(0, |settings| settings.max_connections),
        shared_buffers_bytes: settings.map_or(0, |settings| settings.shared_buffers_bytes),
        state: State {
            next_boot,
            other_servers: other_servers(own, owner)?,
            next: NextSettings {
                settings: places,
                ..NextSettings::default()
            },
            ..facts.state
        },
        ..facts
    })
}

/// The other servers. For root, those of users other than `owner` are foreign, unless the
/// configuration of the host names them.
fn other_servers(
    own: Option<u32>,
    owner: Option<u32>,
) -> Result<Result<Vec<Instance>, Absent>, ReadError> {
    let found = search::servers(own)?;
    // Several processes can claim the same memory.
    let mut objects = HashSet::new();
    let server = |found: Found| Instance {
        is_foreign: is_root() && found.cluster.is_none() && owner != found.instance.owner_uid,
        allocated: (found.instance.allocated).filter(|(object, _)| objects.insert(*object)),
        ..found.instance
    };
    Ok(found.map(|found| found.into_iter().map(server).collect()))
}

/// Files with which the server would not start. `None`: it would.
fn prevents_start(next: &NextStart) -> Option<Files> {
    let refusal = next.settings.as_ref().err()?;
    Some(Files::Refused(refusal.clone().into_sentence()))
}

/// The settings that advice is about.
fn watched(
    settings: &Settings,
    source: impl Fn(&str) -> SettingSource,
) -> BTreeMap<&'static str, Setting> {
    let server = &settings.server;
    let huge_page_size = server.huge_page_size_bytes.unwrap_or_default();
    let values = [
        server.huge_pages.as_str().to_owned(),
        setting_value(huge_page_size),
        server.shared_memory_type.as_str().to_owned(),
        settings.max_connections.to_string(),
        setting_value(settings.shared_buffers_bytes),
    ];
    let values = WATCHED.into_iter().zip(values);
    values
        .map(|(name, value)| {
            let source = source(name);
            (name, Setting { value, source })
        })
        .collect()
}

/// A server that runs.
struct Running {
    process: Process,
    /// An address in the main segment.
    address: u64,
    shared_memory_type: SharedMemoryType,
    segment: Result<Segment, Absent>,
    command_line: Vec<u8>,
    start_time: u64,
    /// The user of the server.
    owner: Option<u32>,
    members: Vec<Member>,
}

impl Running {
    /// Errors: the memory of the process cannot be read.
    fn open(root: &Root, pid: u32) -> Result<Self, Error> {
        let process = Process::open(root, pid)?;
        let mut buffer = Vec::new();
        let found =
            process.parse_whole("maps", &mut buffer, maps::EXPECTED, instances::main_segment);
        let (address, shared_memory_type) = match fact(found)? {
            Ok(Some(found)) => found,
            Ok(None) => {
                return Err(Error::new(format!(
                    "the server with PID {pid} has no shared memory yet"
                )));
            }
            Err(absent) if absent.why == Absence::Denied => {
                return Err(Error::with_hint(
                    format!("the memory of the server with PID {pid} cannot be read"),
                    "Run this as the user of the server, or as root",
                ));
            }
            Err(absent) => return Err(Error::new(absent.to_string())),
        };
        // Not a kernel file: any error means that there is no such file.
        let file = process.read_regular("cwd/postmaster.pid").ok();
        let lock_file = file.and_then(|bytes| postmaster_pid::parse(&bytes));
        Ok(Self {
            address,
            shared_memory_type,
            segment: fact(segment::read(&process, address))?,
            command_line: process.raw_command_line(&mut buffer)?.to_vec(),
            start_time: lock_file.map_or(0, |file| file.start_time),
            owner: fact(status::read_identity(&process, &mut buffer))?
                .ok()
                .and_then(|identity| identity.uid),
            members: members(root, &process)?,
            process,
        })
    }

    /// The settings in the files, if none has changed since the start. Their sources of higher
    /// precedence cannot change while the server runs.
    fn unchanged_values(&self) -> Result<Option<Values>, ReadError> {
        let start_time = self.start_time.min(start_by_clock(&self.process)?);
        Ok(configuration::unchanged_since(
            &self.process,
            start_time,
            &self.command_line,
        ))
    }

    fn is_recovering(&self) -> bool {
        ["cwd/standby.signal", "cwd/recovery.signal"]
            .iter()
            .any(|name| self.process.read_regular(name).is_ok())
    }

    fn machine(&self, root: &Root, options: &crate::Server) -> Result<Machine, Error> {
        let unchanged = match options.settings.as_slice() {
            [] => self
                .unchanged_values()?
                .and_then(|values| self.started_with(&values)),
            // A start with other settings.
            _ => None,
        };
        let is_found = options.is_only_found;
        let has_options = !sizing(&self.command_line).is_empty();
        let mut machine = match unchanged {
            Some(now) if is_found || !has_options => self.with(root, &now, Ok(None))?,
            None if is_found && options.settings.is_empty() => {
                self.with(root, &self.probable(None)?, Err(options.named_by()))?
            }
            // The programs of PostgreSQL can be out of reach, as for a server in a container.
            Some(now) => {
                let next = NextStart::read_quietly(options, Detail::All)
                    .inspect_err(|error| {
                        eprintln!(
                            "NOTICE:  the effect of a start without the options of the command \
                             line is unknown: {}",
                            error.indented()
                        );
                    })
                    .ok();
                self.with(root, &now, Ok(next.as_ref()))?
            }
            None => {
                let next = NextStart::read_quietly(options, Detail::All)?;
                self.with(root, &self.probable(Some(&next))?, Ok(Some(&next)))?
            }
        };
        if is_found {
            // No command that root types reaches a server that nobody has named.
            Arc::make_mut(&mut machine.facts).connection = Connection::default();
        }
        Ok(machine)
    }

    /// `next`: `None` if the settings have not changed. Errors: the command that computes it.
    fn with(
        &self,
        root: &Root,
        now: &Settings,
        next: Result<Option<&NextStart>, String>,
    ) -> Result<Machine, Error> {
        let (server, segment) = (now.server.clone(), self.segment.clone());
        let facts = Facts::of_process(root, server, Ok(&self.process), segment)?;
        let facts = facts.with_postmaster(root, Ok(&self.process))?;
        let places = watched(now, |name| {
            match postmaster_arguments::setting(&self.command_line, name) {
                Some(_) => SettingSource::CommandLine,
                None => SettingSource::File(None),
            }
        });
        let own = Some(self.process.pid());
        let environment = fact(self.process.environment(&mut Vec::new()))?;
        let facts = facts.with_pod_limits(|name| {
            let mut variables = environment.iter().flatten();
            let value = |variable: &Vec<u8>| {
                let value = variable.strip_prefix(name.as_bytes())?;
                Some(OsString::from_vec(value.strip_prefix(b"=")?.to_vec()))
            };
            variables.find_map(value)
        });
        let facts = completed(root, facts, own, self.owner, Some(now), places)?;
        let mut facts = self.with_segment(root, facts)?;
        let is_changed = |next: &Server| !facts.state.is_as_now(next);
        match next {
            Err(command) => facts.state.next.files = Files::NotNamed(command),
            Ok(None) => {}
            Ok(Some(next)) => {
                let settings = next.settings.as_ref().ok();
                let server = settings.map(|settings| settings.server.clone());
                let from_files = next.from_files.clone();
                facts.state.next.server = server.filter(is_changed);
                facts.state.next.files = prevents_start(next).unwrap_or_default();
                facts.state.next = facts.state.next.with_start_from_files(
                    from_files.map(|start| start.map_err(FailedStart::into_sentence)),
                );
            }
        }
        Ok(Machine::new(facts))
    }

    /// The settings with which the server runs, from files that have not changed. `None`: a value
    /// has an unusual form.
    fn started_with(&self, values: &Values) -> Option<Settings> {
        let value = |name, default| values.get(name).map_or(default, String::as_str);
        let size = parse_size(value("huge_page_size", "0"), 1 << 10)?;
        let server = Server {
            huge_pages: HugePages::parse(value("huge_pages", "try"))?,
            shared_memory_type: self.shared_memory_type,
            huge_page_size_bytes: Some(size).filter(|bytes| *bytes > 0),
            shared_memory_bytes: self.stated_bytes()?,
        };
        Some(Settings {
            max_connections: value("max_connections", "100").parse().ok()?,
            // A number without a unit counts blocks.
            shared_buffers_bytes: parse_size(value("shared_buffers", "128MB"), 8 << 10)?,
            ..Settings::of(server)
        })
    }

    /// The settings with which the server probably runs, if its files have changed. Its memory
    /// excludes some values.
    fn probable(&self, next: Option<&NextStart>) -> Result<Settings, Error> {
        let settings = next.and_then(|next| next.settings.as_ref().ok());
        let (stated, page) = match &self.segment {
            Ok(segment) => (self.stated_bytes(), segment.page_bytes),
            Err(_) => (None, None),
        };
        let is_huge = page.is_some_and(|page| page > host::linux::pages::base_page_bytes());
        let given = postmaster_arguments::setting(&self.command_line, "huge_pages");
        let given = given.and_then(|value| HugePages::parse(std::str::from_utf8(value).ok()?));
        let huge_pages = given.or(settings.map(|settings| settings.server.huge_pages));
        let huge_pages = match (huge_pages, is_huge) {
            (Some(HugePages::Off), true) | (Some(HugePages::On), false) | (None, _) => {
                HugePages::Try
            }
            (Some(next), _) => next,
        };
        let size = settings.and_then(|settings| settings.server.huge_page_size_bytes);
        let missing = || Error::new("the size of the main shared memory segment is unknown");
        let server = Server {
            huge_pages,
            shared_memory_type: self.shared_memory_type,
            huge_page_size_bytes: size.filter(|size| !is_huge || page == Some(*size)),
            shared_memory_bytes: stated.ok_or_else(missing)?,
        };
        Ok(Settings {
            max_connections: settings.map_or(0, |settings| settings.max_connections),
            shared_buffers_bytes: settings.map_or(0, |settings| settings.shared_buffers_bytes),
            ..Settings::of(server)
        })
    }

    /// The size of the segment in whole MB, as PostgreSQL states it.
    fn stated_bytes(&self) -> Option<u64> {
        self.segment
            .as_ref()
            .ok()?
            .bytes
            .checked_next_multiple_of(1 << 20)
    }

    /// Adds the facts about the main segment and the processes of the server.
    fn with_segment(&self, root: &Root, facts: Facts) -> Result<Facts, ReadError> {
        let mut buffer = Vec::new();
        let postmaster = &self.process;
        let largest = self
            .members
            .iter()
            .max_by_key(|member| member.memory.shared_faulted_in());
        let largest = match largest {
            Some(member) => children::member(root, postmaster.pid(), member.pid, &mut buffer)?,
            None => None,
        };
        let largest = largest.as_ref().map_or(postmaster, |(process, _)| process);
        let has_several_nodes = facts.nodes.as_ref().is_ok_and(|nodes| nodes.len() > 1);
        let may_be_transparent = shared_thp_may_be_used(&facts.state);
        let mappings = match has_several_nodes || may_be_transparent {
            true => fact(segment::mappings(largest, self.address, &mut buffer))?,
            false => Err(Absent::not_looked_at()),
        };
        let pmd_bytes = fact(transparent_hugepage::pmd_bytes(root))?.ok();
        let object = fact(segment::object(postmaster, self.address))?.ok();
        let state = State {
            processes: self.members.iter().map(|member| member.figures).collect(),
            segment_nodes: match &mappings {
                Ok(mappings) if has_several_nodes => {
                    fact(numa_maps::pages_by_node(largest, mappings, || ()))?.ok()
                }
                _ => None,
            },
            segment_thp_bytes: match &mappings {
                Ok(mappings) if may_be_transparent => {
                    Some(fact(smaps::thp_bytes(largest, mappings))?)
                }
                Err(absent) if may_be_transparent => Some(Err(absent.clone())),
                _ => None,
            },
            ..facts.state
        };
        Ok(Facts {
            state,
            is_segment_aligned: object
                .zip(pmd_bytes)
                .map(|(object, bytes)| object.origin().is_multiple_of(bytes)),
            allows_alter_system: true,
            ..facts
        })
    }
}

/// The processes of the server: those that run the same program in the same directory.
fn members(root: &Root, server: &Process) -> Result<Vec<Member>, ReadError> {
    let postmaster = server.pid();
    let uptime = u64::try_from(rustix::system::sysinfo().uptime).ok();
    let identity = |process: &Process| {
        Ok::<_, ReadError>(
            fact(process.program())?
                .ok()
                .zip(fact(process.working_directory())?.ok()),
        )
    };
    let own = identity(server)?;
    let mut buffer = Vec::new();
    let mut members = Vec::new();
    for pid in children::pids(root, postmaster, [], || ())? {
        let Some((process, stat)) = children::member(root, postmaster, pid, &mut buffer)? else {
            continue;
        };
        if identity(&process)? != own {
            continue;
        }
        let Ok(memory) = fact(status::read_memory(&process, &mut buffer))? else {
            continue;
        };
        let oom_score_adj = fact(oom_score::score_adj(&process, &mut buffer))?.ok();
        let title = fact(process.command_line(&mut buffer))?.unwrap_or_default();
        let figures = ProcessFigures {
            oom_score_adj,
            is_postmaster: pid == postmaster,
            is_client_backend: is_title_of_client_backend(title),
            ..ProcessFigures::of(&memory, &stat, uptime)
        };
        // Not the opened process: a server can have more than the limit on open files.
        members.push(Member {
            pid,
            memory,
            figures,
        });
    }
    Ok(members)
}

/// Returns the start of a process in seconds since 1970, by the clock as it is set now. The clock
/// could have been set back since the start.
fn start_by_clock(process: &Process) -> Result<u64, ReadError> {
    let ticks = stat::read(process, &mut Vec::new())?.start_ticks;
    let since_boot = ticks
        .saturating_mul(1000)
        .checked_div(rustix::param::clock_ticks_per_second());
    let since_boot = Duration::from_millis(since_boot.unwrap_or_default());
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let boot = read(ClockId::Realtime).saturating_sub(read(ClockId::Boottime));
    Ok(boot.saturating_add(since_boot).as_secs())
}

/// A process of the server.
pub(crate) struct Member {
    pub(crate) pid: u32,
    pub(crate) memory: Memory,
    pub(crate) figures: ProcessFigures,
}

/// The title of a client backend has the address of the client: `postgres: alice db [local] idle`
/// (utils/misc/ps_status.c, postmaster/postmaster.c `BackendInitialize`).
fn is_title_of_client_backend(title: &[u8]) -> bool {
    let Some(title) = title.strip_prefix(b"postgres: ") else {
        return false;
    };
    let is_address = |word: &[u8]| {
        word == b"[local]"
            || word.ends_with(b")")
                && word
                    .iter()
                    .rposition(|&byte| byte == b'(')
                    .is_some_and(|open| {
                        let port = &word[open + 1..word.len() - 1];
                        open > 0 && !port.is_empty() && port.iter().all(u8::is_ascii_digit)
                    })
    };
    let mut words = title.split(|&byte| byte == b' ');
    let is_sender = |word: &[u8]| word == b"walsender";
    !words.clone().any(is_sender) && words.any(is_address)
}
