//! Fallible `push` and `collect`: running out of memory returns an error instead of aborting the
//! backend.

use std::collections::TryReserveError;

/// Fallible `push`.
pub trait TryPush<T> {
    /// Appends an item. Errors: out of memory.
    fn try_push(&mut self, item: T) -> Result<(), TryReserveError>;
}

impl<T> TryPush<T> for Vec<T> {
    fn try_push(&mut self, item: T) -> Result<(), TryReserveError> {
        self.try_reserve(1)?;
        self.push(item);
        Ok(())
    }
}

/// Fallible `collect`.
pub fn try_collect<T, E: From<TryReserveError>>(
    items: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, E> {
    let mut all = Vec::new();
    for item in items {
        all.try_push(item?)?;
    }
    Ok(all)
}
