//! Lines and parameters that set huge pages, and changes to them.

use std::fmt;

use crate::escape;

/// Page sizes of the running kernel, which is assumed to boot next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Sizes of its huge pages in bytes. `None`: unknown.
    pub sizes: Option<Vec<u64>>,
    /// Default size in bytes, after `default_hugepagesz=`. `None`: unknown.
    pub default_bytes: Option<u64>,
}

/// The kernel command line.
pub(crate) const COMMAND_LINE: &str = "/proc/cmdline";

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

    /// True for words on the kernel command line.
    pub fn is_command_line(&self) -> bool {
        self.file == COMMAND_LINE
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_command_line() {
            write!(f, "{} ({})", self.file, self.text)
        } else {
            write!(f, "{}:{}", self.file, self.line)
        }
    }
}

/// A number of pages that is set at the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Page size in bytes. `None`: the default size, which is unknown.
    pub page_bytes: Option<u64>,
    /// The number of persistent pages.
    pub pages: u64,
    /// The line or words that set it.
    pub place: Place,
}

/// A line for the default pool that has no effect. Displays as a clause:
/// `/etc/sysctl.d/a.conf:1 sets vm.nr_hugepages = 1GB, but the kernel refuses this value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ineffective {
    /// 0 pages if the value is not a plain number.
    pub request: Request,
    /// The reason, as the end of a sentence.
    pub why: &'static str,
}

/// No sysctl.d directory has a link to `/etc/sysctl.conf`, as on Debian 13.
pub(super) const NOT_READ: &str = "systemd does not read this file (Debian 13 and newer)";
/// The write fails with EINVAL (kernel/sysctl.c `proc_get_long`).
pub(super) const REFUSED: &str = "the kernel refuses this value";

impl fmt::Display for Ineffective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.request.place;
        write!(f, "{place} sets {}, but {}", place.text, self.why)
    }
}

/// Something that might set a pool, with an unknown result. The administrator has to check it.
/// Displays as a clause: `/etc/tmpfiles.d/a.conf:3 sets the pool in another way`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Absolute path of a file or directory, escaped for display.
    pub file: String,
    /// Line number, starting at 1. `None`: the contents are unknown, or it is the kernel command
    /// line.
    pub line: Option<usize>,
    /// Size of the pages in the pool that it might set. `None`: any pool.
    pub page_bytes: Option<u64>,
    /// The reason, as the end of a sentence that begins with the file.
    pub why: &'static str,
}

/// The file or directory cannot be read, or is not a regular file.
pub(super) const UNREADABLE: &str = "cannot be read";
/// The file or directory exceeds a limit.
pub(super) const TOO_LARGE: &str = "is too large to read";
/// The result of this mechanism is not computed here.
pub(super) const SETS_POOL: &str = "sets the pool in another way";
/// The value is not a number, or has a notation that is not interpreted.
pub(super) const NOT_A_NUMBER: &str = "sets a number of pages that is not a plain number";

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, " {}", self.why)
    }
}

/// A change of the boot configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A command edits a file of sysctl.d.
    Edit(Edit),
    /// A person edits the configuration of the boot loader, which differs between distributions.
    Words(Words),
}

/// A change of a file that sysctl reads at the next boot.
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
        line: String,
        /// True if the directory of the file does not exist yet.
        makes_directory: bool,
    },
}

/// Words to write on the kernel command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The words, such as `hugepagesz=1G hugepages=4`.
    pub new: String,
    /// Words that they replace, escaped for display. `None`: they are added at the end, because a
    /// later `hugepages=` without a size would belong to them.
    pub instead_of: Option<String>,
}
