//! Whether a process can lower its OOM score.

use crate::linux::{
    error::{ReadError, fact},
    process::{Process, status, uid_map},
};

/// Whether the process, or one started like it, can lower its `oom_score_adj`. `None`: unknown.
///
/// Errors: only out of memory.
pub fn can_lower_oom_score(
    process: &Process,
    buffer: &mut Vec<u8>,
) -> Result<Option<bool>, ReadError> {
    let can_gain = fact(status::read_can_gain_resource(process, buffer))?.ok();
    let is_initial = fact(uid_map::is_initial(process, buffer))?.ok();
    Ok(match can_gain.flatten() {
        Some(true) => is_initial,
        // Without the capability, the namespace makes no difference.
        other => other,
    })
}
