//! `hugeinfo_sources`: a row for each kernel source, and whether it can be read here.

use host::{
    linux::root::Root,
    server::sources::{self, Source},
};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    postgres::{encoding::shown, server::subject},
};

functions! {
    cost = 10000;
    /// The kernel sources of the figures, and whether they can be read here.
    view hugeinfo_sources;
    columns (
        /// Stable short name of the file, system call or directory.
        name!(source, &'static str),
        /// Path of the source; files of a process are those of the postmaster.
        name!(path, String),
        /// ok, denied (no permission), missing (this kernel, container or sandbox does not have
        /// it), or failed (an error, or an unknown format).
        name!(status, &'static str),
        /// Why it cannot be read, such as a mount option; NULL if it can.
        name!(reason, Option<String>),
    );
    fn hugeinfo_sources() {
        rows()
    }
}

/// Tries to read each source of the postmaster and this backend, then each source of the host. A
/// source that cannot be read is a result, not an error.
fn rows() -> Result<Vec<Row>, Error> {
    let sources = sources::probe(&Root::system(), &subject())?;
    let row = |source: Source| {
        let reason = source.reason.map(shown);
        (
            source.name,
            shown(source.path),
            source.status.as_str(),
            reason,
        )
    };
    Ok(sources.into_iter().map(row).collect())
}
