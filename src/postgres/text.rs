//! `text` as an argument.

use std::ffi::CStr;

use pgrx::{callconv::ArgAbi, pg_sys, prelude::*};

use super::{
    jsonb::{Jsonb, LONGEST_SETTINGS},
    memory::require,
};
use crate::{error::Error, plan::assignments};

/// Maximum number of bytes that PostgreSQL needs to parse one byte of JSON: an element of an array
/// takes two bytes, such as `1,`, and becomes a `JsonbValue` and a number in lists that double.
const PARSED: usize = 128;

/// Maximum number of bytes of a name that is looked up.
const LONGEST_NAME: usize = 63;

/// A `text`, read with PostgreSQL's functions, in the encoding of the database.
pub(crate) struct Text(pg_sys::Datum);

pgrx::impl_sql_translatable!(Text, "text");

// SAFETY: the argument is declared as `text`. Functions with such arguments are strict or accept an
// `Option`, so it is never null.
unsafe impl<'fcx> ArgAbi<'fcx> for Text {
    unsafe fn unbox_arg_unchecked(argument: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: as declared.
        unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self(pg_sys::Datum::null()))
    }
}

impl FromDatum for Text {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        (!is_null).then_some(Self(datum))
    }
}

impl Text {
    /// Length in bytes, without decompressing the text.
    fn bytes(&self) -> usize {
        // SAFETY: as declared.
        let with_header = unsafe { pg_sys::toast_raw_datum_size(self.0) };
        with_header - pg_sys::VARHDRSZ
    }

    /// Reads a name, in which `?` replaces what is not UTF-8. `None`: longer than any name.
    pub(crate) fn name(&self) -> Option<String> {
        (self.bytes() <= LONGEST_NAME).then(|| self.c_string().to_string_lossy().into_owned())
    }

    fn c_string(&self) -> &CStr {
        // SAFETY: as declared. The C string lives as long as this call of the SQL function.
        unsafe { CStr::from_ptr(pg_sys::text_to_cstring(self.0.cast_mut_ptr())) }
    }

    /// Parses settings as a JSON object, or as `name=value` pairs. PostgreSQL raises its own error
    /// if JSON is invalid. `None`: NULL.
    ///
    /// Errors: 22023 for other text.
    pub(crate) fn settings(text: Option<Self>) -> Result<Option<Jsonb>, Error> {
        text.map(|text| text.parse_settings()).transpose()
    }

    fn parse_settings(&self) -> Result<Jsonb, Error> {
        if self.bytes() > LONGEST_SETTINGS {
            return Ok(Jsonb::TooLong);
        }
        require(self.bytes().saturating_mul(PARSED))?;
        let c_string = self.c_string();
        let text = c_string.to_string_lossy();
        if text.trim_start().starts_with(['{', '[', '"']) {
            // SAFETY: pg_proc defines jsonb_in with one cstring argument. It never returns NULL.
            let parsed = unsafe {
                pgrx::direct_function_call(pg_sys::jsonb_in, &[Some(c_string.as_ptr().into())])
            };
            return Ok(parsed.unwrap_or(Jsonb::Other));
        }
        Ok(Jsonb::Object(assignments::parse(&text)?))
    }
}
