//! What time it is.

use pgrx::Spi;

/// Nothing here is looked up by the caller's `search_path`.
const NOW: &str = "
    SELECT pg_catalog.to_char(
        pg_catalog.timezone('UTC', pg_catalog.clock_timestamp()), 'YYYY-MM-DD HH24:MI:SS \"UTC\"')";

/// For people, in UTC.
pub(crate) fn utc_now() -> String {
    Spi::connect(|client| client.select(NOW, Some(1), &[])?.first().get_one())
        .ok()
        .flatten()
        .unwrap_or_default()
}
