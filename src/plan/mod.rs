//! The needs of the server if it started with its present configuration files and command line, and
//! some changed settings.
//!
//! PostgreSQL itself computes them: its program runs with `-C`, prints a setting and ends before it
//! allocates shared memory. It refuses a data directory that is in use, so it gets a scratch
//! directory.
//!
//! This backend opens no file that a user has written, because a pipe would block it forever.
//! Children read these files, with a time limit.
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
