//! The HTML document.

use hugeinfo::escape;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    context::Context,
    findings::Findings,
    redact::Redaction,
    sections,
    subject::Subject,
    text::{self, ascii},
};

/// Maximum length of a page, in bytes.
pub const LONGEST: usize = 100_000;

/// Maximum number of entries of a list and of characters of a text. The first pair that keeps the
/// page short enough is used; the last pair always does.
const LIMITS: [(usize, usize); 7] = [
    (24, text::LONGEST),
    (16, text::LONGEST),
    (10, text::LONGEST),
    (6, text::LONGEST),
    (3, text::LONGEST),
    (1, text::LONGEST),
    (1, 150),
];

const STYLE: &str = include_str!("style.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Renders the report. A redacted page has no names, paths or addresses.
pub fn page(mut subject: Subject, is_redacted: bool) -> String {
    let redaction = is_redacted.then(|| Redaction::of(&mut subject));
    let mut findings = Findings::of(&subject);
    if let Some(redaction) = &redaction {
        findings.redact(redaction);
        for source in &mut subject.sources {
            source.path = redaction.text(&escape::name(&source.path)).into();
        }
    }
    let rendered = |(most, longest)| {
        let context = Context {
            subject: &subject,
            findings: &findings,
            most,
            longest,
            is_short: most == 1,
            is_redacted,
        };
        ascii(&document(&context).into_string())
    };
    let mut page = String::new();
    for limits in LIMITS {
        page = rendered(limits);
        if page.len() <= LONGEST {
            break;
        }
    }
    page
}

fn document(context: &Context<'_>) -> Markup {
    let about = &context.subject.about;
    let title = match &about.host_name {
        Some(host) => format!("Huge page report: {}", context.shown(host)),
        None => "Huge page report".to_owned(),
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Huge page report" }
                    (identity(context))
                }
                main {
                    (sections::verdict::section(context))
                    (sections::ram::section(context))
                    (sections::pools::section(context))
                    (sections::page_tables::section(context))
                    (sections::memory::section(context))
                    (sections::runbook::section(context))
                    (sections::checks::section(context))
                    (sections::processes::section(context))
                    (sections::numa::section(context))
                    (sections::other_servers::section(context))
                    (sections::next_start::section(context))
                    (sections::unread::section(context))
                    (sections::figures::section(context))
                }
                footer {
                    p {
                        "pg_hugeinfo " (about.version) ". 1 kB is 1024 bytes. "
                        "Processes were read one after the other, not at the same time."
                    }
                }
            }
        }
    }
}

/// The identity of the server, and the time.
fn identity(context: &Context<'_>) -> Markup {
    let about = &context.subject.about;
    let env = context.subject.machine.env.as_ref();
    let host = env.map(|env| &env.host);
    let role = if about.is_in_recovery {
        "standby"
    } else {
        "primary"
    };
    let facts = [
        ("Host", about.host_name.clone()),
        ("Cluster", about.cluster_name.clone()),
        ("Port", about.port.clone()),
        (
            "Server",
            Some(format!("PostgreSQL {}, {role}", about.server_version)),
        ),
        (
            "Kernel",
            host.map(|host| format!("Linux {}, {}", host.kernel_release, host.machine)),
        ),
        ("Time", Some(about.taken_at.clone())),
    ];
    html! {
        dl class="identity" {
            @for (name, value) in facts {
                @if let Some(value) = value {
                    div { dt { (name) " " } dd { bdi { (context.shown(&value)) } } }
                }
            }
        }
        @if context.is_redacted {
            p class="note" {
                "Redacted: names, paths, ports and addresses are removed. Commands with "
                code { "[path]" } " are complete in the full report."
            }
        }
        @if context.longest < text::LONGEST {
            p class="note" {
                "Truncated: this page would be longer than " (LONGEST / 1000) " kB. "
                "It shows one entry of each list and " (context.longest) " characters of each text, "
                "and omits longer commands. The SQL views are complete."
            }
        }
    }
}

/// The time in UTC, for [`About::taken_at`](crate::subject::About::taken_at).
pub fn utc_now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}
