//! A line or a word that asks for huge pages at boot, and what becomes of it.

use std::fmt;

/// A pool, or a part of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Persistent pages of the whole machine: `nr_hugepages`.
    Pages,
    /// Persistent pages of one node.
    PagesOfNode(u32),
    /// How many surplus pages the kernel may make: `nr_overcommit_hugepages`.
    Overcommit,
}

/// When a request is carried out. Each phase comes after the one before it, but for the last two:
/// nothing orders `systemd-sysctl.service` and `systemd-tmpfiles-setup.service`. The latter waits
/// for the local file systems, and comes later in practice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The kernel's command line.
    CommandLine,
    /// Words `sysctl.NAME=VALUE` on it.
    Arguments,
    /// Files of sysctl.d(5).
    Sysctl,
    /// Files of tmpfiles.d(5).
    Tmpfiles,
}

/// Where a request stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The absolute path of the file.
    pub file: String,
    /// The line, from 1. On the command line, the word.
    pub line: usize,
    /// What stands there, shortened where it is long.
    pub text: String,
}

impl Place {
    pub(super) fn new(file: &str, line: usize, text: &[u8]) -> Self {
        /// More than a line has that asks for huge pages.
        const LONGEST: usize = 200;
        let shown = text.get(..LONGEST).unwrap_or(text);
        Self {
            file: file.to_owned(),
            line,
            text: String::from_utf8_lossy(shown).into_owned(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One number that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The size of the pages; `None`: the default size.
    pub page_bytes: Option<u64>,
    /// Of what.
    pub what: What,
    /// How many.
    pub pages: u64,
    /// When.
    pub phase: Phase,
    /// By whom.
    pub place: Place,
}

/// A request without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Where it stands.
    pub place: Place,
    /// Which page size it means, where that can be said; `None`: the default size, or none at all.
    pub page_bytes: Option<u64>,
    /// Why it has none.
    pub why: Why,
}

/// Why a request has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Another one takes its place.
    Overridden(Place),
    /// It repeats the one before it: of two for one size the first counts.
    Repeated,
    /// The kernel has no such page size, or one was named that it already had.
    NoSuchSize,
    /// It is no number, or names a node that the machine does not have.
    Malformed,
    /// Linux 6.15 and later take no more words about huge pages than this.
    TooMany(usize),
    /// `hugetlb_cma=` sets memory apart, and such large pages are made of it later.
    Cma,
    /// The machine has no such node.
    NoSuchNode,
}

/// Something that may change what the next boot sets up, and that nobody can tell from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// In which phase.
    pub phase: Phase,
    /// What it may change: pages or overcommit, of the machine or a part of it.
    pub of: What,
    /// The file, or a directory of such files.
    pub file: String,
    /// What of it.
    pub what: Doubtful,
}

/// Why that is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubtful {
    /// It may not be read.
    Unread,
    /// The file exceeds a limit on its size or its lines.
    TooLarge,
    /// Its line, from 1, sets a pool in a way that is not worked out here.
    Line(usize),
    /// It sets a pool that sysctl sets, too, and nothing orders the two.
    Unordered,
}

/// What the files of one kind come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// What takes effect, in its order.
    pub asked: Vec<Asked>,
    /// What does not.
    pub dropped: Vec<Dropped>,
    /// What is unknown.
    pub doubts: Vec<Doubt>,
}
