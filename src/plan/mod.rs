//! The needs of the server if it started with its present configuration files and command line, and
//! some changed settings.
//!
//! PostgreSQL itself computes them: its program runs with `-C`, prints a setting and exits before
//! it allocates shared memory. It rejects a data directory that is in use, so this crate passes a
//! scratch directory.
//!
//! This backend opens no file that a user has written, because a pipe would block it forever.
//! Children read these files, with a time limit.
//!
//! * [`next_start`]: the settings of the next start, and the largest `shared_buffers` for it.
//! * [`changes`]: the changes that lead to a planned configuration.
//! * [`settings`]: the settings that can be planned.
//! * [`assignments`]: settings as text.
//! * [`host`]: planning for another host.
//! * [`scratch`]: the scratch directory.
//! * [`program`]: one run of the program.
//! * [`on_disk`]: the values in the files.
//! * [`output`]: the output of a child until it ends.
//! * [`held`]: resources to release when a call ends.

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
