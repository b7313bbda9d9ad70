//! Huge pages, page tables and page faults of this PostgreSQL server, in SQL.
//!
//! This crate is only the SQL face; what it shows is read and judged by the crate `hugeinfo`.
//!
//! * [`plan`]: what the next start will need, as PostgreSQL itself computes it.
//! * [`postgres`]: what the server says of itself. The only place with `unsafe` and `pg_sys`.
//! * [`error`]: which SQLSTATE and hint an error gets.
//! * [`processes`]: the processes of this server, and nobody else's.
//! * [`surroundings`], [`waiting`]: what the diagnoses look at beyond the cheap facts.
//! * [`views`]: a file for each SQL object, its SQL beside it.

#[cfg(not(target_os = "linux"))]
compile_error!("pg_hugeinfo reads /proc and /sys of Linux; it cannot be built for another system");

mod error;
mod plan;
mod postgres;
mod processes;
mod surroundings;
mod views;
mod waiting;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    postgres::memory::prepare();
}
