//! Huge pages, page tables and page faults of this PostgreSQL server, in SQL.
//!
//! This crate is only the SQL interface. The crate `hugeinfo` reads and judges what it shows.
//!
//! * [`error`]: all that can go wrong. [`report`]: which SQLSTATE and hint it gets.
//! * [`postgres`]: what the server says about itself. The only place with `unsafe` and `pg_sys`.
//! * [`processes`]: the processes of this server, and no others.
//! * [`machine`]: this server and its machine, in as much detail as a question needs.
//! * [`environment`]: what the checks need besides the facts of the server itself.
//! * [`plan`]: what the next start will need, as PostgreSQL itself computes it. [`files`]: whether
//!   that differs from the running server.
//! * [`numbers`]: the kernel's numbers as SQL types.
//! * [`views`]: two files for each SQL object: Rust and SQL.

#[cfg(not(target_os = "linux"))]
compile_error!("pg_hugeinfo reads /proc and /sys of Linux; it cannot be built for another system");
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64"
)))]
compile_error!("pg_hugeinfo was tried on x86-64 and arm64 alone; it is not built for others");
#[cfg(not(target_env = "gnu"))]
compile_error!(
    "pg_hugeinfo needs glibc: without memory it relies on what glibc keeps ready (src/postgres/memory.rs)"
);

mod environment;
mod error;
mod files;
mod machine;
mod numbers;
mod others;
mod plan;
mod postgres;
mod processes;
mod report;
mod views;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    postgres::memory::prepare();
    postgres::muted_checks::define();
}
