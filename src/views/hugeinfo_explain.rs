//! `hugeinfo_explain(code)`: the documentation of a check or a code.

use advice::explain::{explain, words};
use host::near::nearest;
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::Error,
    postgres::{encoding::shown_lines, text::Text},
    views::answer,
};

/// Errors: 22023 for another text, with the nearest name.
#[pg_extern(stable, parallel_safe)]
fn hugeinfo_explain(code: Text) -> Result<String, ErrorReport> {
    answer(|| {
        let name = code.name().unwrap_or_else(|| "...".to_owned());
        explain(&name).map(shown_lines).ok_or_else(|| {
            let hint = match nearest(&name, words()) {
                Some(near) => format!("Did you mean \"{near}\"?"),
                None => "See the columns name and code of hugeinfo_checks.".to_owned(),
            };
            Error::invalid(format!("unknown check or code \"{name}\"")).hint(hint)
        })
    })
}
