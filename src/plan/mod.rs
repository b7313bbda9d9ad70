//! What the server would need if it started with its configuration files as they are now, its
//! command line, and some settings changed.
//!
//! PostgreSQL itself computes it: its program runs with `-C`, prints a setting and ends before it
//! allocates anything. It refuses a data directory that is in use, so it gets a scratch directory.
//!
//! This backend opens no file that a user has written: a pipe would hang it forever. Children read
//! these files, with a time limit.
//!
//! * [`next_start`]: the answer.
//! * [`changes`]: what has to be changed to get there.
//! * [`settings`]: which settings may be planned.
//! * [`assignments`]: settings as text.
//! * [`host`]: planning for another host.
//! * [`scratch`]: the scratch directory.
//! * [`program`]: one run of the program.
//! * [`on_disk`]: settings as the files have them.
//! * [`output`]: what a child writes until it ends.
//! * [`held`]: what to release when a call ends.

pub(crate) mod assignments;
pub(crate) mod changes;
mod held;
pub(crate) mod host;
pub(crate) mod next_start;
mod on_disk;
mod output;
mod program;
mod scratch;
pub(crate) mod settings;
