//! Pages of fixtures: content and validity.

#![allow(clippy::expect_used)]

mod fixtures;

use advice::{answer::Answer, model::forecast::Forecast, runbook};
use fixtures::{ALL, HOSTILE, page};
use host::units::{PageSize, Pages, huge_pages};
use hugeinfo_report::{
    LONGEST,
    subject::{Figures, Subject},
};

/// The pages of all fixtures with their names.
fn pages() -> impl Iterator<Item = (&'static str, String)> {
    ALL.iter().map(|(name, subject)| (*name, page(&subject())))
}

/// The text without tags.
fn text(html: &str) -> String {
    let mut text = String::new();
    let body = html.split_once("</head>").expect("a head").1;
    for part in body.split('<').skip(1) {
        text.push_str(part.split_once('>').expect("a tag").1);
    }
    unescaped(&text)
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let (name, after) = after.split_once(';').expect("the end of a reference");
        plain.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            number => {
                let digits = number.strip_prefix("#x").expect("a number");
                let code = u32::from_str_radix(digits, 16).expect("hexadecimal");
                char::from_u32(code).expect("a character")
            }
        });
        rest = after;
    }
    plain + rest
}

/// The part of a page with this ID.
fn part<'h>(html: &'h str, id: &str) -> &'h str {
    let begin = format!(" id=\"{id}\"");
    let from = html.split_once(&begin).expect("the part").1;
    let end = ["</section>", "</details>"]
        .iter()
        .filter_map(|end| from.find(end));
    &from[..end.min().expect("its end")]
}

#[test]
fn pages_are_self_contained() {
    for (name, html) in pages() {
        assert!(html.is_ascii(), "{name}");
        assert!(html.len() <= LONGEST, "{name}: {} bytes", html.len());
        assert!(
            html.starts_with("<!DOCTYPE html><html lang=\"en\">"),
            "{name}"
        );
        let tags = html.split('<').skip(1);
        let tags = tags.filter_map(|part| Some(part.split_once('>')?.0));
        // The values of attributes are arbitrary text.
        let tags = tags.flat_map(|tag| tag.split('"').step_by(2));
        let tags = tags.collect::<Vec<_>>().join(" ");
        let style = html.split_once("<style>").expect("a style").1;
        let style = style.split_once("</style>").expect("its end").0;
        for mark in ["script", "img", "link ", "iframe", " form", " src=", " on"] {
            assert!(!tags.contains(mark), "{name}: {mark}");
        }
        assert!(
            !style.replace("url(#", "").contains("url(") && !style.contains("@import"),
            "{name}"
        );
        for part in html.split(" href=\"").skip(1) {
            assert!(part.starts_with('#'), "{name}: {part:.40}");
        }
        assert!(
            !html.bytes().any(|byte| byte < b' ' && byte != b'\n'),
            "{name}"
        );
    }
}

#[test]
fn tags_are_closed() {
    const VOID: [&str; 1] = ["meta"];
    for (name, html) in pages() {
        let mut open = Vec::new();
        for part in html.split('<').skip(2) {
            let tag = part.split_once('>').expect("a tag").0;
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed), "{name}");
                continue;
            }
            let tag = tag.split(' ').next().unwrap_or_default();
            if !VOID.contains(&tag) {
                open.push(tag);
            }
        }
        assert_eq!(open, Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn ids_are_unique_and_links_have_targets() {
    for (name, html) in pages() {
        let values = |attribute: &str| {
            let begin = format!(" {attribute}=\"");
            let parts = html.split(&begin).skip(1);
            let values = parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned()));
            values.collect::<Vec<_>>()
        };
        let ids = values("id");
        for id in &ids {
            assert_eq!(
                ids.iter().filter(|other| *other == id).count(),
                1,
                "{name}: {id}"
            );
        }
        for link in values("href").iter().chain(&values("aria-labelledby")) {
            let target = link.trim_start_matches('#').to_owned();
            assert!(ids.contains(&target), "{name}: {link}");
        }
    }
}

#[test]
fn page_has_the_findings_of_the_core() {
    for (name, subject) in ALL {
        if ["hostile-names", "256-nodes"].contains(&name) || name.ends_with("long-texts") {
            continue;
        }
        let subject: Subject = subject();
        let machine = subject.machine.clone();
        let html = page(&subject);
        let text = text(&html);
        let answer = Answer::of(&machine);
        assert!(text.contains(&answer.verdict.reason), "{name}");
        for check in answer.checks() {
            let finding = format!("{}: {}", check.name(), check.finding.text);
            assert!(text.contains(&finding), "{name}: {finding}");
        }
        for step in runbook::for_answer(&machine, &answer) {
            if let Some(command) = &step.command {
                let html = html.replace("&gt;", ">").replace("&quot;", "\"");
                let html = html.replace("&amp;", "&");
                let command = format!("<pre><code>{command}</code></pre>");
                assert!(html.contains(&command), "{name}: {command}");
            }
            let instruction = step.instruction.unwrap_or_default();
            let instruction = instruction.trim_end_matches(" (ends all sessions)");
            assert!(text.contains(instruction), "{name}: {instruction}");
        }
        for forecast in Forecast::for_each_pool(&machine).unwrap_or_default() {
            let pool = huge_pages(
                Pages(forecast.pool.total),
                PageSize(forecast.pool.page_bytes),
            );
            let is_empty = forecast.pool.total == 0;
            assert!(is_empty || text.contains(&pool), "{name}: {pool}");
        }
    }
}

