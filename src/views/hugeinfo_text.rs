//! `hugeinfo_text()`: the answer for people.

use advice::{answer::Answer, text};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use crate::{error::Error, machine, postgres::encoding::shown_lines, views::answer};

/// Returns the status, pools, page tables, the next restart and reboot, and the recommended steps,
/// as text of at most 80 columns. Commands and names are not wrapped.
///
/// Errors: as for `hugeinfo_checks`.
#[pg_extern(parallel_restricted, cost = 1000000)]
fn hugeinfo_text() -> Result<String, ErrorReport> {
    answer(|| {
        let machine = machine::whole()?;
        let text = text::text(&machine, &Answer::of(&machine));
        Ok::<_, Error>(shown_lines(text))
    })
}
