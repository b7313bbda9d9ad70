//! Grows the pools of the kernel.

use std::{
    cell::Cell,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use advice::model::step::Step;
use host::{
    linux::hugepages,
    units::{PageSize, Pages},
};

use crate::{command::is_interrupted, error::Error};

/// Pause before the next attempt, while other processes release memory.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// Bytes of one write, so that a signal is noticed.
const CHUNK_BYTES: u64 = 1 << 30;

/// The persistent pages of a pool.
struct Counter {
    directory: PathBuf,
    size: PageSize,
    before: u64,
    /// After the last write of this run.
    reached: Cell<u64>,
    /// Whether the number was another one before a later write.
    is_changed_by_others: Cell<bool>,
}

impl Counter {
    fn open(directory: &str, size: PageSize) -> Result<Self, Error> {
        let mut counter = Self {
            directory: PathBuf::from(directory),
            size,
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

    /// The number that a write sets: `nr_hugepages` also shows surplus pages.
    fn persistent(&self) -> Result<u64, Error> {
        let surplus = self.read("surplus_hugepages")?;
        Ok(self.read("nr_hugepages")?.saturating_sub(surplus))
    }

    fn write(&self, pages: u64) -> Result<(), Error> {
        let path = self.directory.join("nr_hugepages");
        fs::write(&path, format!("{pages}\n")).map_err(|error| Error::file("write", &path, error))
    }

    /// Adds pages until the kernel allocates no more of them. Returns the number of pages.
    fn grow(&self, wanted: u64) -> Result<u64, Error> {
        let chunk = (CHUNK_BYTES / self.size.0).max(1);
        let mut pages = self.persistent()?;
        if pages != self.reached.get() {
            self.is_changed_by_others.set(true);
        }
        while pages < wanted && !is_interrupted() {
            let next = wanted.min(pages + chunk);
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
        if is_own && pages > self.before {
            self.write(self.before)?;
            self.reached.set(self.before);
        }
        Ok(())
    }

    fn added(&self) -> Pages {
        Pages(self.reached.get()) - Pages(self.before)
    }
}

/// The pools that are grown for one server.
pub(crate) struct Growth {
    counters: Vec<Counter>,
    /// Upper limit of added pages: the need of the server. Without it, this run would keep adding
    /// pages for other processes that take them.
    most: Pages,
}

/// The result of one attempt to grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// All pools have their size.
    Whole,
    /// The kernel allocated fewer pages. The pools have this many.
    Short(u64),
    /// The server's need was added in full, but other processes took some of the pages.
    Taken,
}

impl Growth {
    pub(crate) fn at_most(most: Pages) -> Self {
        Self {
            counters: Vec::new(),
            most,
        }
    }

    /// Adds pages once, as far as the kernel allocates them.
    ///
    /// Errors: a file cannot be read or written, or a signal.
    pub(crate) fn attempt(&mut self, steps: &[Step]) -> Result<Attempt, Error> {
        self.attempt_in(wanted(steps))
    }

    fn attempt_in(
        &mut self,
        wanted: impl IntoIterator<Item = (String, PageSize, Pages)>,
    ) -> Result<Attempt, Error> {
        let mut is_whole = true;
        let mut is_bounded = false;
        let mut all = 0;
        for (directory, size, wanted) in wanted {
            let left = self.most - self.added();
            let counter = self.counter(&directory, size)?;
            let most = counter.reached.get().saturating_add(left.0);
            let pages = counter.grow(wanted.0.min(most))?;
            if is_interrupted() {
                return Err(Error::new("interrupted by a signal"));
            }
            is_bounded |= wanted.0 > most;
            is_whole &= pages >= wanted.0.min(most);
            all += pages;
        }
        Ok(match (is_whole, is_bounded) {
            (true, false) => Attempt::Whole,
            (true, true) => Attempt::Taken,
            (false, _) => Attempt::Short(all),
        })
    }

    fn counter(&mut self, directory: &str, size: PageSize) -> Result<&Counter, Error> {
        let mut known = self.counters.iter();
        let index = match known.position(|counter| counter.directory == Path::new(directory)) {
            Some(index) => index,
            None => {
                self.counters.push(Counter::open(directory, size)?);
                self.counters.len() - 1
            }
        };
        Ok(&self.counters[index])
    }

    /// Removes the pages that were added.
    pub(crate) fn restore(&self) -> Result<(), Error> {
        let mut counters = self.counters.iter().rev();
        counters.try_for_each(Counter::restore)
    }

    /// Pages that were added.
    pub(crate) fn added(&self) -> Pages {
        let added = self.counters.iter().map(Counter::added);
        added.sum()
    }
}

/// The directories of the pools, and their pages.
fn wanted(steps: &[Step]) -> Vec<(String, PageSize, Pages)> {
    let pools = steps.iter().filter_map(|step| match step {
        Step::SetPool { size, pages } => Some((hugepages::directory(size.0), *size, *pages)),
        _ => None,
    });
    pools.collect()
}

/// Compacts memory, so that the kernel finds more huge pages. Growing goes on without it, for
/// example in a kernel without `CONFIG_COMPACTION`, or with a read-only `/proc/sys`.
pub(crate) fn compact() {
    let _ = fs::write("/proc/sys/vm/compact_memory", "1\n");
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

    fn counter(directory: &tempfile::TempDir) -> Counter {
        let path = directory.path().to_str().expect("text");
        Counter::open(path, PageSize(2 << 20)).expect("a pool")
    }

    #[test]
    fn added_pages_are_removed() {
        let directory = pool(10, 0);
        let counter = counter(&directory);
        assert_eq!(counter.grow(900).ok(), Some(900));
        assert_eq!(counter.added(), Pages(890));
        counter.restore().expect("restored");
        assert_eq!(counter.persistent().ok(), Some(10));
        assert_eq!(counter.added(), Pages(0));
    }

    #[test]
    fn the_number_of_another_program_stays() {
        let directory = pool(10, 0);
        let counter = counter(&directory);
        counter.grow(20).expect("grown");
        set(&directory, 30);
        counter.restore().expect("restored");
        assert_eq!(counter.persistent().ok(), Some(30));
        // Also if this run has written since.
        set(&directory, 15);
        counter.grow(20).expect("grown");
        counter.restore().expect("restored");
        assert_eq!(counter.persistent().ok(), Some(20));
    }

    #[test]
    fn surplus_pages_are_no_growth() {
        let directory = pool(30, 25);
        let counter = counter(&directory);
        assert_eq!(counter.persistent().ok(), Some(5));
        counter.grow(20).expect("grown");
        assert_eq!(counter.read("nr_hugepages").ok(), Some(20));
    }

    #[test]
    fn growth_is_bounded_by_the_need() {
        let mut growth = Growth::at_most(Pages(20));
        let directory = pool(10, 0);
        let path = directory.path().to_str().expect("text");
        let mut attempt = |wanted| {
            let wanted = [(path.to_owned(), PageSize(2 << 20), Pages(wanted))];
            growth.attempt_in(wanted)
        };
        assert_eq!(attempt(25).ok(), Some(Attempt::Whole));
        // Others have taken the pages.
        assert_eq!(attempt(50).ok(), Some(Attempt::Taken));
        assert_eq!(attempt(90).ok(), Some(Attempt::Taken));
        assert_eq!(growth.added(), Pages(20));
    }
}
