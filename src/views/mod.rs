//! The SQL objects.

mod hugeinfo_backends;
mod hugeinfo_fault_rates;
mod hugeinfo_mappings;
mod hugeinfo_memory;
mod hugeinfo_page_tables;
mod hugeinfo_pools;
mod hugeinfo_status;

use hugeinfo::{facts::Facts, root::Root};

use crate::{error::Error, postgres};

/// The facts about this server, read now.
fn facts() -> Result<Facts, Error> {
    Ok(Facts::read(
        &Root::system(),
        postgres::server()?,
        &postgres::subject(),
    )?)
}
