//! Lists that grow with what is read: where there is no memory for more, that is an error and no
//! abort.

use std::collections::TryReserveError;

/// As `push`, for lists that can grow large.
pub trait TryPush<T> {
    /// Adds one. Errors: not enough memory.
    fn try_push(&mut self, item: T) -> Result<(), TryReserveError>;
}

impl<T> TryPush<T> for Vec<T> {
    fn try_push(&mut self, item: T) -> Result<(), TryReserveError> {
        self.try_reserve(1)?;
        self.push(item);
        Ok(())
    }
}

/// As `collect`, for lists that can grow large.
pub fn try_collect<T, E: From<TryReserveError>>(
    items: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, E> {
    let mut all = Vec::new();
    for item in items {
        all.try_push(item?)?;
    }
    Ok(all)
}
