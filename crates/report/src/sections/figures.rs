//! All figures as JSON, for programs. The names are those of the SQL columns.

use hugeinfo::{
    model::{demand::Demand, forecast::Forecast, memory, page_tables::Cost},
    server::{
        sources::{Availability, Source},
        wish::Wish,
    },
    units::Pages,
};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{
    memory::by_type,
    numa,
    processes::{Similar, groups},
    ram::Ram,
};
use crate::{context::Context, parts::section as part, text::ascii_json};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let json = json(context);
    let content = html! {
        details {
            summary { "Show the figures as JSON (" (json.len().div_ceil(1024)) " kB)" }
            pre class="json" { code { (json) } }
        }
    };
    part("figures", "Figures", &content)
}

fn json(context: &Context<'_>) -> String {
    let value = figures(context);
    let written = if context.is_short {
        serde_json::to_string(&value)
    } else {
        serde_json::to_string_pretty(&value)
    };
    ascii_json(&written.unwrap_or_default())
}

fn figures(context: &Context<'_>) -> Value {
    let subject = context.subject;
    let about = &subject.about;
    let findings = context.findings;
    let verdict = &findings.verdict;
    json!({
        "report": {
            "pg_hugeinfo": about.version,
            "taken_at": about.taken_at,
            "is_redacted": context.is_redacted,
        },
        "server": server(context),
        "status": {
            "status": verdict.status.as_str(),
            "code": verdict.code,
            "reason": context.shown(&verdict.reason),
            "remedy": findings.remedy.as_deref().and_then(|remedy| context.whole(remedy)),
        },
        "host": host(context),
        "memory_of_host": memory_of_host(context),
        "pools": pools(context),
        "page_tables": page_tables(context),
        "footprint": footprint(context),
        "backend_types": backend_types(context),
        "processes": processes(context),
        "numa": numa(context),
        "other_servers": other_servers(context),
        "checks": checks(context),
        "runbook": runbook(context),
        "sources_not_read": sources(context),
    })
}

fn server(context: &Context<'_>) -> Value {
    let (about, facts) = (&context.subject.about, &context.subject.machine.facts);
    let next = facts.next_start();
    let now = &facts.server;
    let mut server = json!({
        "server_version": about.server_version,
        "is_in_recovery": about.is_in_recovery,
        "huge_pages": now.huge_pages.as_str(),
        "shared_memory_type": now.shared_memory_type.as_str(),
        "huge_page_size_bytes": now.huge_page_size_bytes,
        "in_use": context.subject.machine.is_on_huge_pages(),
        "page_size_bytes": facts.page_bytes(),
        "segment_bytes": facts.segment.as_ref().ok().map(|segment| segment.bytes),
        "next_start": {
            "huge_pages": next.huge_pages.as_str(),
            "shared_memory_type": next.shared_memory_type.as_str(),
            "huge_page_size_bytes": next.huge_page_size_bytes,
            "segment_bytes": facts.needed_bytes(),
        },
    });
    let names = [
        ("host_name", &about.host_name),
        ("cluster_name", &about.cluster_name),
        ("port", &about.port),
    ];
    for (name, value) in names {
        if let Some(value) = value {
            server[name] = context.shown(value).into();
        }
    }
    server
}

fn host(context: &Context<'_>) -> Value {
    let Some(env) = &context.subject.machine.env else {
        return Value::Null;
    };
    let host = &env.host;
    let usage = host.usage.clone().unwrap_or_default();
    json!({
        "kernel_release": context.shown(&host.kernel_release),
        "machine": context.shown(&host.machine),
        "base_page_size_bytes": host.base_page_bytes,
        "default_huge_page_size_bytes": host.default_huge_page_bytes,
        "memory_total_bytes": usage.total,
        "memory_available_bytes": usage.available,
        "memory_free_bytes": usage.free,
        "page_table_bytes": usage.page_tables,
        "hugetlb_bytes": usage.hugetlb,
        "swap_total_bytes": usage.swap_total,
        "swap_free_bytes": usage.swap_free,
        "commit_limit_bytes": usage.commit_limit,
        "committed_as_bytes": usage.committed,
    })
}

fn memory_of_host(context: &Context<'_>) -> Value {
    let Some(ram) = Ram::of(context) else {
        return Value::Null;
    };
    let parts = ram.parts.iter();
    let one = |(_, name, bytes): &(_, String, u64)| json!({ "part": name, "bytes": bytes });
    parts.map(one).collect()
}

fn pools(context: &Context<'_>) -> Value {
    let pools = context.findings.pools.as_deref().unwrap_or_default();
    let number = |pages: Option<Pages>| pages.map(|pages| pages.0);
    let one = |forecast: &Forecast| {
        let pool = &forecast.pool;
        let demands = forecast.target.as_ref().map(|target| &target.after.all);
        let demands = demands.map(|all| {
            let (first, _) = context.first(all);
            let one =
                |demand: &Demand| json!({ "for": demand.who.to_string(), "pages": demand.pages.0 });
            first.iter().map(one).collect::<Vec<_>>()
        });
        json!({
            "page_size_bytes": pool.page_bytes,
            "is_used_by_server": forecast.is_used_by_server,
            "required_pages": forecast.required.0,
            "total_pages": pool.total,
            "free_pages": pool.free,
            "reserved_pages": pool.reserved,
            "surplus_pages": pool.surplus,
            "available_pages": pool.available(),
            "own_pages": number(forecast.held),
            "others_pages": number(forecast.others),
            "shortfall_pages": number(forecast.shortfall),
            "recommended_nr_hugepages": number(forecast.recommended()),
            "demands": demands,
            "fits_after_restart": forecast.fits_after_restart,
        })
    };
    pools.iter().map(one).collect()
}

