//! Other PostgreSQL servers of the host.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use hugeinfo::{
    escape,
    server::{instances::Instance, visibility::Visibility, wish::Wish},
    units::Bytes,
};
use maud::{Markup, Render, html};

use crate::{
    context::Context,
    parts::{missing, more, not_read, section as part},
    table::{number, table, text},
};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let content = match &context.subject.machine.env {
        None => not_read(),
        Some(env) => html! {
            @match &env.other_servers {
                Ok(servers) if servers.is_empty() => p { "No other PostgreSQL server is visible." },
                Ok(servers) => (list(context, servers)),
                Err(absent) => (missing(&format!("{}.", context.shown(&absent.to_string())))),
            }
            @match env.visibility {
                Visibility::Host => {},
                Visibility::Namespace => (missing("Only processes of this container are visible.")),
                Visibility::Hidden => (missing("Processes of other users are hidden.")),
            }
        },
    };
    part("other-servers", "Other servers", &content)
}

fn list(context: &Context<'_>, servers: &[Instance]) -> Markup {
    let (first, rest) = context.first(servers);
    let mut columns = vec![number("pid").naming()];
    if !context.is_redacted {
        columns.extend([number("port"), text("owner"), text("data directory")]);
    }
    columns.extend([number("segment"), number("page size"), text("huge_pages")]);
    html! {
        (table(
            Some("stacked"),
            "Other PostgreSQL servers on this host",
            &columns,
            first.iter().map(|server| row(context, server)),
        ))
        (more(rest, "hugeinfo_instances"))
    }
}

fn row(context: &Context<'_>, server: &Instance) -> Vec<Markup> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "\u{2013}".to_owned());
    let mut cells = vec![server.pid.render()];
    if !context.is_redacted {
        let directory = server
            .data_directory
            .as_ref()
            .or(server.directory_argument.as_ref());
        let directory = directory.map(|path| context.shown(&escape::name(OsStr::from_bytes(path))));
        let owner = server.owner.as_ref().map(|name| context.shown(name));
        let owner = owner.or_else(|| server.owner_uid.map(|uid| format!("uid {uid}")));
        cells.push(or_dash(server.port.map(|port| port.to_string())).render());
        cells.extend([owner, directory].map(|text| html! { bdi { (or_dash(text)) } }));
    }
    let segment = server.segment.as_ref();
    let page_bytes = segment.and_then(|segment| segment.page_bytes);
    let sizes = [segment.map(|segment| segment.bytes), page_bytes];
    cells.extend(sizes.map(|bytes| or_dash(bytes.map(|bytes| Bytes(bytes).to_string())).render()));
    cells.push(match server.huge_pages {
        Wish::Known(setting, _) => setting.as_str().render(),
        Wish::Unknown => "unknown".render(),
    });
    cells
}
