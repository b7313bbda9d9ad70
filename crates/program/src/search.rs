//! Searches for servers in a process of its own, for a limited time.
//!
//! A read of `maps` or `cmdline` in `/proc/PID` waits as long as that process holds the lock of its
//! memory, and any user can work in a directory of a file system that hangs. Not even SIGKILL ends
//! such a wait, so this process must not wait itself.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use clap::Args;
use host::{
    linux::{
        error::{Absence, Absent, ReadError, absent_or, fact},
        process::Process,
        root::Root,
    },
    server::{
        configuration::Configuration,
        instances::{self, Instance, Progress},
        postmaster_arguments::{self, PATH_MAX},
    },
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{
    Done,
    command::{Running, this, within},
    error::Error,
    postgres::agrees_on,
    root,
};

/// Reading a host with a thousand processes takes about 50 ms.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Maximum size of the output that is read, which has all servers first, and then their facts. More
/// than four thousand servers with names of the maximum length.
const MOST_BYTES: u64 = 64 << 20;

/// The verb of the process.
pub(crate) const CHILD: &str = "internal-search";

/// A line of the output.
#[derive(Serialize, Deserialize)]
enum Step {
    Progress(Box<Progress>),
    /// The directories of the server with this PID, and whether these are all.
    Directories(u32, Vec<Vec<u8>>, bool),
    /// The search failed with this error number.
    Failed(i32),
}

/// A server, with its directories as far as they are known.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) instance: Instance,
    pub(crate) places: Vec<PathBuf>,
    /// The directory below `/etc/postgresql`, which names the server. `None`: it is not named.
    pub(crate) cluster: Option<PathBuf>,
    /// False if the search does not have all of its directories, so that it could be any server.
    pub(crate) has_known_places: bool,
}

/// The user whose servers are examined first. Empty: nobody named a server.
static FIRST: OnceLock<u32> = OnceLock::new();

/// The only search of this run: each one can leave a process that nothing ends.
static PROCESS: LazyLock<Mutex<Option<io::Result<Running>>>> = LazyLock::new(|| {
    let mut command = this(CHILD);
    command.args(FIRST.get().map(u32::to_string));
    Mutex::new(Some(Running::spawn(command, TIME_LIMIT)))
});

/// The error number if not all servers were found.
static OUTCOME: OnceLock<Result<Vec<Found>, i32>> = OnceLock::new();

/// Examines the servers of this user first. Has no effect once the search has started.
pub(crate) fn examine_first(owner: u32) {
    FIRST.get_or_init(|| owner);
}

/// Starts the search, which runs while the caller reads other files.
pub(crate) fn start() {
    LazyLock::force(&PROCESS);
}

fn outcome() -> Result<&'static [Found], i32> {
    let finish = || {
        let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let process = process.take().ok_or(Errno::CHILD.raw_os_error())?;
        let output = process.and_then(|process| process.output_in_time(MOST_BYTES));
        collect(&output.map_err(|error| error.raw_os_error().unwrap_or_default())?)
    };
    let outcome = OUTCOME.get_or_init(finish).as_deref();
    outcome.map_err(|code| *code)
}

/// The servers of this host, except that of `own`, without those that have ended since the search.
/// Those that could not be examined in time have no details. Absent: not all processes could be
/// examined.
pub(crate) fn servers(own: Option<u32>) -> Result<Result<Vec<Found>, Absent>, ReadError> {
    let outcome = match outcome() {
        Ok(outcome) => outcome,
        Err(code) => {
            return Ok(Err(instances::unfinished(code)));
        }
    };
    let others = outcome
        .iter()
        .filter(move |found| Some(found.instance.pid) != own);
    let read = || -> Result<Vec<_>, ReadError> {
        let refreshed = others.filter_map(|found| {
            let instance = instances::refreshed(&root(), &found.instance).transpose()?;
            Some(instance.map(|instance| Found {
                instance,
                ..found.clone()
            }))
        });
        refreshed.collect()
    };
    // Any of these processes can make the read hang.
    match within(TIME_LIMIT, read) {
        Ok(servers) => Ok(Ok(servers?)),
        Err(errno) => Ok(Err(instances::unfinished(errno.raw_os_error()))),
    }
}

/// The servers of this IPC namespace. Errors: not all of them were found, so a server that is
/// missing might run.
pub(crate) fn candidates() -> Result<Vec<Found>, Error> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::with_hint(
            format!("the search for servers failed: {why}"),
            "Select a server with -D or --cluster, as in: hugeinfo status -D /var/lib/pgsql/17/data",
        )
    };
    let failed_with = |code| failed(&io::Error::from_raw_os_error(code));
    let outcome = outcome().map_err(failed_with)?;
    let creators = absent_or(instances::candidates(&root()))?;
    let creators = creators.map_err(|absent| failed(&absent))?;
    let found = outcome.iter();
    let found = found.filter(|found| creators.contains(&found.instance.pid));
    Ok(found.cloned().collect())
}

