//! Machines, and what is said about them: the status, the finding and the remedy, as pasted.
//!
//! A row changes a healthy machine and lists what it expects. Everything else that is said about
//! the machine is checked for its English, and all remedies for their syntax.

#![allow(clippy::expect_used)]

mod cgroups;
mod harm;
mod memory;
mod next_boot;
mod numa;
mod oom;
mod other_servers;
mod overcommit;
mod page_tables;
mod pages;
mod paste;
#[path = "../scene/mod.rs"]
mod scene;
mod settings;
mod table;
mod thp;
