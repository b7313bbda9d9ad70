//! Facts about one PostgreSQL server and its machine. Unknown facts are absent, never a default.

pub mod change_time;
pub mod configuration;
pub mod connection;
pub mod dynamic_shared_memory;
pub mod facts;
pub mod footprint;
pub mod holders;
pub mod instances;
pub mod mapping_kind;
pub mod pod_limits;
pub mod postmaster_arguments;
pub mod postmaster_pid;
pub mod rights;
pub mod setting;
pub mod sources;
pub mod state;
pub mod unit;
pub mod visibility;
