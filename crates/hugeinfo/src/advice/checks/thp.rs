//! What the checks of transparent huge pages have in common.

use crate::advice::check::{Check, Status};
use crate::{
    linux::{error::Absence, transparent_hugepage::Modes},
    server::surroundings::Surroundings,
};

/// The modes, or the check's answer where there are none to see.
pub(super) fn modes<'s>(around: &'s Surroundings, name: &'static str) -> Result<&'s Modes, Check> {
    around.host.thp.as_ref().map_err(|absent| match absent.why {
        Absence::Missing => Check::new(
            name,
            Status::Ok,
            "this kernel has no transparent huge pages",
        ),
        Absence::Denied => Check::new(
            name,
            Status::Unknown,
            format!("the mode of transparent huge pages cannot be told: {absent}"),
        ),
    })
}
