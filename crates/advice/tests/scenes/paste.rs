//! All texts about a machine are readable, and every remedy can be pasted.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Command, Stdio},
};

use advice::{
    answer::Answer,
    check::{CheckId, CheckResult, Finding, Remedy, Status},
    explain::explain,
    model::machine::Machine,
    plan::how_to_set,
    render, runbook,
};
use host::units::PageSize;

use expect_test::expect;

use crate::{scene::Scene, table::*};

/// Returns complaints about the texts of a machine. Adds its remedies to those to paste.
pub fn complaints(machine: &Machine, pasted: &mut BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let answer = Answer::of(machine);
    let checks = answer.checks();
    for check in &checks {
        complaints.extend(of_finding(check.name(), &check.finding.text));
        if !is_documented(check) {
            complaints.push(format!(
                "{}: {} is not documented as {}",
                check.name(),
                check.finding.code,
                check.finding.status.as_str()
            ));
        }
    }
    complaints.extend(of_finding("status", &answer.verdict.reason));
    let of_pools = machine
        .pools()
        .map(|pool| how_to_set(machine, PageSize(pool.page_bytes)));
    let remedies = checks.iter().map(|check| check.remedy.clone());
    let remedies = remedies.chain(of_pools).chain([answer.remedy()]);
    for remedy in remedies.collect::<Vec<_>>() {
        if let Some(text) = render::remedy(machine, &remedy) {
            complaints.extend(of_remedy(&remedy, &text));
            pasted.insert(text);
        }
    }
    for row in runbook::for_answer(machine, &answer) {
        for text in [&row.command, &row.instruction, &Some(row.why.clone())] {
            complaints.extend(text.iter().flat_map(|text| of_words("runbook", text)));
        }
        if row.command.is_none() == row.instruction.is_none() {
            complaints.push(format!("either a command or an instruction: {row:?}"));
        }
        if let Some(command) = row
            .command
            .filter(|_| row.place != Some(render::Place::Sql))
        {
            pasted.insert(command);
        }
    }
    complaints
}

/// Whether a table of codes has the finding, with its status.
fn is_documented(check: &CheckResult) -> bool {
    let Finding { status, code, .. } = &check.finding;
    if *status == Status::Unknown {
        return *code == "unknown";
    }
    let sections = match check.id {
        // It also has the codes of these checks, for the next start.
        CheckId::PendingSettings => &["pending_settings", "restart", "cgroup_fault_limit"][..],
        id => &[id.name()],
    };
    let text: String = sections.iter().filter_map(|name| explain(name)).collect();
    text.lines().any(|line| {
        let cells: Vec<_> = line.split(" | ").collect();
        line.starts_with("| `")
            && cells[0].contains(&format!("`{code}`"))
            && cells[1].split(", ").any(|other| other == status.as_str())
    })
}

/// One or more sentences, each with a capital letter and a period.
fn of_finding(name: &str, text: &str) -> Vec<String> {
    let mut complaints = of_words(name, text);
    let first = text.split(' ').next().unwrap_or_default();
    let is_name = first.contains(['_', '/']);
    if !is_name && !first.starts_with(|first: char| first.is_uppercase() || first.is_numeric()) {
        complaints.push(format!("{name} begins with a small letter: {text}"));
    }
    if !text.ends_with('.') {
        complaints.push(format!("{name} does not end with a period: {text}"));
    }
    complaints
}

/// Words that are wrong everywhere.
fn of_words(name: &str, text: &str) -> Vec<String> {
    const WRONG: [&str; 22] = [
        "..",
        "  ",
        " .",
        " ,",
        ": .",
        ";.",
        ",.",
        ".;",
        " may ",
        "neighbour",
        "colour",
        "anew",
        "beside ",
        "Beside",
        " told",
        " gives",
        "control group",
        "nobody",
        "Untold",
        "strangers",
        "main segment",
        "then restart",
    ];
    let wrong = WRONG.iter().filter(|wrong| text.contains(**wrong));
    let mut complaints: Vec<_> = wrong
        .map(|wrong| format!("{name} has {wrong:?}: {text}"))
        .collect();
    let words: Vec<_> = text.split_whitespace().collect();
    let doubled = words
        .windows(2)
        .find(|pair| pair[0] == pair[1] && pair[0] != "-");
    complaints.extend(doubled.map(|pair| format!("{name} repeats {:?}: {text}", pair[0])));
    // A finding does not repeat its number.
    if let Some(rest) = text.split("Needs ").nth(1) {
        let number = rest.split(' ').next().unwrap_or_default();
        if text.contains(&format!(" {number} are needed")) {
            complaints.push(format!("{name} repeats a number: {text}"));
        }
    }
    complaints
}

/// Commands are for the shell, with `#` comments, or SQL, with `--` comments.
fn of_remedy(remedy: &Remedy, text: &str) -> Vec<String> {
    let mut complaints = of_words("remedy", text);
    let is_sql = |line: &str| {
        ["ALTER ", "SELECT "]
            .iter()
            .any(|sql| line.starts_with(sql))
    };
    let is_comment = |line: &str| line.starts_with("# ") || line.starts_with("-- ");
    let commands: Vec<_> = text.lines().filter(|line| !is_comment(line)).collect();
    let (sql, shell): (Vec<&str>, Vec<&str>) = commands.iter().partition(|line| is_sql(line));
    if !sql.is_empty() && !shell.is_empty() {
        complaints.push(format!("SQL and shell commands: {text}"));
    }
    let mark = if sql.is_empty() { "# " } else { "-- " };
    let is_foreign = |line: &&str| is_comment(line) && !line.starts_with(mark);
    let is_service_only = commands.is_empty();
    if !is_service_only && text.lines().any(|line| is_foreign(&line)) {
        complaints.push(format!("comments of another language: {text}"));
    }
    if sql.iter().any(|line| !line.ends_with(';')) {
        complaints.push(format!("a statement without a semicolon: {text}"));
    }
    let is_empty = *remedy == Remedy::Nothing || text.is_empty();
    if text.lines().any(|line| line.trim().is_empty()) || is_empty {
        complaints.push(format!("an empty line: {remedy:?}"));
    }
    complaints
}

