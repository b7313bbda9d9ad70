//! The server that a verb is about.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use host::escape;

use crate::{
    Server,
    command::caught,
    error::Error,
    is_root,
    next_start::NextStart,
    owner::unreachable,
    planned::Detail,
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
    /// Whether the search has seen that its shared memory is in use (`Instance::is_in_use`).
    pub(crate) is_in_use: bool,
    /// True for root if neither a person nor the configuration of the host names the directory. Any
    /// user can have a process that looks like a server to the search.
    pub(crate) is_only_found: bool,
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
        search::examine_first(owner);
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
            is_only_found: false,
        })
    }

    /// All servers that run, and the clusters of Debian's packages that do not.
    pub(crate) fn all() -> Result<Vec<Self>, Error> {
        let mut clusters = search::clusters();
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
            is_only_found: false,
        }));
        Ok(targets)
    }

    fn found(found: Found) -> Self {
        Self {
            is_only_found: is_root() && found.cluster.is_none(),
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

    pub(crate) fn options(&self, server: &Server) -> Server {
        Server {
            postmaster: self.postmaster,
            is_only_found: self.is_only_found,
            ..server.at(self.directory.clone())
        }
    }
}

/// Calls `read` for each server, several at the same time. Named servers come first, and then one
/// server of each owner after the other, so that hanging files of one do not delay the others.
///
/// Errors: those of `read`; the time is over. A thread that still waits for a file does not keep
/// this process from ending.
pub(crate) fn each<T: Send + 'static>(
    targets: &[Target],
    limit: Duration,
    read: impl Fn(&Target) -> Result<T, Error> + Send + Sync + 'static,
) -> Vec<Result<T, Error>> {
    const WORKERS: usize = 32;
    let deadline = Instant::now() + limit;
    let mut of_owner = HashMap::new();
    let order = targets.iter().enumerate().map(|(index, target)| {
        let before: &mut usize = of_owner.entry(target.owner).or_default();
        *before += 1;
        (target.is_only_found, *before, index)
    });
    let mut order: Vec<_> = order.collect();
    order.sort_unstable();
    let waiting = order.into_iter().map(|(.., index)| index);
    let waiting: VecDeque<_> = waiting
        .map(|index| (index, targets[index].clone()))
        .collect();
    let (sender, results) = mpsc::channel();
    let shared = Arc::new((Mutex::new(waiting), read));
    let mut has_started = false;
    for _ in 0..targets.len().min(WORKERS) {
        let (sender, shared) = (sender.clone(), shared.clone());
        let work = move || {
            let (waiting, read) = &*shared;
            let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let next = || lock().pop_front();
            while let Some((index, target)) = next() {
                if sender.send((index, caught(|| read(&target)))).is_err() {
                    break;
                }
            }
        };
        // The threads that were started read all servers.
        if thread::Builder::new().spawn(work).is_err() {
            break;
        }
        has_started = true;
    }
    drop((sender, shared));
    let late = || {
        Err(Error::new(match has_started {
            true => "its files could not be read in time",
            false => "no thread could be started (ulimit -u, TasksMax of the unit, pids.max)",
        }))
    };
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

/// The server that uses this directory for its configuration or data. If the search has no answer,
/// because any user can make it hang, that of its data directory according to the lock file there.
///
/// Errors: the data directory is unknown, too, for example because its files are refused.
fn searched(directory: &PathBuf, server: &Server) -> Result<Option<u32>, Error> {
    if let Ok(running) = search::candidates() {
        if let Some(found) = running
            .iter()
            .find(|found| found.places.contains(directory))
        {
            return Ok(Some(found.instance.pid));
        }
        if running.iter().all(|found| found.has_known_places) {
            return Ok(None);
        }
    }
    let next = NextStart::read(&server.at(Some(directory.clone())), Detail::Pages)?;
    match next.data_directory {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn target(owner: u32) -> Target {
        Target {
            directory: None,
            postmaster: None,
            owner: Some(owner),
            is_in_use: false,
            is_only_found: false,
        }
    }

    #[test]
    fn panics_do_not_hide_other_servers() {
        let targets = [vec![target(1); 40], vec![target(2)]].concat();
        let found = each(&targets, Duration::from_secs(60), |target| {
            assert_ne!(target.owner, Some(1), "expected by this test");
            Ok(target.owner)
        });
        let found: Vec<_> = found.into_iter().filter_map(Result::ok).collect();
        assert_eq!(found, [Some(2)]);
    }

    #[test]
    fn owner_whose_files_hang_does_not_delay_others() {
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
}
