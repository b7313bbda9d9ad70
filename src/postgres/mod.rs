//! Facts from the server itself. The only module with `unsafe` and `pg_sys`; one file for each
//! subject.

pub(crate) mod activity;
mod c_string;
pub(crate) mod call;
pub(crate) mod catalog;
pub(crate) mod child;
pub(crate) mod descriptors;
pub(crate) mod encoding;
pub(crate) mod exit;
pub(crate) mod interrupts;
pub(crate) mod jsonb;
pub(crate) mod latch;
pub(crate) mod memory;
pub(crate) mod muted_checks;
pub(crate) mod places;
pub(crate) mod planned_value;
pub(crate) mod processes;
pub(crate) mod reload;
pub(crate) mod roles;
pub(crate) mod server;
pub(crate) mod setting_source;
pub(crate) mod settings;
pub(crate) mod settings_on_disk;
pub(crate) mod text;
pub(crate) mod values;
pub(crate) mod versions;
