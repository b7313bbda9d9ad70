//! The settings that `initdb` writes after its trial starts have crashed, as with huge pages that a
//! cgroup does not let it use.

use crate::{
    advice::{
        check::{Finding, Judgment, env},
        decision::Decision,
    },
    model::machine::Machine,
};

pub(super) fn judge(machine: &Machine) -> Judgment {
    let env = env(machine)?;
    Ok(if env.has_initdb_fallback() {
        let text = format!(
            "A configuration file has max_connections = {} and shared_buffers = 400kB, which initdb writes if all of its trial starts crash.",
            env.settings
                .get("max_connections")
                .map_or("20", |setting| &setting.value)
        );
        Finding::warning("initdb_fell_back", text)
    } else {
        Finding::ok(
            "initdb_settings",
            "The settings are not those that initdb writes after crashes.",
        )
    })
}

pub(super) fn decision() -> Decision {
    Decision::Text(
        "set max_connections and shared_buffers as intended; before the next initdb, let the cgroup use huge pages, or run initdb -c huge_pages=off (PostgreSQL 16 and newer)"
            .to_owned(),
    )
}
