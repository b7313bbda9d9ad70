//! Files, lines and parameters for huge pages, and changes to them.

use std::fmt;

use crate::escape;

/// The kernel command line.
pub(super) const COMMAND_LINE: &str = "/proc/cmdline";

/// The position of a line or word. Displays as `FILE:LINE`, or `/proc/cmdline (WORDS)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute path, escaped for display.
    pub file: String,
    /// Line number, starting at 1.
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
    /// The number of persistent pages.
    pub pages: u64,
    /// The line or words that set it.
    pub place: Place,
}

/// Something that might set a pool, with an unknown result. The administrator has to check it.
/// Displays as `FILE` or `FILE:LINE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Absolute path of a file or directory, escaped for display.
    pub file: String,
    /// Line number, starting at 1. `None`: the contents are unknown, or it is the kernel command
    /// line.
    pub line: Option<usize>,
    /// The pools that it might set.
    pub scope: Scope,
    /// The reason.
    pub why: WhyUnknown,
}

impl Unknown {
    pub(super) fn new(file: &str, line: Option<usize>, scope: Scope, why: WhyUnknown) -> Self {
        Self {
            file: file.to_owned(),
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
    /// Words repeat a page size, have an unusual notation, or are in an order that kernel versions
    /// read differently.
    Unusual,
    /// The value is not a number, or has a notation that is not interpreted.
    NotANumber,
}

impl fmt::Display for WhyUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "cannot be read",
            Self::TooLarge => "is too large to read",
            Self::SetsPool => "sets the pool in another way",
            Self::PerNode => "sets the pages of each NUMA node",
            Self::Cma => "reserves memory for the largest pages (hugetlb_cma)",
            Self::Unusual => "has unusual parameters for huge pages",
            Self::NotANumber => "sets a number of pages that is not a plain number",
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
}

/// Words to write on the kernel command line, in the configuration of the boot loader. No command
/// does this: the configuration differs between boot loaders and distributions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The words, such as `hugepagesz=1G hugepages=4`.
    pub new: String,
    /// Words that they replace, escaped for display. `None`: they are added.
    pub instead_of: Option<String>,
    /// True if they have to follow all other parameters for huge pages.
    pub at_end: bool,
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