/// Errors: the error number, if the search ended before all servers were found.
fn collect(output: &[u8]) -> Result<Vec<Found>, i32> {
    let mut places = Vec::new();
    let mut progress = Vec::new();
    let mut code = Errno::TIMEDOUT.raw_os_error();
    // Time can end within a line.
    let lines = output.split(|&byte| byte == b'\n');
    for step in lines.map_while(|line| serde_json::from_slice(line).ok()) {
        match step {
            Step::Progress(step) => progress.push(*step),
            Step::Directories(pid, found, is_whole) => places.push((pid, found, is_whole)),
            Step::Failed(found) => code = found,
        }
    }
    let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
    let clusters = clusters();
    let servers = instances::collect(progress).ok_or(code)?.into_iter();
    let found = servers.map(|instance| {
        let index = places.iter().position(|(pid, ..)| *pid == instance.pid);
        let own = index.map(|index| places.swap_remove(index));
        let (_, places, has_known_places) = own.unwrap_or_default();
        let places: Vec<_> = places.into_iter().map(path).collect();
        Found {
            cluster: (clusters.iter().map(|(cluster, _)| cluster))
                .find(|cluster| places.contains(cluster))
                .cloned(),
            places,
            has_known_places,
            instance,
        }
    });
    Ok(found.collect())
}

/// Directories with the configuration or the data of a server, that for the option -D first, and
/// whether these are all.
fn places_of(root: &Root, instance: &Instance) -> (Vec<PathBuf>, bool) {
    let path_of = |bytes: &Vec<u8>| PathBuf::from(OsString::from_vec(bytes.clone()));
    let data = [&instance.data_directory, &instance.directory_argument];
    let data = data.into_iter().flatten().map(path_of);
    let config = config_file(root, instance.pid);
    let config = config.and_then(|file| file.parent().map(Path::to_owned));
    let pid = instance.pid;
    let real = |path: PathBuf| match root.look_up_of(pid, &path) {
        Ok(found) => found.path,
        Err(_) => path,
    };
    // Anyone can name the directory of another server on a command line, or work in it.
    let owner = |path: &PathBuf| Some(root.look_up_of(pid, path).ok()?.owner_and_mode().ok()?.0);
    let is_of_user = |path: &PathBuf| {
        owner(path).is_none_or(|uid| instance.owner_uid == Some(uid) && agrees_on(pid, path))
    };
    let named = |path: &PathBuf| {
        let found = Configuration::read_in(root.lookup_of(pid).ok()?, path, b"")?;
        Some(real(found.data_directory))
    };
    let mut is_whole = true;
    let is_own = |path: &PathBuf| match owner(path) {
        // Configuration of root is that of the server in the data directory that it names.
        Some(0) => {
            let data = named(path);
            is_whole &= data.is_some();
            data.is_some_and(|data| {
                is_of_user(&data) && instance.data_directory.as_ref().map(path_of) == Some(data)
            })
        }
        _ => is_of_user(path),
    };
    let places = data.chain(config).map(real).filter(is_own).collect();
    (places, is_whole)
}

/// `config_file` on the command line of a server.
fn config_file(root: &Root, pid: u32) -> Option<PathBuf> {
    let process = Process::open(root, pid).ok()?;
    let mut buffer = Vec::new();
    let arguments = process.raw_command_line(&mut buffer).ok()?;
    let file = postmaster_arguments::setting(arguments, "config_file");
    let file = file.filter(|file| file.len() < PATH_MAX)?;
    Some(PathBuf::from(OsString::from_vec(file.to_vec())))
}

/// Clusters of Debian's packages, with their owners.
pub(crate) fn clusters() -> Vec<(PathBuf, u32)> {
    let root = root();
    let directories = |path: &Path| root.list(path).unwrap_or_default();
    let mut clusters: Vec<_> = directories(Path::new("/etc/postgresql"))
        .iter()
        .flat_map(|version| directories(version))
        // Not a lookup in the directory of an owner, who can make it take forever.
        .filter_map(|cluster| {
            let owner = root.look_up(&cluster).ok()?.owner_and_mode().ok()?.0;
            Some((cluster, owner))
        })
        .collect();
    clusters.sort();
    clusters
}

#[derive(Args)]
pub(crate) struct Options {
    /// Users whose servers are examined before those of others.
    first: Vec<u32>,
}

