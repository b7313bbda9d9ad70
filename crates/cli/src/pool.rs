//! Grows the pools of the kernel.

use std::{
    cell::Cell,
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
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// Bytes of one write, so that a signal is noticed, and progress is shown.
const CHUNK_BYTES: u64 = 1 << 30;

/// The persistent pages of a pool, or of its part on a NUMA node.
struct Counter {
    directory: PathBuf,
    size: PageSize,
    wanted: u64,
    before: u64,
    /// After the last write of this run.
    reached: Cell<u64>,
    /// Whether the number was another one before a later write.
    is_changed_by_others: Cell<bool>,
}

impl Counter {
    fn open(directory: &str, size: PageSize, wanted: Pages) -> Result<Self, Error> {
        let mut counter = Self {
            directory: PathBuf::from(directory),
            size,
            wanted: wanted.0,
            before: 0,
            reached: Cell::new(0),
            is_changed_by_others: Cell::new(false),
        };
        counter.before = counter.persistent()?;
        counter.reached.set(counter.before);
        Ok(counter)
    }

    fn read(&self, name: &str) -> Result<u64, Error> {
        let path = self.directory.join(name);
        let failed = |error| Error::file("read", &path, error);
        let text = fs::read_to_string(&path).map_err(failed)?;
        let number = text.trim().parse();
        number.map_err(|_| failed(io::ErrorKind::InvalidData.into()))
    }

    /// The number that a write sets: `nr_hugepages` shows surplus pages, too.
    fn persistent(&self) -> Result<u64, Error> {
        let surplus = self.read("surplus_hugepages")?;
        Ok(self.read("nr_hugepages")?.saturating_sub(surplus))
    }

    fn write(&self, pages: u64) -> Result<(), Error> {
        let path = self.directory.join("nr_hugepages");
        fs::write(&path, format!("{pages}\n")).map_err(|error| Error::file("write", &path, error))
    }

    /// Adds pages until the kernel allocates no more of them. Returns the number of pages.
    fn grow(&self) -> Result<u64, Error> {
        let chunk = (CHUNK_BYTES / self.size.0).max(1);
        let mut pages = self.persistent()?;
        if pages != self.reached.get() {
            self.is_changed_by_others.set(true);
        }
        while pages < self.wanted && !is_interrupted() {
            let next = self.wanted.min(pages + chunk);
            self.write(next)?;
            let now = self.persistent()?;
            self.reached.set(now);
            if now <= pages {
                break;
            }
            pages = now;
        }
        Ok(pages)
    }

    /// Removes the pages that were added, unless somebody else has set the number meanwhile.
    fn restore(&self) -> Result<(), Error> {
        let pages = self.persistent()?;
        let is_own = pages == self.reached.get() && !self.is_changed_by_others.get();
        // Never below the pages that were there.
        match is_own && pages > self.before {
            true => self.write(self.before),
            false => Ok(()),
        }
    }
}

/// Takes the steps, and tries until `deadline` where memory is short or fragmented. If a pool does
/// not reach its size, or if that is not enough, restores all of them. Returns whether it was
/// enough.
///
/// Errors: a file cannot be read or written, or a signal. The pools are restored then, too.
pub(crate) fn take(
    steps: &[Step],
    deadline: Instant,
    progress: impl Fn(PageSize, u64, u64),
    is_enough: impl FnOnce() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let counters = counters(steps)?;
    let grown = match grow(&counters, deadline, progress) {
        Ok(true) => is_enough(),
        other => other,
    };
    if !matches!(grown, Ok(true)) {
        for counter in counters.iter().rev() {
            counter.restore()?;
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
            let directory = nodes::pool_directory(*node, size.0);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool of which the kernel allocates all pages.
    fn pool(total: u64, surplus: u64) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        set(&directory, total);
        let file = directory.path().join("surplus_hugepages");
        fs::write(file, format!("{surplus}\n")).expect("written");
        directory
    }

    fn set(directory: &tempfile::TempDir, total: u64) {
        let file = directory.path().join("nr_hugepages");
        fs::write(file, format!("{total}\n")).expect("written");
    }

    fn counter(directory: &tempfile::TempDir, wanted: u64) -> Counter {
        let path = directory.path().to_str().expect("text");
        Counter::open(path, PageSize(2 << 20), Pages(wanted)).expect("a pool")
    }

    #[test]
    fn added_pages_are_removed() {
        let directory = pool(10, 0);
        let counter = counter(&directory, 900);
        assert_eq!(counter.grow().ok(), Some(900));
        counter.restore().expect("restored");
        assert_eq!(counter.persistent().ok(), Some(10));
    }

    #[test]
    fn the_number_of_another_program_stays() {
        let directory = pool(10, 0);
        let counter = counter(&directory, 20);
        counter.grow().expect("grown");
        set(&directory, 30);
        counter.restore().expect("restored");
        assert_eq!(counter.persistent().ok(), Some(30));
        // Also if this run has written since.
        set(&directory, 15);
        counter.grow().expect("grown");
        counter.restore().expect("restored");
        assert_eq!(counter.persistent().ok(), Some(20));
    }

    #[test]
    fn surplus_pages_are_no_growth() {
        let directory = pool(30, 25);
        let counter = counter(&directory, 20);
        assert_eq!(counter.persistent().ok(), Some(5));
        counter.grow().expect("grown");
        assert_eq!(counter.read("nr_hugepages").ok(), Some(20));
    }
}
