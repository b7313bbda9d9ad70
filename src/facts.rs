//! The facts about this server.

use hugeinfo::{linux::root::Root, server::facts::Facts};

use crate::{error::Error, postgres::server};

/// Read now.
pub(crate) fn read() -> Result<Facts, Error> {
    Ok(Facts::read(
        &Root::system(),
        server::server()?,
        &server::subject(),
    )?)
}
