//! The document.

use hugeinfo::escape;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    findings::Findings,
    redact::Redaction,
    sections,
    subject::Subject,
    text::{self, ascii},
};

/// No page is longer, in bytes.
pub const LONGEST: usize = 100_000;

/// How many entries of a list are shown, and how many characters of a text: less where the page
/// would get too long. The last fits whatever others have written.
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

/// What each section is made of.
pub(crate) struct Context<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) findings: &'a Findings,
    /// How many entries of a list are shown.
    pub(crate) most: usize,
    /// How many characters of a text are shown.
    pub(crate) longest: usize,
    /// Whether the figures are so few that they fit.
    pub(crate) is_short: bool,
    pub(crate) is_redacted: bool,
}

impl Context<'_> {
    /// As many as are shown, and how many are not.
    pub(crate) fn first<'l, T>(&self, list: &'l [T]) -> (&'l [T], usize) {
        let shown = list.len().min(self.most);
        (&list[..shown], list.len() - shown)
    }

    /// As much of a text of others as there is room for.
    pub(crate) fn shown(&self, text: &str) -> String {
        text::shown(text, self.longest)
    }

    /// A command is shown as a whole, or not at all.
    pub(crate) fn whole(&self, command: &str) -> Option<String> {
        let fits = command.chars().count() <= self.longest;
        fits.then(|| self.shown(command))
    }
}

/// The report as a page; `is_redacted`: without names, paths and addresses.
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
                    (sections::neighbours::section(context))
                    (sections::next_start::section(context))
                    (sections::unread::section(context))
                    (sections::figures::section(context))
                }
                footer {
                    p {
                        "Made by pg_hugeinfo " (about.version) ". Sizes count in 1024s: 1 kB is 1024 "
                        "bytes. Processes were read one after the other, not at one moment."
                    }
                }
            }
        }
    }
}

/// Of what, and when.
fn identity(context: &Context<'_>) -> Markup {
    let about = &context.subject.about;
    let host = context
        .subject
        .machine
        .around
        .as_ref()
        .map(|around| &around.host);
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
        ("Taken", Some(about.taken_at.clone())),
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
                "Redacted: names, paths, ports and addresses are left out. Commands with "
                code { "[path]" } " have to be completed; the full report has them."
            }
        }
        @if context.longest < text::LONGEST {
            p class="note" {
                "Cut short: this page would be longer than " (LONGEST / 1000) " kB. It shows one entry of each list "
                "and " (context.longest) " characters of each text, and leaves out longer commands. In SQL "
                "all of it is there."
            }
        }
    }
}
