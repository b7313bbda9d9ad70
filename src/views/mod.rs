//! The SQL objects.

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
