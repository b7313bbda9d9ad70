//! Machines with the expected status, finding and remedy.
//!
//! A row changes a healthy machine and lists its expectations. All other texts about the machine
//! are checked for wrong words, and all remedies for their syntax.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used
)]

mod cgroups;
mod ensure;
mod harm;
mod memory;
mod next_boot;
mod numa;
mod oom;
mod order;
mod other_servers;
mod overcommit;
mod owners;
mod page_tables;
mod pages;
mod paste;
#[path = "../scene/mod.rs"]
mod scene;
mod settings;
mod table;
mod thp;
