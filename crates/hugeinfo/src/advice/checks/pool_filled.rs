//! Whether the pools hold what was asked for when the machine started, as far as it is needed. The
//! kernel gives what it finds, and says nothing where that is less.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        words::huge_pages,
    },
    model::{machine::Machine, need::Need, next_boot},
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let at_boot = next_boot::pools(machine)?;
    let pools = machine.facts.pools.as_ref()?;
    let mut evidence = Vec::new();
    let mut worst: Option<(u64, String)> = None;
    for pool in pools {
        let Some(request) = at_boot
            .get(&pool.page_bytes)
            .filter(|pool| !pool.by.is_empty())
        else {
            continue;
        };
        let (asked, has) = (request.asked, pool.persistent());
        evidence.push(json!({
            "page_size_bytes": pool.page_bytes,
            "asked_pages": asked,
            "persistent_pages": has,
            "source": request.source(),
        }));
        let need = Need::of(machine, pool).ok_or("the main segment cannot be seen")?;
        let missing = asked.min(need.now()).saturating_sub(has);
        let missing_bytes = missing.saturating_mul(pool.page_bytes);
        if missing > 0
            && worst
                .as_ref()
                .is_none_or(|(bytes, _)| *bytes < missing_bytes)
        {
            let text = format!(
                "{} asked for {}; needed: {}; in the pool: {has}: memory was fragmented, a node had too little, or the pool was made smaller since",
                request.source(),
                huge_pages(asked, pool.page_bytes),
                need.now(),
            );
            worst = Some((missing_bytes, text));
        }
    }
    let finding = match worst {
        Some((_, text)) => Finding::warning(text),
        None if evidence.is_empty() => {
            Finding::ok("neither the kernel command line nor sysctl's files ask for huge pages")
        }
        None => Finding::ok("the pools hold what was asked for at boot, as far as needed"),
    };
    Ok(finding.with(json!({ "pools": evidence })))
}
