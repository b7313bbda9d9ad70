//! Files, lines and words about huge pages, and the changes to them.

use std::fmt;

use crate::escape;

/// The kernel command line.
pub(super) const COMMAND_LINE: &str = "/proc/cmdline";

/// A part of a pool's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Persistent pages: `nr_hugepages`.
    Pages,
    /// Maximum number of surplus pages: `nr_overcommit_hugepages`.
    Overcommit,
}

/// The position of a line or word. Displays as `FILE:LINE`, or `/proc/cmdline (WORDS)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute path, escaped for display.
    pub file: String,
    /// Line number, starting at 1. On the kernel command line, the number of the word.
    pub line: usize,
    /// The text, escaped and truncated. On the kernel command line, the words that belong together,
    /// such as `hugepagesz=1G hugepages=4`.
    pub text: String,
}

impl Place {
    pub(super) fn new(file: &str, line: usize, text: &str) -> Self {
        /// Longer than any real line about huge pages.
        const LONGEST: usize = 200;
        Self {
            file: file.to_owned(),
            line,
            text: escape::shortened(&escape::name(text.trim()), LONGEST),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file == COMMAND_LINE {
            write!(f, "{} ({})", self.file, self.text)
        } else {
            write!(f, "{}:{}", self.file, self.line)
        }
    }
}

/// A number of pages that is set at the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Page size in bytes. `None`: the default size.
    pub page_bytes: Option<u64>,
    /// The counter that is set.
    pub what: What,
    /// The number of pages.
    pub pages: u64,
    /// The line or words that set it.
    pub place: Place,
}

/// A line or word about a pool that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The line or word.
    pub place: Place,
    /// Page size in bytes. `None`: the default size, or no valid size.
    pub page_bytes: Option<u64>,
    /// The reason.
    pub why: WhyIgnored,
}

impl Ignored {
    pub(super) fn new(place: Place, page_bytes: Option<u64>, why: WhyIgnored) -> Self {
        Self {
            place,
            page_bytes,
            why,
        }
    }
}

/// Reasons why a line or word has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyIgnored {
    /// A later sysctl line sets the same key.
    Overridden(Place),
    /// The kernel has no huge pages of this size.
    NoSuchSize,
    /// The value is not a number that the kernel accepts.
    Malformed,
    /// `/etc/sysctl.conf` without a link to it in a sysctl.d directory, as on Debian 13.
    NotReadBySystemd,
    /// An earlier word sets the same pool to the same number.
    Repeated,
}

/// Something that might set a pool, with an unknown result. The administrator has to check it.
/// Displays as `FILE` or `FILE:LINE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Absolute path of a file or directory, escaped for display.
    pub file: String,
    /// Line number, starting at 1. On the kernel command line, the number of the word. `None`: the
    /// contents are unknown.
    pub line: Option<usize>,
    /// The pools that it might set.
    pub scope: Scope,
    /// The reason.
    pub why: WhyUnknown,
}

impl Unknown {
    pub(super) fn new(file: &str, line: Option<usize>, scope: Scope, why: WhyUnknown) -> Self {
        let file = file.to_owned();
        Self {
            file,
            line,
            scope,
            why,
        }
    }
}

impl fmt::Display for Unknown {
    /// The file and the reason: `/etc/tmpfiles.d/a.conf:3 sets the pool in another way`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, " {}", self.why)
    }
}

/// Pools that something might set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Any pool.
    AnySize,
    /// The pool of the default size.
    DefaultSize,
    /// The pool of this page size, in bytes.
    Size(u64),
}

/// Reasons why a result is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnknown {
    /// The file or directory cannot be read, or is not a regular file.
    Unreadable,
    /// The file or directory exceeds a limit on its size, its lines or its names.
    TooLarge,
    /// The line sets a pool by a mechanism whose result is not computed here, such as tmpfiles.d,
    /// tuned, or a pattern in a sysctl key.
    SetsPool,
    /// `hugepages=NODE:COUNT,…` sets the pages of each NUMA node.
    PerNode,
    /// `hugetlb_cma=` reserves memory for the largest pages, and restricts what `hugepages=`
    /// allocates.
    Cma,
    /// Words repeat a page size. Kernel versions differ in which of them counts.
    Repeated,
}

impl fmt::Display for WhyUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "cannot be read",
            Self::TooLarge => "is too large to read",
            Self::SetsPool => "sets the pool in another way",
            Self::PerNode => "sets the pages of each NUMA node",
            Self::Cma => "reserves memory for the largest pages (hugetlb_cma)",
            Self::Repeated => "repeats a page size",
        })
    }
}

/// A change that sets another value at the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Replaces each line of a file that is equal to `old`.
    Replace {
        /// Path below `/etc`, with all links resolved.
        file: String,
        /// The line: printable ASCII characters and tabs.
        old: String,
        /// The new line.
        new: String,
    },
    /// Appends a line to a file. The file might not exist yet.
    Append {
        /// Path below `/etc`.
        file: String,
        /// The line.
        line: String,
        /// True if the directory of the file does not exist yet.
        makes_directory: bool,
    },
    /// Changes the kernel command line, in the configuration of the boot loader.
    CommandLine {
        /// Words to write.
        new: String,
        /// Words to replace. Other words can stand between them. Empty: the new words are added.
        instead_of: Vec<String>,
        /// True if the new words have to follow all other words of the kernel.
        at_end: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// `*.conf` in a sysctl.d directory.
    Sysctl,
    /// `*.conf` in a tmpfiles.d directory.
    Tmpfiles,
    /// `/etc/sysctl.conf`.
    SysctlConf,
    /// A profile of tuned.
    Other,
}

/// A file, or a directory whose files are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) kind: Kind,
    /// Absolute path, escaped for display.
    pub(super) path: String,
    /// Files of one kind are read in the order of these bytes.
    pub(super) name: Vec<u8>,
    /// Path with all links resolved. `None` if it is not below `/etc`, where administrators edit
    /// files, or if it cannot be quoted in a shell command.
    pub(super) local: Option<String>,
    /// Relevant lines with their numbers, or the reason why they are unknown.
    pub(super) lines: Result<Vec<(usize, String)>, WhyUnknown>,
    /// Number of all lines.
    pub(super) line_count: usize,
    /// True if a line can be appended: the file is empty or ends with a line feed.
    pub(super) is_complete: bool,
}

/// True if `pattern` is a pattern of glob(7) that might match `name`. Compares only the text before
/// the first and after the last special character.
pub(super) fn might_match(pattern: &str, name: &str) -> bool {
    let is_special = |c| matches!(c, '*' | '?' | '[' | ']' | '{' | '}');
    let (Some(first), Some(last)) = (pattern.find(is_special), pattern.rfind(is_special)) else {
        return false;
    };
    name.starts_with(&pattern[..first]) && name.ends_with(&pattern[last + 1..])
}
