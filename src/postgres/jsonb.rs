//! `jsonb` as an argument.

use std::ffi::{CStr, CString};

use pgrx::{callconv::ArgAbi, pg_sys, prelude::*};

/// Maximum size of the settings in bytes, more than all settings that can be planned need.
pub(crate) const LONGEST_SETTINGS: usize = 64 << 10;

/// Maximum size of a name or value in bytes, more than any setting needs.
pub(crate) const LONGEST_WORD: usize = 1000;

/// Maximum number of members, more than the settings that can be planned.
const MOST_MEMBERS: usize = 100;

/// A `jsonb` that should be an object of strings, numbers and booleans.
pub(crate) enum Jsonb {
    Object(Vec<Member>),
    /// Something else.
    Other,
    /// Longer than [`LONGEST_SETTINGS`].
    TooLong,
}

/// A name, and a value as the user wrote it; `None`: it is null, an array or an object.
pub(crate) type Member = (String, Option<CString>);

pgrx::impl_sql_translatable!(Jsonb, "jsonb");

// SAFETY: the argument is declared as `jsonb`.
unsafe impl<'fcx> ArgAbi<'fcx> for Jsonb {
    unsafe fn unbox_arg_unchecked(argument: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: as declared.
        unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self::Other)
    }
}

impl FromDatum for Jsonb {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        use pg_sys::{JsonbIteratorToken as token, jbvType as kind};
        if is_null {
            return None;
        }
        // SAFETY: as declared. The iterator lives in this call's memory context; every string is
        // copied.
        unsafe {
            if pg_sys::toast_raw_datum_size(datum) > LONGEST_SETTINGS {
                return Some(Self::TooLong);
            }
            let jsonb: *mut pg_sys::Jsonb = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
            let mut iterator = pg_sys::JsonbIteratorInit(&raw mut (*jsonb).root);
            let mut value: pg_sys::JsonbValue = std::mem::zeroed();
            let mut next = || {
                let token = pg_sys::JsonbIteratorNext(&raw mut iterator, &raw mut value, true);
                (token, value)
            };
            if next().0 != token::WJB_BEGIN_OBJECT {
                return Some(Self::Other);
            }
            let bytes = |value: &pg_sys::JsonbValue| {
                let string = value.val.string;
                let length = usize::try_from(string.len).unwrap_or_default();
                // An empty string can have a null pointer.
                match length {
                    0 => &[],
                    _ => std::slice::from_raw_parts(string.val.cast::<u8>(), length),
                }
            };
            let mut members = Vec::new();
            while let (token::WJB_KEY, name) = next() {
                // With more members than settings, one of these is invalid or repeated.
                if members.len() > MOST_MEMBERS {
                    break;
                }
                let (_, value) = next();
                let value = match value.type_ {
                    kind::jbvString => CString::new(bytes(&value)).ok(),
                    kind::jbvNumeric => {
                        let digits = pg_sys::numeric_normalize(value.val.numeric);
                        let digits = CStr::from_ptr(digits).to_bytes();
                        // No setting accepts a number with that many digits, even if it is
                        // truncated.
                        CString::new(&digits[..digits.len().min(LONGEST_WORD)]).ok()
                    }
                    kind::jbvBool if value.val.boolean => Some(c"true".into()),
                    kind::jbvBool => Some(c"false".into()),
                    _ => None,
                };
                // Longer than the name of any setting: used only in the message.
                let name = bytes(&name);
                let name = &name[..name.len().min(LONGEST_WORD)];
                members.push((String::from_utf8_lossy(name).into_owned(), value));
            }
            Some(Self::Object(members))
        }
    }
}
