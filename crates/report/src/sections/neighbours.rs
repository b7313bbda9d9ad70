//! Other PostgreSQL servers of the host.

use hugeinfo::{
    advice::words::human,
    linux::process::maps::name_text,
    server::{instances::Instance, sight::Sight},
};
use maud::{Markup, html};

use super::{missing, more, section as part};
use crate::{page::Context, text::shown};

pub(crate) fn section(context: &Context<'_>) -> Markup {
    let content = match &context.subject.machine.around {
        None => missing("Nobody has looked."),
        Some(around) => html! {
            @match &around.neighbours {
                Ok(servers) if servers.is_empty() => p { "No other PostgreSQL server is seen." },
                Ok(servers) => (table(context, servers)),
                Err(absent) => (missing(&format!("{}.", shown(&absent.to_string())))),
            }
            @match around.sight {
                Sight::Host => {},
                Sight::Namespace => (missing("Only the processes of this container are seen.")),
                Sight::Hidden => (missing("Processes of other users are hidden here.")),
            }
        },
    };
    part("neighbours", "Neighbours", &content)
}

fn table(context: &Context<'_>, servers: &[Instance]) -> Markup {
    let (first, rest) = context.first(servers);
    html! {
        table class="stacked" {
            caption { "Other PostgreSQL servers on this host" }
            thead { tr {
                th scope="col" class="n" { "pid" }
                @if !context.is_redacted {
                    th scope="col" class="n" { "port" }
                    th scope="col" { "owner" }
                    th scope="col" { "data directory" }
                }
                th scope="col" class="n" { "main segment" }
                th scope="col" class="n" { "on pages of" }
            } }
            tbody { @for server in first { (row(context, server)) } }
        }
        (more(rest, "hugeinfo_instances"))
    }
}

fn row(context: &Context<'_>, server: &Instance) -> Markup {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "\u{2013}".to_owned());
    let directory = server
        .data_directory
        .as_ref()
        .or(server.directory_argument.as_ref());
    let directory = directory.map(|path| shown(&name_text(path, false)));
    let owner = server.owner.as_ref().map(|name| shown(name));
    let owner = owner.or_else(|| server.owner_uid.map(|uid| format!("uid {uid}")));
    let segment = server.segment.as_ref();
    let page_bytes = segment.and_then(|segment| segment.page_bytes);
    html! {
        tr {
            th scope="row" class="n" { (server.pid) }
            @if !context.is_redacted {
                td class="n" data-label="port" { (or_dash(server.port.map(|port| port.to_string()))) }
                td data-label="owner" { bdi { (or_dash(owner)) } }
                td data-label="data directory" { bdi { (or_dash(directory)) } }
            }
            td class="n" data-label="main segment" { (or_dash(segment.map(|segment| human(segment.bytes)))) }
            td class="n" data-label="on pages of" { (or_dash(page_bytes.map(human))) }
        }
    }
}
