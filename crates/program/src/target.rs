//! The server that a verb is about.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io::Read,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use host::{
    escape,
    linux::{process::Process, root::Root},
    server::{configuration::Configuration, instances::Instance, postmaster_arguments},
};

use crate::{
    Server,
    error::Error,
    is_root,
    next_start::{Detail, NextStart},
    owner::unreachable,
    postgres, root,
    search::{self, Found},
};

/// A server, running or not.
#[derive(Clone)]
pub(crate) struct Target {
    /// The directory for the option -D of postgres. `None`: there is no data directory yet, or it
    /// is hidden.
    pub(crate) directory: Option<PathBuf>,
    /// The postmaster. `None`: the server does not run, or is hidden.
    pub(crate) postmaster: Option<u32>,
    /// The user who owns the server. `None`: unknown.
    pub(crate) owner: Option<u32>,
    /// Whether the search has seen that its shared memory is in use ([`Instance::is_in_use`]).
    pub(crate) is_in_use: bool,
    /// Whether a person or the configuration of the host names the directory. Any user can have a
    /// process that looks like a server to the search.
    is_named: bool,
}

impl Target {
    /// Finds the server that the options name. Without -D, the only server that runs.
    pub(crate) fn find(server: &Server) -> Result<Self, Error> {
        let Some(directory) = server.directory() else {
            return only(search::candidates()?);
        };
        let failed = |error| Error::file("open", &directory, error);
        let found = std::path::absolute(&directory).and_then(|path| root().look_up(&path));
        let found = found.map_err(|error| unreachable(&directory, error))?;
        let owner = found.owner_and_mode().map_err(failed)?.0;
        let directory = found.path;
        // The search is a process of its own, and the last look reads all processes.
        let postmaster = match postgres::running_outside(&directory) {
            Some(pid) => Some(pid),
            None => searched(&directory, server)?.or_else(|| postgres::running(&directory)),
        };
        if postmaster.is_none() {
            postgres::check_containers(&directory)?;
        }
        Ok(Self {
            postmaster,
            directory: Some(directory),
            owner: Some(owner),
            is_in_use: false,
            is_named: true,
        })
    }

    /// All servers that run, and the clusters of Debian's packages that do not.
    pub(crate) fn all() -> Result<Vec<Self>, Error> {
        let mut clusters = clusters();
        let mut targets = Vec::new();
        for found in search::candidates()? {
            let target = Self::found(found);
            clusters.retain(|(cluster, _)| target.directory.as_ref() != Some(cluster));
            targets.push(target);
        }
        targets.extend(clusters.into_iter().map(|(directory, owner)| Self {
            directory: Some(directory),
            postmaster: None,
            owner: Some(owner),
            is_in_use: false,
            is_named: true,
        }));
        Ok(targets)
    }

    fn found(found: Found) -> Self {
        Self {
            is_named: found.cluster.is_some(),
            directory: found.cluster.or(found.places.into_iter().next()),
            postmaster: Some(found.instance.pid),
            owner: found.instance.owner_uid,
            is_in_use: found.instance.is_in_use(),
        }
    }

    /// The server in a text.
    pub(crate) fn name(&self) -> String {
        match (&self.directory, self.postmaster) {
            (Some(directory), _) => escape::name(directory),
            (None, Some(pid)) => format!("the server with PID {pid}"),
            (None, None) => "a new server".to_owned(),
        }
    }

    /// True for a server that the search has found, and that nobody has named to root.
    pub(crate) fn is_only_found(&self) -> bool {
        is_root() && !self.is_named
    }

    /// The options for this server.
    pub(crate) fn options(&self, server: &Server) -> Server {
        Server {
            postmaster: self.postmaster,
            is_found: !self.is_named,
            ..server.at(self.directory.clone())
        }
    }
}