/// Returns the errors of bash about all shell remedies.
pub fn syntax_errors(pasted: &BTreeSet<String>) -> String {
    let is_sql = |text: &&String| {
        let mut lines = text.lines();
        lines.any(|line| {
            ["ALTER ", "SELECT ", "-- "]
                .iter()
                .any(|sql| line.starts_with(sql))
        })
    };
    let shell: Vec<_> = pasted.iter().filter(|text| !is_sql(text)).collect();
    let all: Vec<_> = shell
        .iter()
        .map(|text| format!("remedy() {{\n{text}\n:\n}}\n"))
        .collect();
    if bash(&all.concat()).is_ok() {
        return String::new();
    }
    shell
        .into_iter()
        .filter_map(|text| Some(format!("{text}\n{}\n", bash(text).err()?)))
        .collect()
}

/// Parses a script without running it.
fn bash(script: &str) -> Result<(), String> {
    let mut shell = Command::new("bash")
        .arg("-n")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash");
    let mut stdin = shell.stdin.take().expect("a pipe");
    let text = script.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = shell.wait_with_output().expect("bash ends");
    let _ = writer.join();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn bash_finds_syntax_errors() {
    assert!(bash("sysctl -w vm.nr_hugepages=72\n# restart PostgreSQL\n").is_ok());
    assert!(bash("sysctl -w vm.nr_hugepages=72; then restart PostgreSQL\n").is_err());
    assert!(bash("echo 'unfinished\n").is_err());
}

/// A machine that needs changes of a setting and of a pool.
fn two_places(m: &mut Scene, host: &str, port: u16) {
    m.fall_back(0);
    m.state.server.huge_page_size_bytes = Some(16 << 20);
    m.facts.connection.address = Some((host.into(), port));
}

#[test]
fn psql_lines_reach_this_server() {
    test(vec![
        when("several clusters share the socket directory", |m| two_places(m, "/var/run/postgresql", 5433))
            .see("status", expect![[r#"
                warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
                env -i PATH="$PATH" runuser --pty -u postgres -- psql -X -h /var/run/postgresql -p 5433 -d postgres -c "ALTER SYSTEM SET huge_page_size = 0;" </dev/null
                # stop here if psql failed
                sysctl -w vm.nr_hugepages=537
                if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                # restart PostgreSQL (ends all sessions)"#]])
            .see("runbook", expect![[r#"
                ALTER SYSTEM SET huge_page_size = 0;
                sysctl -w vm.nr_hugepages=537
                if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                # restart PostgreSQL (ends all sessions)"#]]),
        when("names contain blanks and quotes", |m| {
            two_places(m, "/srv/it's mine", 5432);
            m.facts.connection.user = Some("pg user".to_owned());
        })
        .see("status", expect![[r#"
            warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            env -i PATH="$PATH" runuser --pty -u 'pg user' -- psql -X -h '/srv/it'\''s mine' -p 5432 -d postgres -c "ALTER SYSTEM SET huge_page_size = 0;" </dev/null
            # stop here if psql failed
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("a name cannot be quoted", |m| two_places(m, "/srv/\u{1b}[2J", 5432))
            .see("status", expect![[r#"
                warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
                # in a superuser's session on this server: ALTER SYSTEM SET huge_page_size = 0;
                sysctl -w vm.nr_hugepages=537
                if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
                # restart PostgreSQL (ends all sessions)"#]]),
        when("the user is not in /etc/passwd", |m| {
            two_places(m, "/run/postgresql", 5432);
            m.facts.connection.user = None;
        })
        .see("status", expect![[r#"
            warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            # as a superuser of PostgreSQL:
            psql -X -h /run/postgresql -p 5432 -d postgres -c "ALTER SYSTEM SET huge_page_size = 0;"
            # stop here if psql failed
            # as root:
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("postmaster.pid could not be read", |m| {
            two_places(m, "", 0);
            m.facts.connection.address = None;
        })
        .see("status", expect![[r#"
            warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            # in a superuser's session on this server: ALTER SYSTEM SET huge_page_size = 0;
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or reboot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)"#]]),
        when("the server runs in a container", |m| {
            two_places(m, "/run/postgresql", 5432);
            m.container();
        })
        .see("status", expect![[r#"
            warning no_such_size: On 4 kB pages: huge_pages = try fell back. huge_page_size asks for 16 MB pages; the kernel has 2 MB, 1 GB.
            # in a superuser's session on this server: ALTER SYSTEM SET huge_page_size = 0;
            # on the node, as root:
            sysctl -w vm.nr_hugepages=537
            if ! [ "$(sysctl -n vm.nr_hugepages)" -ge 537 ]; then echo 'too few pages, do not restart: free memory and repeat, or set them at boot' >&2; false; fi
            # restart PostgreSQL (ends all sessions)
            # allocate 537 huge pages of 2 MB at boot by hand, in addition to those of programs that are not visible: /etc is not the host's (as in a container)"#]]),
    ]);
}
