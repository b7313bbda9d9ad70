//! Suggests a name for a misspelled name.

/// The longest name that PostgreSQL keeps (`NAMEDATALEN` - 1).
const LONGEST: usize = 63;

/// Returns the nearest of these names, like PostgreSQL (utils/adt/varlena.c `getClosestMatch`): at
/// most 4 letters differ, and at most half of the typed letters.
///
/// ```
/// use host::near::nearest;
///
/// let names = ["huge_pages", "shared_buffers", "wal_buffers"];
/// assert_eq!(nearest("shared_bufers", names), Some("shared_buffers"));
/// assert_eq!(nearest("hugepage", names), Some("huge_pages"));
/// assert_eq!(nearest("buffers", names), None);
/// assert_eq!(nearest("", names), None);
/// ```
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const FARTHEST: usize = 4;
    if typed.is_empty() || typed.len() > LONGEST || !typed.is_ascii() {
        return None;
    }
    let farthest = FARTHEST.min(typed.len() / 2);
    let names = names.into_iter();
    let distances = names.map(|name| (strsim::levenshtein(typed, name), name));
    distances
        .filter(|(distance, _)| *distance <= farthest)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
