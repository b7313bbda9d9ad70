//! The sections of the page.

pub(crate) mod checks;
pub(crate) mod comparison;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod page_tables;
pub(crate) mod processes;
pub(crate) mod summary;
