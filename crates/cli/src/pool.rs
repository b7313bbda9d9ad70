//! Grows the pools of the kernel.

use std::{
    fs, io,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use hugeinfo::{
    linux::{hugepages, numa::nodes},
    model::step::Step,
    units::{PageSize, Pages},
};

use crate::{command::is_interrupted, error::Error};

/// Pause before the next attempt, while other processes release memory.
const PAUSE: Duration = Duration::from_millis(200);

/// Bytes of one write, so that a signal is noticed, and progress is shown.
const CHUNK_BYTES: u64 = 1 << 30;

/// The counter of a pool, or of its part on a NUMA node.
struct Counter {
    path: PathBuf,
    size: PageSize,
    wanted: u64,
    before: u64,
}

impl Counter {
    fn open(directory: &str, size: PageSize, wanted: Pages) -> Result<Self, Error> {
        let path = PathBuf::from(directory).join("nr_hugepages");
        let mut counter = Self {
            path,
            size,
            wanted: wanted.0,
            before: 0,
        };
        counter.before = counter.read()?;
        Ok(counter)
    }

    fn read(&self) -> Result<u64, Error> {
        let failed = |error| Error::file("read", &self.path, error);
        let text = fs::read_to_string(&self.path).map_err(failed)?;
        let number = text.trim().parse();
        number.map_err(|_| failed(io::ErrorKind::InvalidData.into()))
    }

    fn write(&self, pages: u64) -> Result<(), Error> {
        fs::write(&self.path, format!("{pages}\n"))
            .map_err(|error| Error::file("write", &self.path, error))
    }

    /// Adds pages until the kernel allocates no more of them. Returns the number of pages.
    fn grow(&self) -> Result<u64, Error> {
        let chunk = (CHUNK_BYTES / self.size.0).max(1);
        let mut pages = self.read()?;
        while pages < self.wanted && !is_interrupted() {
            let next = self.wanted.min(pages + chunk);
            self.write(next)?;
            let now = self.read()?;
            if now <= pages {
                break;
            }
            pages = now;
        }
        Ok(pages)
    }
}

/// Takes the steps, and tries until `deadline` where memory is short or fragmented. If a pool does
/// not reach its size, restores all of them. Returns whether the pools have their sizes.
///
/// Errors: a file cannot be read or written, or a signal. The pools are restored then, too.
pub(crate) fn take(
    steps: &[Step],
    deadline: Instant,
    progress: impl Fn(PageSize, u64, u64),
) -> Result<bool, Error> {
    let counters = counters(steps)?;
    let grown = grow(&counters, deadline, progress);
    if !matches!(grown, Ok(true)) {
        for counter in counters.iter().rev() {
            // Never below the pages that were there.
            if counter.read()? > counter.before {
                counter.write(counter.before)?;
            }
        }
    }
    grown
}

fn counters(steps: &[Step]) -> Result<Vec<Counter>, Error> {
    let mut counters = Vec::new();
    for step in steps {
        let Step::SetPool {
            size,
            pages,
            by_node,
        } = step
        else {
            continue;
        };
        if by_node.is_empty() {
            counters.push(Counter::open(&hugepages::directory(size.0), *size, *pages)?);
        }
        for (node, pages) in by_node {
            let kilobytes = size.0 >> 10;
            let node = nodes::directory(*node);
            let directory = format!("{node}/hugepages/hugepages-{kilobytes}kB");
            counters.push(Counter::open(&directory, *size, *pages)?);
        }
    }
    Ok(counters)
}

fn grow(
    counters: &[Counter],
    deadline: Instant,
    progress: impl Fn(PageSize, u64, u64),
) -> Result<bool, Error> {
    for counter in counters {
        loop {
            let pages = counter.grow()?;
            progress(counter.size, pages, counter.wanted);
            if pages >= counter.wanted {
                break;
            }
            if is_interrupted() {
                return Err(Error::new("interrupted by a signal"));
            }
            compact()?;
            if counter.grow()? <= pages {
                if Instant::now() >= deadline {
                    return Ok(false);
                }
                thread::sleep(PAUSE);
            }
        }
    }
    Ok(true)
}

fn compact() -> Result<(), Error> {
    let path = PathBuf::from("/proc/sys/vm/compact_memory");
    match fs::write(&path, "1\n") {
        // A kernel without CONFIG_COMPACTION.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written.map_err(|error| Error::file("write", &path, error)),
    }
}