#[test]
fn parts_of_bars_add_up() {
    for (name, subject) in ALL {
        let html = page(&subject());
        if name == "nothing-readable" {
            continue;
        }
        for id in ["ram", "pools"] {
            let bar = part(&html, id).split("</svg>").next().expect("a bar");
            let widths = bar.split(" width=\"").skip(3);
            let widths = widths.map(|width| width.split_once('%').expect("a share").0);
            let sum: f64 = widths
                .map(|width| width.parse::<f64>().expect("a number"))
                .sum();
            // Small parts are enlarged.
            assert!((99.9..102.0).contains(&sum), "{name}: {id}: {sum}");
        }
    }
}

#[test]
fn healthy_server_has_nothing_to_do() {
    let html = page(&fixtures::healthy());
    let text = text(&html);
    for words in [
        "420\u{a0}kB instead of 210\u{a0}MB of page tables for shared memory, once 100 connections use \
         all of it, thanks to huge pages.",
        "On 537 huge pages of 2 MB. A restart would get them again.",
        "No action is needed.",
        "in use by this server: 537 (1074 MB)",
        "537 are needed. A restart would get huge pages.",
        "2 MB pages, in use: up to 420 kB",
        "21 processes have 7292 kB of page tables, for shared and private memory.",
        "db1.example.com",
    ] {
        assert!(text.contains(words), "{words}");
    }
    assert!(!text.contains("problem"));
    assert!(!html.contains("class=\"wasted\"") && !html.contains("class=\"missing\""));
}

#[test]
fn fallen_back_server_gets_steps() {
    let html = page(&fixtures::fallen_back());
    let text = text(&html);
    for words in [
        "232\u{a0}MB \u{2192} about\u{a0}21\u{a0}MB of page tables, after one restart.",
        "21 processes have 232 MB of page tables, for shared and private memory. On 2 MB pages, they \
         would have about 21 MB.",
        "4 kB pages, in use: up to 3200 MB",
        "1 GB2 GB3 GB",
        "sysctl -w vm.nr_hugepages=8192",
        "missing: 8092 (16 GB)",
        "8192 are needed. A restart would not get huge pages.",
        "ends all sessionsrestart PostgreSQLWhy: ",
        "Then hugeinfo_status: ok: On 8192 huge pages of 2 MB.",
        "huge_pages (same cause: ",
        "its private memory: ",
        "its page tables that huge pages would save: 211 MB",
    ] {
        assert!(text.contains(words), "{words}");
    }
    // The status is repeated only after a step that changes it.
    assert_eq!(text.matches("Then hugeinfo_status").count(), 2);
    // Commands without prose.
    for part in html.split("<pre><code>").skip(1) {
        let command = part.split_once("</code>").expect("its end").0;
        assert!(!command.contains("# "), "{command}");
    }
}

#[test]
fn new_server_gets_the_forecast_as_headline() {
    let mut subject = fixtures::fallen_back();
    for process in &mut subject.machine.state.processes {
        process.page_tables = Some(1 << 20);
    }
    let words = "3200\u{a0}MB \u{2192} 6400\u{a0}kB of page tables for shared memory, once 100 \
                 connections use all of it, after one restart.";
    assert!(text(&page(&subject)).contains(words));
}

#[test]
fn server_that_will_break_has_no_headline_about_page_tables() {
    for mut subject in [fixtures::bomb(), fixtures::short_of_memory()] {
        subject.before = fixtures::compared().before;
        let html = page(&subject);
        assert!(html.contains("class=\"verdict critical\""));
        assert!(!html.contains("class=\"headline\""));
    }
}

#[test]
fn idle_pages_are_wasted_unless_something_could_need_them() {
    let kept = text(&page(&fixtures::oversized_pool()));
    assert!(kept.contains("free, and could be needed: 7655 (15 GB)"));
    assert!(!kept.contains("wasted"));
    let wasted = text(&page(&fixtures::wasted()));
    assert!(wasted.contains("15\u{a0}GB of RAM is wasted on huge pages that nothing uses."));
    assert!(wasted.contains("wasted: 7655 (15 GB)"));
}

