//! Pages of fixtures: content, redaction and validity.

#![allow(clippy::expect_used)]

mod fixtures;

use fixtures::{ALL, HOSTILE, SECRET};
use hugeinfo::{
    advice::{diagnosis, render, runbook},
    model::forecast::Forecast,
};
use hugeinfo_report::{LONGEST, page, subject::Subject};
use serde_json::Value;

/// The pages of all fixtures with their names, in full and redacted.
fn pages() -> Vec<(String, String)> {
    let both = ALL.iter().flat_map(|(name, subject)| {
        [false, true].map(|is_redacted| {
            let name = format!("{name}, redacted: {is_redacted}");
            (name, page(subject(), is_redacted))
        })
    });
    both.collect()
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

fn figures(html: &str) -> Value {
    let from = html
        .split_once("<pre class=\"json\"><code>")
        .expect("figures")
        .1;
    let json = from.split_once("</code>").expect("their end").0;
    serde_json::from_str(&unescaped(json)).expect("JSON")
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
        for mark in ["script", "img", "link ", "iframe", "form", " src=", " on"] {
            assert!(!tags.contains(mark), "{name}: {mark}");
        }
        assert!(
            !style.contains("url(") && !style.contains("@import"),
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
    const VOID: [&str; 2] = ["meta", "br"];
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
        if ["hostile-names", "secrets", "256-nodes"].contains(&name) || name.ends_with("long-texts")
        {
            continue;
        }
        let subject: Subject = subject();
        let machine = subject.machine.clone();
        let html = page(subject, false);
        let text = text(&html);
        let figures = figures(&html);
        assert!(
            text.contains(&diagnosis::verdict(&machine).reason),
            "{name}"
        );
        if let Some(remedy) = render::remedy(&machine, &diagnosis::remedy(&machine)) {
            assert!(text.contains(&remedy), "{name}: {remedy}");
        }
        for check in diagnosis::checks(&machine) {
            let finding = &check.finding;
            assert!(text.contains(&finding.text), "{name}: {}", finding.text);
            let figures = figures["checks"].as_array().expect("checks");
            let of_check = figures.iter().find(|row| row["name"] == check.name());
            assert_eq!(of_check.expect("the check")["code"], finding.code, "{name}");
        }
        let steps = runbook::of(&machine, None);
        let rows = figures["runbook"].as_array().expect("rows");
        assert_eq!(rows.len(), steps.len(), "{name}");
        for (step, row) in steps.iter().zip(rows) {
            for (figure, shown) in [
                ("command", &step.command),
                ("instruction", &step.instruction),
            ] {
                assert_eq!(row[figure].as_str(), shown.as_deref(), "{name}");
                let shown = shown.as_deref().unwrap_or_default();
                assert!(text.contains(shown), "{name}: {shown}");
            }
        }
        for (index, forecast) in Forecast::of_each_pool(&machine)
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let pool = &figures["pools"][index];
            assert_eq!(pool["required_pages"], forecast.required.0, "{name}");
            assert_eq!(pool["total_pages"], forecast.pool.total, "{name}");
        }
    }
}

#[test]
fn parts_of_ram_add_up_to_ram() {
    for (name, subject) in ALL {
        let figures = figures(&page(subject(), true));
        let Some(parts) = figures["memory_of_host"].as_array() else {
            assert_eq!(name, "nothing-readable");
            continue;
        };
        let bytes = parts
            .iter()
            .map(|part| part["bytes"].as_u64().expect("bytes"));
        assert_eq!(
            figures["host"]["memory_total_bytes"],
            bytes.sum::<u64>(),
            "{name}"
        );
    }
}

#[test]
fn healthy_server_has_nothing_to_do() {
    let text = text(&page(fixtures::healthy(), false));
    for words in [
        "This server runs on 2 MB huge pages.",
        "There is nothing to do.",
        "needed: 537 (1074 MB)",
        "537 are needed. A restart would get huge pages.",
        "db1.example.com",
    ] {
        assert!(text.contains(words), "{words}");
    }
    assert!(!text.contains("attention"));
}

#[test]
fn fallen_back_server_gets_a_remedy() {
    let text = text(&page(fixtures::fallen_back(), false));
    for words in [
        "This server does not run on huge pages.",
        "sysctl -w vm.nr_hugepages=8192",
        "8092 too few. A restart would not get huge pages.",
        "ends all sessions",
        "hugeinfo_status after this step: ok: On 8192 huge pages of 2 MB.",
        "checks need attention: ",
    ] {
        assert!(text.contains(words), "{words}");
    }
    // The status is repeated only after a step that changes it.
    let unchanged = text.matches("after this step: no change").count();
    let changes = text.matches("after this step: ").count() - unchanged;
    assert_eq!((unchanged, changes), (2, 2));
}

