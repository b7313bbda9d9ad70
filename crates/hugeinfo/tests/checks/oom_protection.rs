use crate::scene::Scene;

fn adjusted(m: &mut Scene, postmaster: i32, others: i32) {
    m.around.oom_score_adj = Ok(postmaster);
    for process in &mut m.around.processes {
        process.oom_score_adj = Some(if process.is_postmaster {
            postmaster
        } else {
            others
        });
    }
}

table! { oom_protection;
    "protected" |_| {} Ok "-900";
    "not protected" |m| { adjusted(m, 0, 0) }
        Warning "oom_score_adj = 0"
        => "OOMScoreAdjust=-900 in the systemd unit, with PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the server's environment; then restart PostgreSQL";
    "backends with it" |m| { adjusted(m, -1000, -1000) }
        Warning "could end none"
        => "PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE=0 in the server's environment; then restart PostgreSQL";
    "never" |m| { adjusted(m, -1000, 0) } Ok "-1000";
    "the OOM killer hardly ever comes" |m| { m.file("proc/sys/vm/overcommit_memory", "2\n"); adjusted(m, 0, 0) }
        Ok "strict overcommit";
}
