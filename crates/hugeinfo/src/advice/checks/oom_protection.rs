//! Whether the OOM killer would spare the postmaster, whose end is the end of all sessions.

use serde_json::json;

use crate::{
    advice::check::{Answer, Finding},
    model::machine::Machine,
};

/// Never.
pub(super) const EXEMPT: i32 = -1000;

pub(super) fn judge(machine: &Machine) -> Answer {
    let around = machine.around()?;
    let postmaster = *around.oom_score_adj.as_ref()?;
    let others = around
        .processes
        .iter()
        .filter(|process| !process.is_postmaster);
    let least = others.filter_map(|process| process.oom_score_adj).min();
    let is_strict = around.host.vm.overcommit_memory == Some(2);
    let finding = if postmaster >= 0 && is_strict {
        Finding::ok(format!(
            "the postmaster is not protected (oom_score_adj = {postmaster}), but with strict overcommit the OOM killer hardly ever comes"
        ))
    } else if postmaster >= 0 {
        Finding::warning(format!(
            "the OOM killer may end the postmaster (oom_score_adj = {postmaster}), and with it all sessions"
        ))
    } else if least == Some(EXEMPT) {
        Finding::warning(
            "the OOM killer spares the postmaster and its backends: it could end none of them, however large",
        )
    } else {
        Finding::ok(format!(
            "the OOM killer prefers others to the postmaster (oom_score_adj = {postmaster})"
        ))
    };
    Ok(finding.with(json!({
        "oom_score_adj_of_postmaster": postmaster,
        "least_oom_score_adj_of_others": least,
    })))
}
