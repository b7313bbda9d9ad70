//! Suggests names for a misspelled name.

use std::ffi::c_int;

use pgrx::pg_sys;

/// Returns the nearest of these names, like PostgreSQL (utils/adt/varlena.c `getClosestMatch`): at
/// most 4 letters differ, and at most half of the typed letters.
pub(crate) fn nearest<'a>(typed: &str, names: &[&'a str]) -> Option<&'a str> {
    const FARTHEST: usize = 4;
    const LONGEST: usize = 63;
    if typed.is_empty() || typed.len() > LONGEST || !typed.is_ascii() {
        return None;
    }
    let farthest = FARTHEST.min(typed.len() / 2);
    let near = names.iter().filter_map(|name| {
        let distance = usize::try_from(distance(typed, name, farthest)).ok()?;
        (distance <= farthest).then_some((distance, *name))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Number of letters to insert, delete or replace; above `farthest` it is not exact.
fn distance(one: &str, other: &str, farthest: usize) -> c_int {
    let length = |bytes: &[u8]| c_int::try_from(bytes.len()).unwrap_or(c_int::MAX);
    let other = other.as_bytes();
    // SAFETY: reads the given number of bytes of each name. All letters are single bytes.
    unsafe {
        pg_sys::varstr_levenshtein_less_equal(
            one.as_ptr().cast(),
            length(one.as_bytes()),
            other.as_ptr().cast(),
            length(other),
            1,
            1,
            1,
            c_int::try_from(farthest).unwrap_or(0),
            true,
        )
    }
}
