//! The output of a child until it ends or its time is up.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use rustix::event::epoll;

use pgrx::PgSqlErrorCode;

use super::held::{HELD, Held};
use crate::{
    error::Error,
    postgres::{
        child::{Child, End, Started},
        latch::wait_readable,
    },
};

/// Maximum duration. A plan takes about 15 ms, so a child that takes this long is blocked.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Bytes that are kept from the end of each stream, more than PostgreSQL's program ever writes.
const KEPT: usize = 16 << 10;

/// Polling interval if the kernel cannot signal the end of a child.
const LOOK: Duration = Duration::from_millis(2);

/// The last bytes that a child wrote, and how it ended.
pub(crate) struct Output {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    pub(crate) end: End,
}

/// Reasons for missing output.
pub(crate) enum Failure {
    TimeLimit,
    Io(io::Error),
}

impl Failure {
    /// The error, for a run of `program`.
    pub(crate) fn of(self, program: &Path) -> Error {
        match self {
            Self::TimeLimit => Error::new(
                PgSqlErrorCode::ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                format!(
                    "PostgreSQL's program did not compute the size of shared memory within {} seconds",
                    TIME_LIMIT.as_secs()
                ),
            )
            .hint("It might be waiting for a configuration file that is a pipe, for a file system that does not respond, or in a library of shared_preload_libraries."),
            Self::Io(error) => Error::file("read the output of", program, error),
        }
    }
}

impl<E: Into<io::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

/// The role of a child, because two can run at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Program,
    Reader,
}

impl Held {
    fn child(&mut self, place: Place) -> &mut Option<Child> {
        match place {
            Place::Program => &mut self.program,
            Place::Reader => &mut self.reader,
        }
    }
}

/// A running child.
pub(crate) struct Running {
    place: Place,
    /// Readable when there is something to do.
    watch: OwnedFd,
    out: Pipe,
    err: Pipe,
    tells_its_end: bool,
}

impl Running {
    /// After this call, no error leaves the child behind.
    pub(crate) fn new(started: Started, place: Place) -> Result<Self, Failure> {
        HELD.with(|held| *held.borrow_mut().child(place) = Some(started.child));
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            place,
            out: Pipe::watched(started.out, &watch)?,
            err: Pipe::watched(started.err, &watch)?,
            tells_its_end: with_child(place, |child| match child.end_descriptor() {
                Some(end) => add(&watch, end).map(|()| true),
                None => Ok(false),
            })?,
            watch,
        })
    }

    /// Waits for the end of the child while reading both pipes. Only the child itself counts:
    /// programs that it started can keep the pipes open, and are killed afterwards. A cancel, or
    /// the end of the session or the server, ends the wait and the child.
    pub(crate) fn wait(mut self, deadline: Instant) -> Result<Output, Failure> {
        let end = loop {
            // Checked before reading: once the child has ended, all of its output is in the pipes.
            let end = with_child(self.place, Child::end)?;
            self.out.read(&self.watch)?;
            self.err.read(&self.watch)?;
            if let Some(end) = end {
                break end;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::TimeLimit);
            }
            let longest = if self.tells_its_end {
                left
            } else {
                left.min(LOOK)
            };
            wait_readable(self.watch.as_fd(), longest);
        };
        HELD.with(|held| *held.borrow_mut().child(self.place) = None);
        Ok(Output {
            out: self.out.kept,
            err: self.err.kept,
            end,
        })
    }
}

fn with_child<T>(place: Place, look: impl FnOnce(&Child) -> io::Result<T>) -> io::Result<T> {
    HELD.with(|held| match held.borrow_mut().child(place) {
        Some(child) => look(child),
        None => Err(io::ErrorKind::NotFound.into()),
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
                    let excess = (self.kept.len() + count).saturating_sub(KEPT);
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
