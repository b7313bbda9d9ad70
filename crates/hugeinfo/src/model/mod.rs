//! What will happen: pure arithmetic over facts.

pub mod forecast;
pub mod headroom;
pub mod page_tables;