/// Runs in the process for a search. Prints each step as a line of JSON.
pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let root = root();
    // The configuration of the host names servers of these users.
    let mut first: Vec<_> = clusters().into_iter().map(|(_, owner)| owner).collect();
    first.extend(&options.first);
    let mut written = Ok(());
    let mut write = |step: &Step| {
        if written.is_ok() {
            let json = serde_json::to_string(step).map_err(std::io::Error::from);
            written = json.and_then(|json| writeln!(std::io::stdout(), "{json}"));
        }
    };
    let report = |step: Progress| {
        let places = match &step {
            Progress::Detailed(server) => {
                let (places, is_whole) = places_of(&root, server);
                let bytes = places
                    .iter()
                    .map(|place| place.as_os_str().as_bytes().to_vec());
                Some(Step::Directories(server.pid, bytes.collect(), is_whole))
            }
            _ => None,
        };
        write(&Step::Progress(Box::new(step)));
        places.iter().for_each(&mut write);
    };
    let found = instances::read(&root, None, &Default::default(), &first, report);
    if let Err(absent) = fact(found)? {
        write(&Step::Failed(match absent.why {
            Absence::Failed(code) => code,
            Absence::NoProcess => Errno::AGAIN.raw_os_error(),
            Absence::Denied => Errno::ACCESS.raw_os_error(),
            _ => Errno::NOENT.raw_os_error(),
        }));
    }
    written.map_err(|error| Error::new(format!("could not write the result: {error}")))?;
    Ok(String::new().into())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{chown, symlink},
        process::Command,
        sync::atomic::{AtomicBool, Ordering},
        thread,
        time::Instant,
    };

    use rustix::{
        mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount},
        thread::{UnshareFlags, unshare_unsafe},
    };

    use super::*;

    #[test]
    fn a_search_that_hangs_keeps_what_it_found_first() {
        let server = Instance {
            pid: 7,
            ..Instance::default()
        };
        let lines = [
            Step::Progress(Box::new(Progress::Found(server))),
            Step::Progress(Box::new(Progress::AllFound)),
            Step::Directories(7, vec![b"/srv/a\xff".to_vec()], true),
        ];
        let script = |lines: &[Step]| {
            let lines = lines.iter().map(|step| {
                let json = serde_json::to_string(step).expect("JSON");
                format!("echo '{json}'; ")
            });
            let mut command = Command::new("/bin/sh");
            command.args([
                "-c",
                &(lines.collect::<String>() + "head -c 9999 /dev/zero; exec sleep 60"),
            ]);
            let process = Running::spawn(command, Duration::from_secs(5)).expect("started");
            collect(&process.output_in_time(5000).expect("output"))
        };
        let start = Instant::now();
        let found = script(&lines).expect("all servers");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].instance.pid, 7);
        let expected = OsString::from_vec(b"/srv/a\xff".to_vec());
        assert_eq!(found[0].places, [PathBuf::from(expected)]);
        assert!(found[0].has_known_places);
        // A server of which only the PID is known could be any.
        let found = script(&lines[..2]).expect("all servers");
        assert!(!found[0].has_known_places);
        let timed_out = Some(Errno::TIMEDOUT.raw_os_error());
        assert_eq!(script(&lines[..1]).err(), timed_out);
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn directory_of_root_belongs_to_the_server_that_it_names() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().expect("a directory");
        let place = |name: &str| root.path().join(name);
        for name in ["data", "other", "config"] {
            fs::create_dir(place(name)).expect("created");
            fs::write(place(name).join("postgresql.auto.conf"), "").expect("written");
        }
        for name in ["data", "other"] {
            chown(place(name), Some(65534), None).expect("a user");
        }
        let bytes = |name: &str| Some(place(name).into_os_string().into_vec());
        let found = |data: &str, text: &str| {
            fs::write(place("config/postgresql.conf"), text).expect("written");
            let server = Instance {
                pid: std::process::id(),
                owner_uid: Some(65534),
                data_directory: bytes(data),
                directory_argument: bytes("config"),
                ..Instance::default()
            };
            places_of(&super::root(), &server)
        };
        let known = |places: &[&str]| (places.iter().map(|name| place(name)).collect(), true);
        let unknown = |places: &[&str]| (known(places).0, false);
        let named = format!("data_directory = '{}'\n", place("data").display());
        assert_eq!(found("data", &named), known(&["data", "config"]));
        assert_eq!(found("other", &named), known(&["other"]));
        assert_eq!(found("data", ""), known(&["data"]));
        // Only PostgreSQL knows.
        assert_eq!(found("data", "include 'x'\n"), unknown(&["data"]));
        // A link to the data directory.
        symlink(place("data"), place("link")).expect("a link");
        let named = format!("data_directory = '{}'\n", place("link").display());
        assert_eq!(found("data", &named), known(&["data", "config"]));
        assert_eq!(found("config", ""), known(&[]));
    }

    #[test]
    fn directories_are_found_while_users_mount_file_systems() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = fs::canonicalize(directory.path()).expect("a path");
        let is_done = AtomicBool::new(false);
        let mount = || -> io::Result<()> {
            // SAFETY: the working directory of this thread does not matter.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private)?;
            while !is_done.load(Ordering::Relaxed) {
                mount_bind(&path, &path)?;
                unmount(&path, UnmountFlags::DETACH)?;
            }
            Ok(())
        };
        let (root, this) = (super::root(), std::process::id());
        let failed = thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(mount)));
            let found = (0..5000).map(|_| root.look_up_of(this, &path));
            let failed = found.filter(Result::is_err).count();
            is_done.store(true, Ordering::Relaxed);
            failed
        });
        assert_eq!(failed, 0);
    }
}
