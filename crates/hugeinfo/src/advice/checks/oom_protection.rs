//! Whether the OOM killer would spare the postmaster, whose end is the end of all sessions.

use serde_json::json;

use crate::advice::check::{Check, Status};
use crate::server::surroundings::Surroundings;

const NAME: &str = "oom_protection";

/// Never.
const EXEMPT: i32 = -1000;

pub(super) fn check(around: &Surroundings) -> Check {
    let postmaster = match &around.oom_score_adj {
        Ok(postmaster) => *postmaster,
        Err(absent) => {
            let finding =
                format!("whether the OOM killer spares the postmaster cannot be told: {absent}");
            return Check::new(NAME, Status::Unknown, finding);
        }
    };
    let others = around
        .processes
        .iter()
        .filter(|process| !process.is_postmaster);
    let least = others.filter_map(|process| process.oom_score_adj).min();
    let is_strict = around.host.vm.overcommit_memory == Some(2);
    let check = if postmaster >= 0 && is_strict {
        let finding = format!(
            "the postmaster is not protected (oom_score_adj = {postmaster}), but with strict overcommit the OOM killer hardly ever comes"
        );
        Check::new(NAME, Status::Ok, finding)
    } else if postmaster >= 0 {
        let finding = format!(
            "the OOM killer may take the postmaster (oom_score_adj = {postmaster}), and with it all sessions"
        );
        Check::new(NAME, Status::Warning, finding).with_remedy(
            "OOMScoreAdjust=-900 in the systemd unit, with PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the server's environment; then restart PostgreSQL".to_owned(),
        )
    } else if least == Some(EXEMPT) {
        let finding = "the OOM killer spares the postmaster, and backends with it: it could end none of them, however large";
        Check::new(NAME, Status::Warning, finding).with_remedy(
            "PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the server's environment; then restart PostgreSQL".to_owned(),
        )
    } else {
        let finding = format!(
            "the OOM killer prefers others to the postmaster (oom_score_adj = {postmaster})"
        );
        Check::new(NAME, Status::Ok, finding)
    };
    check.with_evidence(json!({
        "oom_score_adj_of_postmaster": postmaster,
        "least_oom_score_adj_of_others": least,
    }))
}
