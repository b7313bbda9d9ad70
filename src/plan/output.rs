//! What a child writes until it ends, or until its time is up.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use rustix::event::epoll;

use super::HELD;
use crate::{
    error::Error,
    postgres::{
        self,
        child::{End, Started},
    },
};

/// What is kept of either: more than PostgreSQL's program ever writes. Its last word comes last.
const KEPT: usize = 16 << 10;

/// How often a child is looked at where the kernel doesn't tell that it has ended.
const LOOK: Duration = Duration::from_millis(2);

/// The last of what a child has written, and how it ended.
pub(crate) struct Output {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    pub(crate) end: End,
}

/// Why there is no output.
pub(crate) enum Failure {
    TimeLimit,
    Io(io::Error),
}

impl Failure {
    /// The error, for a run of `program`.
    pub(crate) fn of(self, program: &Path) -> Error {
        match self {
            Self::TimeLimit => Error::TimeLimit,
            Self::Io(error) => Error::file("read the output of", program, error),
        }
    }
}

impl<E: Into<io::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

/// Waits for the end of a child, reading both of its pipes as it writes. The child alone decides: what it has started may hold them open
/// for longer, and ends with it. A cancel, or the end of the session or the server, ends the wait and the child.
pub(crate) fn of(started: Started, deadline: Instant) -> Result<Output, Failure> {
    // At once: from here on nothing that is raised may leave it behind.
    HELD.with_borrow_mut(|held| held.child = Some(started.child));
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let (mut out, mut err) = (
        Pipe::watched(started.out, &watch)?,
        Pipe::watched(started.err, &watch)?,
    );
    let tells_its_end = with_child(|child| match child.end_descriptor() {
        Some(end) => add(&watch, end).map(|()| true),
        None => Ok(false),
    })?;
    let end = loop {
        // First: what it has written is there when it has ended.
        let end = with_child(|child| child.end())?;
        out.read(&watch)?;
        err.read(&watch)?;
        if let Some(end) = end {
            break end;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::TimeLimit);
        }
        let longest = if tells_its_end { left } else { left.min(LOOK) };
        postgres::wait_readable(watch.as_fd(), longest);
    };
    HELD.with_borrow_mut(|held| held.child = None);
    Ok(Output {
        out: out.kept,
        err: err.kept,
        end,
    })
}

fn with_child<T>(look: impl FnOnce(&postgres::child::Child) -> io::Result<T>) -> io::Result<T> {
    HELD.with_borrow(|held| match &held.child {
        Some(child) => look(child),
        None => Err(io::ErrorKind::NotFound.into()),
    })
}

fn add(watch: &OwnedFd, source: impl AsFd) -> io::Result<()> {
    let data = epoll::EventData::new_u64(0);
    Ok(epoll::add(watch, source, data, epoll::EventFlags::IN)?)
}

/// One end of a pipe that never waits, and the last of what has come out of it.
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

    /// What is there, but no more at a time than a pipe holds: who writes without end is not to keep us here.
    fn read(&mut self, watch: &OwnedFd) -> io::Result<()> {
        const MOST: usize = 16;
        let mut chunk = [0; 4096];
        for _ in 0..MOST {
            let Some(source) = &mut self.source else {
                return Ok(());
            };
            match source.read(&mut chunk) {
                // Closed. It would count as readable from here on.
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
