//! What the server would need if it started with its configuration files as they are now, its
//! command line, and some settings changed.
//!
//! PostgreSQL itself computes it: its program is run with `-C`, which prints a setting and ends
//! before anything is allocated. It refuses a data directory in use, so that it gets a scratch one.
//!
//! No file that somebody has written is opened in this backend, where one that is a pipe would hang
//! it for good: children read them, and have a time limit.
//!
//! * [`next_start`]: the answer.
//! * [`changes`]: what has to be changed for it.
//! * [`settings`]: which settings may be planned.
//! * [`host`]: another host that is planned for.
//! * [`scratch`]: the directory.
//! * [`program`]: one run of the program.
//! * [`on_disk`]: settings as the files have them.
//! * [`output`]: what a child writes until it ends.
//! * [`held`]: what has to go when a call ends.

pub(crate) mod changes;
mod held;
pub(crate) mod host;
pub(crate) mod next_start;
mod on_disk;
mod output;
mod program;
mod scratch;
pub(crate) mod settings;
