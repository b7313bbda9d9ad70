//! NUMA nodes, other servers, and kernel sources.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use host::{
    escape,
    linux::numa::node::Node,
    server::{
        configuration::RequestedPages,
        instances::Instance,
        sources::{Availability, Source},
        visibility::Visibility,
    },
};
use maud::{Markup, Render, html};

use crate::{
    chart::{Color, bar, key},
    context::Context,
    parts::{BARS, closed, count, more, name, note, size, table},
};

/// Memory of each node. Nothing if there is one.
pub(crate) fn nodes(context: &Context<'_>) -> Markup {
    let Ok(nodes) = &context.subject.machine.facts.nodes else {
        return html! {};
    };
    if nodes.len() < 2 {
        return html! {};
    }
    let (first, rest) = context.first(nodes);
    let largest = nodes.iter().filter_map(|node| node.memory.total).max();
    let rows = first
        .iter()
        .map(|node| node_row(context, node, largest.unwrap_or(0)));
    let uses = [
        (
            Color::Segment,
            "pages of the main segment that one process of this server has touched",
        ),
        (Color::Rest, "other use"),
        (Color::Free, "free"),
    ];
    let titles = ["node", BARS, "memory", "free", "huge pages", "segment"];
    let content = html! {
        (key(uses))
        (table("Memory of each NUMA node", &titles, rows.collect()))
        (more(rest, "hugeinfo_numa"))
    };
    closed(
        "numa",
        "NUMA nodes",
        &count(nodes.len(), "node", "nodes"),
        &content,
    )
}

fn node_row(context: &Context<'_>, node: &Node, largest: u64) -> Vec<Markup> {
    let machine = &context.subject.machine;
    let pools = node.pools.iter().filter_map(|pool| {
        let total = pool.counters?.total;
        Some(total.saturating_mul(pool.page_bytes))
    });
    let segment = (machine.state.segment_nodes.as_ref())
        .zip(machine.state.page_bytes())
        .map(|(pages, bytes)| {
            let pages = pages.get(&node.number).copied().unwrap_or(0);
            pages.saturating_mul(bytes)
        });
    let (total, free) = (node.memory.total, node.memory.free);
    let rest = total
        .unwrap_or(0)
        .saturating_sub(free.unwrap_or(0))
        .saturating_sub(segment.unwrap_or(0));
    let parts = [(Color::Segment, segment.unwrap_or(0)), (Color::Rest, rest)];
    let is_allowed = machine.facts.allowed_nodes.allows(node.number) != Some(false);
    vec![
        html! { "node " (node.number) @if !is_allowed { " (not allowed)" } },
        bar(
            &format!("Node {}: {}", node.number, size(total)),
            &parts,
            largest,
        ),
        size(total).render(),
        size(free).render(),
        size(Some(pools.fold(0, u64::saturating_add))).render(),
        size(segment).render(),
    ]
}

pub(crate) fn other_servers(context: &Context<'_>) -> Markup {
    let facts = &context.subject.machine.facts;
    let hidden = match facts.visibility {
        Visibility::Host => None,
        Visibility::Namespace => Some("Only processes of this container are visible."),
        Visibility::Hidden => Some("Processes of other users are hidden."),
    };
    let servers = context.subject.machine.state.other_servers.as_deref();
    let hint = match servers {
        Ok(servers) => format!("{} visible", count(servers.len(), "server", "servers")),
        Err(_) => "could not be read".to_owned(),
    };
    let (first, rest) = context.first(servers.unwrap_or_default());
    let titles = [
        "pid",
        "port",
        "owner",
        "data directory",
        "segment",
        "page size",
        "huge_pages",
    ];
    let rows: Vec<_> = first
        .iter()
        .map(|server| server_row(context, server))
        .collect();
    let content = html! {
        @if let Some(hidden) = hidden { (note(hidden)) }
        @if !rows.is_empty() { (table("Other PostgreSQL servers on this host", &titles, rows)) }
        (more(rest, "hugeinfo_instances"))
    };
    closed("other-servers", "Other servers", &hint, &content)
}

fn server_row(context: &Context<'_>, server: &Instance) -> Vec<Markup> {
    let directory = server
        .data_directory
        .as_ref()
        .or(server.directory_argument.as_ref());
    let directory = directory.map(|path| escape::name(OsStr::from_bytes(path)));
    let uid = server.owner_uid.map(|uid| format!("uid {uid}"));
    let port = server.port.map(|port| port.to_string());
    let mut cells = vec![server.pid.render()];
    cells.extend(
        [port, server.owner.clone().or(uid), directory].map(|text| name(context, text.as_deref())),
    );
    let segment = server.segment.as_ref();
    let page_bytes = segment.and_then(|segment| segment.page_bytes);
    cells.extend(
        [segment.map(|segment| segment.bytes), page_bytes].map(|bytes| size(bytes).render()),
    );
    cells.push(match &server.huge_pages {
        RequestedPages::Known(setting, _) => setting.as_str().render(),
        RequestedPages::Unknown(_) => "unknown".render(),
    });
    cells
}

/// Sources that could not be read.
pub(crate) fn sources(context: &Context<'_>) -> Markup {
    let sources = &context.subject.sources;
    let unread = |source: &&Source| source.status != Availability::Ok;
    let unread: Vec<&Source> = sources.iter().filter(unread).collect();
    let (first, rest) = context.first(&unread);
    let content = html! {
        @if !context.subject.may_plan {
            (note(
                "Settings that have not been reloaded are not in this report, because your role \
                 cannot execute hugeinfo_plan(text)."
            ))
        }
        ul class="list" {
            @for source in first {
                li {
                    (source.name) " (" (source.status.as_str()) "): "
                    code { (context.shown(&escape::name(&source.path))) }
                }
            }
        }
        (more(rest, "hugeinfo_sources"))
    };
    let hint = format!("{} of {} could not be read", unread.len(), sources.len());
    closed("sources", "Kernel sources", &hint, &content)
}