/// Calls `read` for each server, several at the same time. Each owner gets only some of the workers,
/// so hanging files of one do not delay the others, and named servers come first.
///
/// Errors: those of `read`; the time is over. A thread that still waits for a file does not keep
/// this process from ending.
pub(crate) fn each<T: Send + 'static>(
    targets: &[Target],
    limit: Duration,
    read: impl Fn(&Target) -> Result<T, Error> + Send + Sync + 'static,
) -> Vec<Result<T, Error>> {
    const WORKERS: usize = 16;
    const OF_AN_OWNER: usize = 4;
    let deadline = Instant::now() + limit;
    let mut queues: Vec<Queue> = Vec::new();
    let mut order: Vec<_> = targets.iter().enumerate().collect();
    order.sort_by_key(|(_, target)| !target.is_named);
    for (index, target) in order {
        let item = (index, target.clone());
        match queues.iter_mut().find(|queue| queue.owner == target.owner) {
            Some(queue) => queue.waiting.push_back(item),
            None => queues.push(Queue {
                owner: target.owner,
                waiting: [item].into(),
                running: 0,
            }),
        }
    }
    let (sender, results) = mpsc::channel();
    let shared = Arc::new((Mutex::new(queues), read));
    for _ in 0..targets.len().min(WORKERS) {
        let (sender, shared) = (sender.clone(), shared.clone());
        let work = move || {
            let (queues, read) = &*shared;
            let lock = || queues.lock().unwrap_or_else(PoisonError::into_inner);
            let next = || {
                let mut queues = lock();
                let ready =
                    |queue: &&mut Queue| queue.running < OF_AN_OWNER && !queue.waiting.is_empty();
                let queue = queues
                    .iter_mut()
                    .filter(ready)
                    .min_by_key(|queue| queue.running)?;
                queue.running += 1;
                queue.waiting.pop_front()
            };
            while let Some((index, target)) = next() {
                if sender.send((index, read(&target))).is_err() {
                    break;
                }
                let mut queues = lock();
                let own = queues.iter_mut().find(|queue| queue.owner == target.owner);
                own.into_iter().for_each(|queue| queue.running -= 1);
            }
        };
        // The threads that were started read all servers.
        if thread::Builder::new().spawn(work).is_err() {
            break;
        }
    }
    drop((sender, shared));
    let late = || Err(Error::new("its files could not be read in time"));
    let mut all: Vec<_> = targets.iter().map(|_| late()).collect();
    for _ in targets {
        let left = deadline.saturating_duration_since(Instant::now());
        match results.recv_timeout(left) {
            Ok((index, result)) => all[index] = result,
            Err(_) => break,
        }
    }
    all
}

/// The servers of one owner.
struct Queue {
    owner: Option<u32>,
    waiting: VecDeque<(usize, Target)>,
    /// The number of servers that are being read.
    running: usize,
}

/// Directories with the configuration or the data of a server, that for the option -D first.
/// Their file systems can hang.
pub(crate) fn places(root: &Root, instance: &Instance) -> Vec<PathBuf> {
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
    let is_of_user = |path: &PathBuf| owner(path).is_none_or(|uid| instance.owner_uid == Some(uid));
    let is_own = |path: &PathBuf| match owner(path) {
        // Configuration of root is that of the server in the data directory that it names.
        Some(0) => Configuration::read(root, path, b"").is_some_and(|found| {
            let data = real(found.data_directory);
            is_of_user(&data) && instance.data_directory.as_ref().map(path_of) == Some(data)
        }),
        _ => is_of_user(path),
    };
    data.chain(config).map(real).filter(is_own).collect()
}

/// `config_file` on the command line of a server.
fn config_file(root: &Root, pid: u32) -> Option<PathBuf> {
    let process = Process::open(root, pid).ok()?;
    let mut buffer = Vec::new();
    let arguments = process.raw_command_line(&mut buffer).ok()?;
    let mut settings = postmaster_arguments::settings(arguments);
    let (_, file) = settings.find(|(name, _)| name == b"config_file")?;
    Some(PathBuf::from(OsString::from_vec(file.to_vec())))
}

/// The server that uses this directory for its configuration or data. If the search has no answer,
/// because any user can make it hang, that of its data directory according to the lock file there.
///
/// Errors: the data directory is unknown, too.
fn searched(directory: &PathBuf, server: &Server) -> Result<Option<u32>, Error> {
    if let Ok(running) = search::candidates() {
        let mut running = running.into_iter();
        let found = running.find(|found| found.places.contains(directory));
        return Ok(found.map(|found| found.instance.pid));
    }
    let next = NextStart::read(&server.at(Some(directory.clone())), Detail::Pages).ok();
    match next.and_then(|next| next.data_directory) {
        Some(data) => Ok(postgres::running(&data)),
        None => Err(Error::new(format!(
            "it is unknown whether a server uses {}: the search for servers failed, or did not end in time",
            escape::name(directory)
        ))),
    }
}

