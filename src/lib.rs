//! Huge pages, page tables and page faults of this PostgreSQL server, in SQL.
//!
//! This crate is only the SQL interface. The crate `hugeinfo` reads and judges the facts.
//!
//! * [`error`]: the errors.
//! * [`postgres`]: facts from the server itself. The only place with `unsafe` and `pg_sys`.
//! * [`processes`]: the processes of this server, and no others.
//! * [`machine`]: this server and its machine, in as much detail as a query needs.
//! * [`facts`]: the facts about both.
//! * [`plan`]: the needs of the next start, as PostgreSQL itself computes them. [`files`]: whether
//!   they differ from the running server.
//! * [`numbers`]: the kernel's numbers as SQL types.
//! * [`views`]: a file for each view or function, and the SQL of the views and their grants.

#[cfg(not(target_os = "linux"))]
compile_error!("pg_hugeinfo reads /proc and /sys of Linux; it does not support other systems");
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64"
)))]
compile_error!("pg_hugeinfo supports only x86-64 and arm64");
#[cfg(not(target_env = "gnu"))]
compile_error!(
    "pg_hugeinfo needs glibc, whose allocator keeps memory ready for errors (src/postgres/memory.rs)"
);

mod cached;
mod error;
mod facts;
mod files;
mod machine;
mod numbers;
mod others;
mod plan;
mod postgres;
mod processes;
mod views;

pgrx::pg_module_magic!(name, version);

/// Called by PostgreSQL when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    postgres::memory::prepare();
    postgres::muted_checks::define();
}
