//! The HTML document.

use std::fmt::Write;

use advice::answer::Answer;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    chart::patterns,
    context::{Advice, Context},
    sections,
    subject::Subject,
};

/// Maximum length of a page, in bytes.
pub const LONGEST: usize = 100_000;

/// Maximum number of entries of a list and of characters of a text. The first pair that keeps the
/// page short enough is used; the last pair always does.
const LIMITS: [(usize, usize); 4] = [
    (16, LONGEST_TEXT),
    (4, LONGEST_TEXT),
    (1, LONGEST_TEXT),
    (1, 150),
];
const LONGEST_TEXT: usize = 1500;

const STYLE: &str = include_str!("style.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Renders the report about a subject and the answer for its machine.
pub fn page(subject: &Subject, answer: &Answer) -> String {
    let advice = Advice::of(subject, answer);
    let mut page = String::new();
    for (most, longest) in LIMITS {
        let context = Context {
            subject,
            advice: &advice,
            most,
            longest,
        };
        page = ascii(&document(&context).into_string());
        if page.len() <= LONGEST {
            break;
        }
    }
    page
}

/// Replaces non-ASCII characters by character references.
fn ascii(html: &str) -> String {
    let mut ascii = String::with_capacity(html.len());
    for character in html.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            let _ = write!(ascii, "&#x{:x};", u32::from(character));
        }
    }
    ascii
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
                (patterns())
                header {
                    h1 { "Huge page report" }
                    (identity(context))
                }
                main {
                    (sections::summary::section(context))
                    (sections::comparison::section(context))
                    (sections::page_tables::section(context))
                    (sections::memory::ram(context))
                    (sections::memory::pools(context))
                    (sections::checks::section(context))
                    (sections::processes::section(context))
                    (sections::machine::nodes(context))
                    (sections::machine::other_servers(context))
                    (sections::machine::sources(context))
                }
                footer {
                    p {
                        "pg_hugeinfo " (about.version) ". 1 kB is 1024 bytes. "
                        "Processes were read one after the other, not at the same time."
                    }
                    p {
                        "This page names paths and ports of this host, and databases and "
                        "applications. It has no roles, client addresses or query texts."
                    }
                }
            }
        }
    }
}

/// The identity of the server, and the time.
fn identity(context: &Context<'_>) -> Markup {
    let about = &context.subject.about;
    let role = if about.is_in_recovery {
        "standby"
    } else {
        "primary"
    };
    let facts = &context.subject.machine.facts;
    let kernel = (!facts.kernel.is_empty()).then(|| format!("Linux {}", facts.kernel));
    let server = format!("PostgreSQL {}, {role}", about.server_version);
    let facts = [
        ("Host", about.host_name.clone()),
        ("Cluster", about.cluster_name.clone()),
        ("Port", about.port.clone()),
        ("Server", Some(server)),
        ("Kernel", kernel),
        ("Time", Some(about.taken_at.clone())),
    ];
    html! {
        dl {
            @for (name, value) in facts {
                @if let Some(value) = value {
                    div { dt { (name) " " } dd { bdi { (context.shown(&value)) } } }
                }
            }
        }
        @if context.longest < LONGEST_TEXT {
            p class="note" {
                "Truncated: this page would be longer than " (LONGEST / 1000) " kB. "
                "It shows one entry of each list and " (context.longest)
                " characters of each text, and omits longer commands. The SQL views are complete."
            }
        }
    }
}

/// The time in UTC, for [`About::taken_at`](crate::subject::About::taken_at).
pub fn utc_now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn pages_are_ascii() {
        assert_eq!(super::ascii("a\u{fc}\u{1f418}"), "a&#xfc;&#x1f418;");
    }
}
