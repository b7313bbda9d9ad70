//! What a function keeps from one call to the next in the same query.

use pgrx::{PgMemoryContexts, pg_sys};

use crate::error::Error;

/// A call of a function.
pub(crate) type Call = pg_sys::FunctionCallInfo;

/// What the first call in a query makes, for all calls from the same place in that query. It lives
/// as long as the query. Each function keeps one type.
pub(crate) fn kept<'q, T>(
    call: Call,
    make: impl FnOnce() -> Result<T, Error>,
) -> Result<&'q T, Error> {
    // SAFETY: PostgreSQL hands over a valid call with a place of our own, null at first. What is
    // put there lives as long as the memory that the place itself is in, and is dropped with it.
    unsafe {
        let function = &mut *(*call).flinfo;
        if function.fn_extra.is_null() {
            let made = make()?;
            let mut memory = PgMemoryContexts::For(function.fn_mcxt);
            function.fn_extra = memory.leak_and_drop_on_delete(made).cast();
        }
        Ok(&*function.fn_extra.cast::<T>())
    }
}