#[test]
fn saved_row_is_compared() {
    let text = text(&page(&fixtures::compared()));
    for words in [
        "50\u{a0}MB \u{2192} 7292\u{a0}kB of page tables, before and now.",
        "Before: 1385 MB",
        " page tables50 MB7292 kB\u{2212}43 MB",
    ] {
        assert!(text.contains(words), "{words}");
    }
    assert_eq!(Figures::of_row(|_| None), None);
}

#[test]
fn comparison_adds_up_what_is_known_at_both_times() {
    let mut subject = fixtures::compared();
    subject.footprint.other_shared = None;
    let text = text(&page(&subject));
    for words in [
        "in total, without other shared memory1384 MB1165 MB",
        "Before: 1384 MB",
        "Now: 1165 MB",
    ] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn processes_of_one_kind_share_a_row() {
    let mut subject = fixtures::healthy();
    for process in subject.processes.iter_mut().skip(5) {
        process.memory.rss_anon = Some(13 << 20);
        process.memory.page_tables = Some(2 << 20);
    }
    let bloated = subject.processes.last_mut().expect("a client");
    bloated.memory.rss_anon = Some(1 << 30);
    let row = "16 \u{d7} client backend, orders13 MB2 MB0 bytes1026 MB (pid 4731, web)";
    assert!(text(&page(&subject)).contains(row));
}

#[test]
fn pools_show_the_sum_of_the_demands() {
    let sum = "missing: 72 (144 MB)Needed: 609 = 537 for this server + 72 for the server on port 5433 \
               (huge_pages = try). ";
    assert!(text(&page(&fixtures::two_servers())).contains(sum));
    let mut subject = fixtures::two_servers();
    for server in subject.machine.state.other_servers.iter_mut().flatten() {
        server.port = None;
        (server.data_directory, server.directory_argument) = (None, None);
    }
    let no_port = "+ 72 for the server with pid 4242 (huge_pages = try). ";
    assert!(text(&page(&subject)).contains(no_port));
}

#[test]
fn nodes_are_shown_if_there_are_several() {
    let two = text(&page(&fixtures::two_nodes()));
    assert!(two.contains("node 0") && two.contains("node 1"));
    assert!(!text(&page(&fixtures::healthy())).contains("node 0"));
}

#[test]
fn long_lists_are_truncated() {
    let text = text(&page(&fixtures::many_nodes()));
    let ends: Vec<_> = text.match_indices("\u{2026} and ").collect();
    assert!(ends.len() >= 4, "{} lists", ends.len());
    assert!(text.contains("1001 processes"));
}

#[test]
fn truncated_pages_have_a_note() {
    const NOTE: &str = "Truncated: this page would be longer than 100 kB.";
    for (name, subject) in ALL {
        let subject: Subject = subject();
        let machine = subject.machine.clone();
        let html = page(&subject);
        let is_cut = name.ends_with("long-texts");
        assert_eq!(text(&html).contains(NOTE), is_cut, "{name}");
        // No check is missing.
        for check in Answer::of(&machine).checks() {
            let id = format!("<li id=\"check-{}\">", check.name());
            assert!(html.contains(&id), "{name}: {}", check.name());
        }
        // Commands are complete.
        for part in html.split("<pre><code>").skip(1) {
            let command = part.split_once("</code>").expect("its end").0;
            assert!(!command.contains("&#x2026;"), "{name}: {command:.60}");
        }
    }
    let text = text(&page(&fixtures::other_long_texts()));
    for note in [
        "Too long for this page: see hugeinfo_runbook.",
        "\u{1f418}\u{2026}",
    ] {
        assert!(text.contains(note), "{note}");
    }
}

#[test]
fn hostile_names_are_text() {
    let html = page(&fixtures::hostile_names());
    assert!(!html.contains("<h1>owned") && !html.contains("<b> '"));
    let text = text(&html);
    for name in HOSTILE.iter().take(4) {
        assert!(text.contains(name), "{name}");
    }
    for shown in [
        r"\342\200\256gnp.exe\342\201\246\342\200\217",
        r"\000\007\033[31m\302\233",
        "e\u{301}\u{302}\\314\\203\\314\\204",
    ] {
        assert!(text.contains(shown), "{shown}");
    }
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn page_ends_with_what_it_names() {
    let html = page(&fixtures::healthy());
    let footer = html.split_once("<footer>").expect("a footer").1;
    let footer = text(&format!("</head>{footer}"));
    assert!(footer.contains("This page names paths and ports of this host"));
    assert!(footer.contains("It has no roles, client addresses or query texts."));
}

#[test]
fn unreadable_sources_are_listed() {
    let text = text(&page(&fixtures::nothing_readable()));
    for words in [
        "/sys/kernel/mm/hugepages is missing",
        "/proc/meminfo is missing",
        "your role cannot execute hugeinfo_plan(text)",
        "2 of 2 could not be read",
        "there is no postmaster",
        "The page tables of the processes could not be read.",
        "Processes of other users are hidden.",
    ] {
        assert!(text.contains(words), "{words}");
    }
}
