//! The children of a plan, and their output until they end or reach the time limit.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Read},
    mem::ManuallyDrop,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use host::next_start::{Output, Runner, scratch::Scratch};
use pgrx::PgSqlErrorCode;
use rustix::event::epoll;

use crate::{
    error::Error,
    postgres::{
        child::{Child, NOT_RUN, Program, Started},
        exit,
        interrupts::check_for_interrupts,
        latch::wait_readable,
    },
};

/// Maximum duration. A plan takes about 15 ms, so a child that takes this long is blocked.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Bytes that are kept from the end of each stream, more than PostgreSQL's program ever writes.
const MOST_BYTES_KEPT: usize = 16 << 10;

/// Polling interval if the kernel cannot signal the end of a child.
const POLLING_INTERVAL: Duration = Duration::from_millis(2);

/// The resources that a call has to release, however it ends, in this order.
#[derive(Default)]
struct Resources {
    /// `None`: it has ended.
    children: Vec<Option<Child>>,
    scratch: Vec<Scratch>,
}

thread_local! {
    // Has no destructor, because the C library would allocate memory for it at the first use, and
    // end the process if there is no memory.
    static RESOURCES: ManuallyDrop<RefCell<Resources>> = const {
        ManuallyDrop::new(RefCell::new(Resources {
            children: Vec::new(),
            scratch: Vec::new(),
        }))
    };
}

/// Ends the children and removes the scratch directory when it is dropped, and if this backend ends
/// with an error that does not unwind.
pub(super) struct Cleanup(());

impl Cleanup {
    pub(super) fn at_end() -> Self {
        exit::call_at_exit(clean_up);
        Self(())
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        clean_up();
    }
}

fn clean_up() {
    drop(RESOURCES.with(|resources| resources.take()));
}

/// Runs PostgreSQL's programs as children of this backend, each within [`TIME_LIMIT`]. The caller
/// has to hold a [`Cleanup`].
pub(super) struct Children;

impl Runner for Children {
    type Running = Running;
    type Error = Error;

    fn start(&self, command: Command) -> Result<Running, Error> {
        let path = PathBuf::from(command.get_program());
        let failed = |error: io::Error| Error::file("run", &path, error);
        let is_changed = |name: &_| command.get_envs().any(|(changed, _)| changed == name);
        let own = std::env::vars_os().filter(|(name, _)| !is_changed(name));
        let set = command.get_envs();
        let set = set.filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let arguments = command.get_args().map(ToOwned::to_owned);
        let program = Program::new(path.clone(), arguments, own.chain(set)).map_err(failed)?;
        let started = program.start().map_err(failed)?;
        Running::new(started, &path)
    }

    fn finish(&self, running: Running) -> Result<Output, Error> {
        let path = running.path.clone();
        let output = running.wait()?;
        match (output.status.code(), output.err.as_slice().try_into()) {
            (Some(NOT_RUN), Ok(errno)) => {
                let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                Err(Error::file("run", &path, error))
            }
            _ => Ok(output),
        }
    }

    fn keep(&self, scratch: Scratch) {
        RESOURCES.with(|resources| resources.borrow_mut().scratch.push(scratch));
    }

    fn check_for_interrupts(&self) {
        check_for_interrupts();
    }
}

/// A running child.
pub(super) struct Running {
    /// Index of the child in [`Resources`].
    index: usize,
    /// The program or file, for errors.
    path: PathBuf,
    deadline: Instant,
    /// Readable when there is something to do.
    watch: OwnedFd,
    out: Pipe,
    err: Pipe,
    /// Keeps the descriptor of its end open. `None`: there is none.
    end: Option<OwnedFd>,
}

impl Running {
    /// After this call, no error leaves the child behind.
    pub(super) fn new(started: Started, path: &Path) -> Result<Self, Error> {
        let index = RESOURCES.with(|resources| {
            let children = &mut resources.borrow_mut().children;
            children.push(Some(started.child));
            children.len() - 1
        });
        let watched = || -> io::Result<Self> {
            let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            Ok(Self {
                index,
                path: path.to_owned(),
                deadline: Instant::now() + TIME_LIMIT,
                out: Pipe::watched(started.out, &watch)?,
                err: Pipe::watched(started.err, &watch)?,
                end: with_child(index, |child| {
                    let end = child.end_descriptor();
                    end.as_ref().map_or(Ok(()), |end| add(&watch, end))?;
                    Ok(end)
                })?,
                watch,
            })
        };
        watched().map_err(|error| unreadable(path, error))
    }

    /// Waits for the end of the child while reading both pipes. Only the child itself counts:
    /// programs that it started can keep the pipes open, and are killed afterwards. A cancel, or
    /// the end of the session or the server, ends the wait and the child.
    pub(super) fn wait(mut self) -> Result<Output, Error> {
        let status = loop {
            let looked = self.look();
            if let Some(status) = looked.map_err(|error| unreadable(&self.path, error))? {
                break status;
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(too_late());
            }
            let longest = match self.end {
                Some(_) => left,
                None => left.min(POLLING_INTERVAL),
            };
            wait_readable(self.watch.as_fd(), longest);
        };
        RESOURCES.with(|resources| resources.borrow_mut().children[self.index] = None);
        Ok(Output {
            status,
            out: self.out.kept,
            err: self.err.kept,
        })
    }

    /// The exit status of the child. `None`: it has not ended.
    fn look(&mut self) -> io::Result<Option<ExitStatus>> {
        // Checked before reading: once the child has ended, all of its output is in the pipes.
        let status = with_child(self.index, Child::end)?;
        self.out.read(&self.watch)?;
        self.err.read(&self.watch)?;
        Ok(status)
    }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::file("read the output of", path, error)
}

fn too_late() -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
        format!(
            "PostgreSQL's program did not compute the size of shared memory within {} seconds",
            TIME_LIMIT.as_secs()
        ),
    )
    .hint("It might be waiting for a configuration file that is a pipe, for a file system that does not respond, or in a library of shared_preload_libraries.")
}

fn with_child<T>(index: usize, look: impl FnOnce(&Child) -> io::Result<T>) -> io::Result<T> {
    RESOURCES.with(|resources| match resources.borrow().children.get(index) {
        Some(Some(child)) => look(child),
        _ => Err(io::ErrorKind::NotFound.into()),
    })
}

fn add(watch: &OwnedFd, source: impl AsFd) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(watch, source, data, epoll::EventFlags::IN)?)
}

/// The reading end of a pipe, non-blocking, and the last bytes from it.
struct Pipe {
    source: Option<File>,
    kept: Vec<u8>,
}

impl Pipe {
    fn watched(source: File, watch: &OwnedFd) -> io::Result<Self> {
        add(watch, &source)?;
        Ok(Self {
            source: Some(source),
            kept: Vec::new(),
        })
    }

    /// Reads the available bytes, at most the capacity of a pipe, because a child could write
    /// forever.
    fn read(&mut self, watch: &OwnedFd) -> io::Result<()> {
        const MOST: usize = 256;
        let mut chunk = [0; 4096];
        for _ in 0..MOST {
            let Some(source) = &mut self.source else {
                return Ok(());
            };
            match source.read(&mut chunk) {
                // Removed from epoll, which would report a closed pipe as readable from now on.
                Ok(0) => {
                    epoll::delete(watch, &*source)?;
                    self.source = None;
                }
                Ok(count) => {
                    let excess = (self.kept.len() + count).saturating_sub(MOST_BYTES_KEPT);
                    self.kept.drain(..excess);
                    self.kept.extend_from_slice(&chunk[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