#[test]
fn similar_processes_share_a_row() {
    let mut subject = fixtures::healthy();
    let clients = subject.processes.iter_mut().skip(5);
    for (index, process) in (0..).zip(clients) {
        process.memory.rss_anon = Some((13 << 20) + index * 4096);
        process.memory.page_tables = Some(2 << 20);
    }
    let bloated = subject.processes.last_mut().expect("a client");
    bloated.memory.rss_anon = Some(1 << 30);
    let html = page(subject, false);
    let text = text(&html);
    for row in [
        "4731client backendshopordersweb1 GB2 MB",
        "473015 \u{d7} client backendshoporders2 different13 MB2 MB",
    ] {
        assert!(text.contains(row), "{row}");
    }
    let rows = figures(&html)["processes"].as_array().map(Vec::len);
    assert_eq!(rows, Some(7));
}

#[test]
fn pools_show_the_sum_of_the_demands() {
    let html = page(fixtures::two_servers(), false);
    let sum = "Needed: 609 = 537 for this server + 72 for the server on port 5433 \
               (huge_pages = try). ";
    assert!(text(&html).contains(sum));
    let pool = &figures(&html)["pools"][0];
    assert_eq!(pool["recommended_nr_hugepages"], 609);
    assert_eq!(pool["demands"][1]["pages"], 72);
    // A redacted page has no ports.
    let redacted = text(&page(fixtures::two_servers(), true));
    assert!(redacted.contains("+ 72 for the server with pid 4242 (huge_pages = try). "));
}

#[test]
fn nodes_are_shown_if_there_are_several() {
    let two = text(&page(fixtures::two_nodes(), false));
    assert!(two.contains("node 0") && two.contains("node 1"));
    assert!(!two.contains("one NUMA node"));
    assert!(text(&page(fixtures::healthy(), false)).contains("one NUMA node"));
}

#[test]
fn long_lists_are_truncated() {
    let text = text(&page(fixtures::many_nodes(), false));
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
        let html = page(subject, false);
        let is_cut = name.ends_with("long-texts");
        assert_eq!(text(&html).contains(NOTE), is_cut, "{name}");
        // No check is missing.
        for check in diagnosis::checks(&machine) {
            let id = format!("<code id=\"check-{0}\">{0}</code>", check.name());
            assert!(html.contains(&id), "{name}: {}", check.name());
        }
        // Commands are complete.
        for part in html.split("<pre><code>").skip(1) {
            let command = part.split_once("</code>").expect("its end").0;
            assert!(!command.contains("&#x2026;"), "{name}: {command:.60}");
        }
    }
    let text = text(&page(fixtures::other_long_texts(), false));
    for note in [
        "Too long for this page: see hugeinfo_status.",
        "Too long for this page: see hugeinfo_runbook.",
        "Too long for this page: see hugeinfo_checks.",
        "\u{1f418}\u{2026}",
    ] {
        assert!(text.contains(note), "{note}");
    }
}

#[test]
fn hostile_names_are_text() {
    let html = page(fixtures::hostile_names(), false);
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
fn redacted_pages_have_no_names() {
    let secrets = [
        fixtures::secrets,
        fixtures::other_secrets,
        fixtures::misread_secrets,
    ];
    let in_full = secrets
        .map(|subject| text(&page(subject(), false)))
        .concat();
    // The full pages have all secrets, except for facts that no text mentions.
    let is_hidden = |nth: &u32| !in_full.contains(&format!("{SECRET} {nth}"));
    assert_eq!((1..20).filter(is_hidden).collect::<Vec<_>>(), [4, 7, 9]);
    for subject in secrets {
        let redacted = page(subject(), true);
        assert!(text(&redacted).contains("[path]"));
        let lines: Vec<_> = redacted
            .split('<')
            .filter(|part| part.contains(SECRET))
            .collect();
        assert_eq!(lines, Vec::<&str>::new());
    }
    for (_, subject) in ALL {
        let html = page(subject(), true);
        for name in [
            "db1.example.com",
            ">5432<",
            "/srv/",
            ">orders<",
            ">shop<",
            ">web<",
            "sysctl.d",
        ] {
            assert!(!html.contains(name), "{name}");
        }
    }
}

#[test]
fn unreadable_sources_are_listed() {
    let text = text(&page(fixtures::nothing_readable(), false));
    for words in [
        "/sys/kernel/mm/hugepages is missing",
        "/proc/meminfo is missing",
        "your role cannot execute hugeinfo_plan(jsonb)",
        "2 of 2 kernel sources could not be read.",
        "there is no postmaster",
        "Processes of other users are hidden.",
    ] {
        assert!(text.contains(words), "{words}");
    }
}
