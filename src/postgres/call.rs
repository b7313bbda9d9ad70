//! State that a function keeps between calls in the same query.

use pgrx::{PgMemoryContexts, pg_sys};

use crate::error::Error;

pub(crate) type Call = pg_sys::FunctionCallInfo;

/// Returns the value that the first call in a query created, for all calls from the same place in
/// that query. It lives as long as the query. Each function keeps one type.
pub(crate) fn kept<'q, T>(
    call: Call,
    make: impl FnOnce() -> Result<T, Error>,
) -> Result<&'q T, Error> {
    // SAFETY: PostgreSQL passes a valid call with a pointer for our use, null at first. The value
    // lives as long as the memory context of this pointer, and is dropped with it.
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
