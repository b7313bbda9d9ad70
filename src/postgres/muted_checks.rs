//! The setting `pg_hugeinfo.muted_checks`.

use std::{
    collections::BTreeSet,
    ffi::{CStr, CString, c_char, c_void},
};

use advice::muted::{self, Muted};
use pgrx::{
    GucContext, GucFlags, GucRegistry, GucSetting, PgLogLevel, PgSqlErrorCode, pg_guard, pg_sys,
    pg_sys::panic::ErrorReport,
};

use super::encoding::shown;

static LIST: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));

/// Defines the setting, once, when the library is loaded. Values set before then are kept.
/// PostgreSQL warns about any other setting with our prefix, because it is misspelled.
///
/// Only for superusers and roles with `GRANT SET ON PARAMETER`: `ALTER DATABASE` and `ALTER ROLE`
/// affect sessions of others, so the owner of a database could silence its alerts.
pub(crate) fn define() {
    // SAFETY: the hook is guarded, and the prefix is ours.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"pg_hugeinfo.muted_checks",
            c"Sets the checks of pg_hugeinfo that do not raise alerts.",
            c"A list of names from hugeinfo_checks. That view still shows the findings of these checks; hugeinfo_status and hugeinfo_runbook omit them.",
            &LIST,
            GucContext::Suset,
            GucFlags::from_bits_retain(pg_sys::GUC_LIST_INPUT.cast_signed()),
            Some(warn_of_unknown),
            None,
            None,
        );
        pg_sys::MarkGUCPrefixReserved(c"pg_hugeinfo".as_ptr());
    }
}

pub(crate) fn muted_checks() -> BTreeSet<&'static str> {
    let list = LIST.get().unwrap_or_default();
    Muted::parse(&list.to_string_lossy()).names
}

/// Raises only a warning, because a misspelled name, or the name of a later version's check, must
/// not prevent a server or a session from starting. The warning appears when the setting is set or,
/// if the library was not loaded then, when it is loaded. At a reload, only the postmaster warns.
#[pg_guard]
unsafe extern "C-unwind" fn warn_of_unknown(
    list: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: PostgreSQL passes a C string or a null pointer; the rest are variables of this
    // process.
    let (list, is_heard) = unsafe {
        let list = (!(*list).is_null()).then(|| CStr::from_ptr(*list).to_string_lossy());
        let is_reload = pg_sys::IsUnderPostmaster && !pg_sys::IsTransactionState();
        (list, !is_reload && !pg_sys::InitializingParallelWorker)
    };
    let unknown = list.map_or_else(Vec::new, |list| Muted::parse(&list).unknown);
    if is_heard && !unknown.is_empty() {
        let known = muted::known().collect::<Vec<_>>().join(", ");
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            shown(format!(
                "pg_hugeinfo.muted_checks contains unknown names: \"{}\"",
                unknown.join("\", \"")
            )),
            "pg_hugeinfo",
        )
        .set_hint(format!("Valid names are: {known}."))
        .report(PgLogLevel::WARNING);
    }
    true
}
