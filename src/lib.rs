//! Huge pages, page tables and page faults of this PostgreSQL server, in SQL.
//!
//! This crate is only the SQL face; what it shows is read and judged by the crate `hugeinfo`.
//!
//! * [`error`]: all that can go wrong. [`report`]: which SQLSTATE and hint it gets.
//! * [`postgres`]: what the server says of itself. The only place with `unsafe` and `pg_sys`.
//! * [`processes`]: the processes of this server, and nobody else's.
//! * [`machine`]: this server and its machine, looked at as closely as a question needs.
//! * [`surroundings`]: what the diagnoses look at beyond the facts of the server itself.
//! * [`plan`]: what the next start will need, as PostgreSQL itself computes it. [`files`]: whether
//!   that differs from what is.
//! * [`numbers`]: the kernel's numbers as SQL has them.
//! * [`views`]: a file for each SQL object, its SQL beside it.

#[cfg(not(target_os = "linux"))]
compile_error!("pg_hugeinfo reads /proc and /sys of Linux; it cannot be built for another system");

mod error;
mod files;
mod machine;
mod numbers;
mod plan;
mod postgres;
mod processes;
mod report;
mod surroundings;
mod views;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    postgres::memory::prepare();
    postgres::muted_checks::define();
}
