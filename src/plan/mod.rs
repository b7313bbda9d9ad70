//! The needs of the server if it started with its present configuration files and command line, and
//! some changed settings.
//!
//! The crate `host` computes them with PostgreSQL's program.
//!
//! This backend opens no file that a user has written, because a pipe would block it forever.
//! Children read these files, with a time limit.
//!
//! * [`next_start`]: the settings of the next start, and the largest `shared_buffers` for it.
//! * [`changes`]: the changes that lead to a planned configuration.
//! * [`settings`]: the settings that can be planned.
//! * [`assignments`]: settings as text.
//! * [`on_disk`]: the values in the files.
//! * [`children`]: how children run.

pub(crate) mod assignments;
pub(crate) mod changes;
mod children;
pub(crate) mod next_start;
mod on_disk;
pub(crate) mod settings;
