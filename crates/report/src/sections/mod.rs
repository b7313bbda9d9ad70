//! The sections of the page.

pub(crate) mod checks;
pub(crate) mod figures;
pub(crate) mod memory;
pub(crate) mod next_start;
pub(crate) mod numa;
pub(crate) mod other_servers;
pub(crate) mod page_tables;
pub(crate) mod pools;
pub(crate) mod processes;
pub(crate) mod ram;
pub(crate) mod runbook;
pub(crate) mod unread;
pub(crate) mod verdict;