fn page_tables(context: &Context<'_>) -> Value {
    let costs = context.findings.page_tables.iter();
    let one = |cost: &Cost| {
        json!({
            "page_size_bytes": cost.page_bytes,
            "is_used_by_server": cost.is_used,
            "one_backend_bytes": cost.one,
            "present_backends_bytes": cost.present,
            "max_connections_bytes": cost.max_connections,
            "now_bytes": cost.now,
        })
    };
    costs.map(one).collect()
}

fn footprint(context: &Context<'_>) -> Value {
    let seen = &context.subject.footprint;
    json!({
        "processes": seen.processes,
        "private_bytes": seen.private,
        "segment_bytes": seen.segment,
        "segment_backed_bytes": seen.segment_backed,
        "other_shared_bytes": seen.other_shared,
        "page_table_bytes": seen.page_tables,
        "swap_bytes": seen.swap,
        "total_bytes": seen.total(),
        "full_total_bytes": seen.total_when_full(),
    })
}

fn backend_types(context: &Context<'_>) -> Value {
    let groups = by_type(&context.subject.processes);
    let groups = context.first(&groups).0.iter().map(|group| {
        json!({
            "backend_type": context.shown(&group.name),
            "processes": group.processes,
            "rss_anon_bytes": group.private,
            "page_table_bytes": group.page_tables,
            "swap_bytes": group.swap,
        })
    });
    groups.collect()
}

fn processes(context: &Context<'_>) -> Value {
    let groups = groups(&context.subject.processes);
    let name = |name: &Option<String>| name.as_deref().map(|name| context.shown(name));
    let rows = context.first(&groups).0.iter().map(|group| {
        let Similar {
            largest: process,
            processes,
            ..
        } = group;
        let mut row = json!({
            "similar_processes": processes,
            "pid": process.pid,
            "backend_type": name(&process.backend_type),
            "rss_anon_bytes": process.memory.rss_anon,
            "page_table_bytes": process.memory.page_tables,
            "swap_bytes": process.memory.swap,
            "major_faults": process.major_faults,
        });
        if !context.is_redacted {
            row["usename"] = name(&process.role).into();
            row["datname"] = name(&process.database).into();
            row["application_name"] = name(&process.application).into();
        }
        row
    });
    rows.collect()
}

fn numa(context: &Context<'_>) -> Value {
    let env = context.subject.machine.env.as_ref();
    let nodes = env.and_then(|env| env.nodes.as_deref().ok());
    let (nodes, _) = context.first(nodes.unwrap_or_default());
    let rows = nodes.iter().map(|node| {
        let part = numa::Part::of(context, node);
        json!({
            "numa_node": part.number,
            "memory_total_bytes": part.total,
            "memory_free_bytes": part.free,
            "hugetlb_bytes": part.pools,
            "segment_bytes": part.segment,
        })
    });
    rows.collect()
}

fn other_servers(context: &Context<'_>) -> Value {
    let servers = memory::other_servers(&context.subject.machine);
    let (servers, _) = context.first(servers);
    let rows = servers.iter().map(|server| {
        let segment = server.segment.as_ref();
        json!({
            "pid": server.pid,
            "segment_bytes": segment.map(|segment| segment.bytes),
            "page_size_bytes": segment.and_then(|segment| segment.page_bytes),
            "huge_pages": match server.huge_pages {
                Wish::Known(setting, _) => Some(setting.as_str()),
                Wish::Unknown => None,
            },
        })
    });
    rows.collect()
}

fn checks(context: &Context<'_>) -> Value {
    let rows = context.findings.checks.iter().map(|judged| {
        let check = &judged.check;
        let mut row = json!({
            "name": check.name(),
            "status": check.finding.status.as_str(),
            "code": check.finding.code,
            "is_muted": check.is_muted,
        });
        // Evidence about many nodes or cgroups is long.
        let evidence = &check.finding.evidence;
        if !context.is_short && evidence.to_string().len() <= 60 * context.most {
            row["evidence"] = evidence.clone();
        }
        row
    });
    rows.collect()
}

fn runbook(context: &Context<'_>) -> Value {
    let (steps, _) = context.first(&context.findings.runbook);
    let rows = (1..).zip(steps).map(|(number, row): (u32, _)| {
        json!({
            "step": number,
            "where_to_run": row.place.map(|place| place.as_str()),
            "command": row.command.as_deref().and_then(|command| context.whole(command)),
            "instruction": row.instruction.as_deref().and_then(|text| context.whole(text)),
            "is_disruptive": row.is_disruptive,
        })
    });
    rows.collect()
}

fn sources(context: &Context<'_>) -> Value {
    let sources = context.subject.sources.iter();
    let unread = sources.filter(|source| source.status != Availability::Ok);
    let one = |source: &Source| json!({ "source": source.name, "status": source.status.as_str() });
    unread.map(one).collect()
}