fn only(mut running: Vec<Found>) -> Result<Target, Error> {
    match running.pop() {
        None => Err(Error::with_hint(
            "no server is running on this host",
            "To select a stopped server, use -D or --cluster, as in: hugeinfo status -D /var/lib/pgsql/17/data",
        )),
        Some(found) if running.is_empty() => Ok(Target::found(found)),
        Some(last) => {
            running.push(last);
            let directories = running.iter().map(|found| {
                let place = found.places.first().map(escape::name);
                place.unwrap_or_else(|| format!("a directory of PID {}", found.instance.pid))
            });
            let directories: Vec<_> = directories.collect();
            Err(Error::with_hint(
                format!(
                    "several servers are running on this host, in {}",
                    directories.join(", ")
                ),
                "Select one with -D or --cluster; for status and ensure, --all selects all",
            ))
        }
    }
}

/// Whether Debian starts a cluster at boot. Other servers: yes.
pub(crate) fn starts_at_boot(directory: &Path) -> bool {
    // A file of the owner of the cluster, which might be a FIFO.
    let file = root().look_up(&directory.join("start.conf"));
    let mut bytes = Vec::new();
    let read = file.and_then(|file| file.open()?.take(64 << 10).read_to_end(&mut bytes));
    if read.is_err() {
        bytes.clear();
    }
    let text = String::from_utf8_lossy(&bytes);
    // As Debian's PgCommon.pm: the first word.
    let mut words = text.lines().map(|line| {
        let end = line.find('#').unwrap_or(line.len());
        line[..end].trim()
    });
    let mode = words.find(|word| !word.is_empty());
    !matches!(mode, Some("manual" | "disabled"))
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

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{chown, symlink},
    };

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn clusters_that_start_at_boot() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("start.conf");
        for (text, expected) in [
            ("auto\n", true),
            ("# manual\n\nauto\nmanual\n", true),
            ("# auto, manual or disabled\n manual # by hand\n", false),
            ("disabled", false),
            ("", true),
        ] {
            fs::write(&file, text).expect("written");
            assert_eq!(starts_at_boot(directory.path()), expected, "{text:?}");
        }
        // Reading it would never end.
        fs::remove_file(&file).expect("removed");
        mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        assert!(starts_at_boot(directory.path()));
    }

    #[test]
    fn owner_whose_files_hang_does_not_delay_others() {
        let target = |owner| Target {
            directory: None,
            postmaster: None,
            owner: Some(owner),
            is_in_use: false,
            is_named: true,
        };
        let targets: Vec<_> = [vec![target(1); 40], vec![target(2)]].concat();
        let found = each(&targets, Duration::from_secs(2), |target| {
            if target.owner == Some(1) {
                thread::sleep(Duration::from_secs(60));
            }
            Ok(target.owner)
        });
        let found: Vec<_> = found.into_iter().filter_map(Result::ok).collect();
        assert_eq!(found, [Some(2)]);
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
        }
        for name in ["data", "other"] {
            chown(place(name), Some(65534), None).expect("a user");
        }
        let bytes = |name: &str| Some(place(name).into_os_string().into_vec());
        let found = |data: &str, text: &str| {
            fs::write(place("config/postgresql.conf"), text).expect("written");
            let server = Instance {
                owner_uid: Some(65534),
                data_directory: bytes(data),
                directory_argument: bytes("config"),
                ..Instance::default()
            };
            places(&super::root(), &server)
        };
        let named = format!("data_directory = '{}'\n", place("data").display());
        assert_eq!(found("data", &named), [place("data"), place("config")]);
        assert_eq!(found("other", &named), [place("other")]);
        assert_eq!(found("data", ""), [place("data")]);
        // A link to the data directory.
        symlink(place("data"), place("link")).expect("a link");
        let named = format!("data_directory = '{}'\n", place("link").display());
        assert_eq!(found("data", &named), [place("data"), place("config")]);
        assert_eq!(found("config", ""), [] as [PathBuf; 0]);
    }
}
