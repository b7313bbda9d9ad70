//! `hugeinfo fleet`: `hugeinfo_status` of many servers, the worst first.
//!
//! Servers are not trusted: their answers are bounded, only known members of the expected types are
//! used, and hidden characters in texts are escaped.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    net::Ipv6Addr,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::Command,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use advice::check::Status;
use clap::Args;
use host::{escape, next_start::Output, units::PageSize};
use rustix::process::Signal;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::{
    Done,
    command::{self, Running, is_interrupted},
    error::Error,
    exit_status,
    status::Format,
};

/// Programs that print more than this for one server are stopped.
const MOST_BYTES: u64 = 1 << 20;

/// Longer texts are truncated.
const MOST_CHARACTERS: usize = 1000;

/// Maximum number of lines of a remedy.
const MOST_LINES: usize = 100;

/// Longer codes are truncated in the text, so that they do not widen the lines of other servers.
const LONGEST_CODE: usize = 40;

/// The options of `fleet`.
#[derive(Args)]
pub(crate) struct Options {
    /// Servers, such as db1, db1:5433, service=db1, or 'host=db1 sslmode=require'.
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// The number of servers to query in parallel.
    #[arg(long, short, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    jobs: u16,
    /// The time limit for each server.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86400))]
    timeout: u32,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A text of a server as one printable line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String")]
struct Line(String);

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        let words: Vec<_> = text.split_whitespace().collect();
        let text = escape::name(words.join(" "));
        Self(escape::shortened(&text, MOST_CHARACTERS))
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// A text of a server as several printable lines.
#[derive(Serialize, Deserialize)]
#[serde(from = "String")]
struct Lines(String);

impl From<String> for Lines {
    fn from(text: String) -> Self {
        let lines = text.lines().take(MOST_LINES);
        let lines: Vec<_> = lines.map(|line| Line::from(line).0).collect();
        Self(lines.join("\n"))
    }
}

/// A server, and its answer.
#[derive(Serialize)]
struct Server {
    name: Line,
    /// `None`: it cannot be queried, for the reason in the answer.
    #[serde(skip)]
    conninfo: Option<String>,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Serialize)]
struct Answer {
    #[serde(serialize_with = "as_word")]
    status: Status,
    reason: Line,
    #[serde(flatten)]
    facts: Facts,
    #[serde(flatten)]
    row: Row,
}

fn as_word<S: Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.as_str())
}

/// Facts about the server.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Facts {
    schema: Option<Line>,
    database: Option<Line>,
    is_standby: Option<bool>,
    may_look: Option<bool>,
    is_muted: Option<bool>,
    version: Option<Line>,
    system_identifier: Option<Line>,
}

/// The columns of `hugeinfo_status`. Other versions of the extension can lack some.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Row {
    #[serde(skip_serializing)]
    status: Option<Line>,
    #[serde(skip_serializing)]
    reason: Option<Line>,
    code: Option<Line>,
    remedy: Option<Lines>,
    huge_pages: Option<Line>,
    shared_memory_type: Option<Line>,
    in_use: Option<bool>,
    fits_after_restart: Option<bool>,
    page_size_bytes: Option<u64>,
    segment_bytes: Option<u64>,
    segment_pages: Option<u64>,
    huge_page_size_bytes: Option<u64>,
    required_huge_pages: Option<u64>,
    pool_total_pages: Option<u64>,
    pool_available_pages: Option<u64>,
    shortfall_pages: Option<u64>,
    recommended_nr_hugepages: Option<u64>,
}

impl Answer {
    fn new(status: Status, reason: &str) -> Self {
        Self {
            status,
            reason: reason.into(),
            facts: Facts::default(),
            row: Row::default(),
        }
    }

    fn unknown(reason: &str) -> Self {
        Self::new(Status::Unknown, reason)
    }
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let mut servers: Vec<_> = (options.hosts.iter().zip(1..))
        .map(|(host, number)| server(host.trim(), number))
        .collect();
    if servers.is_empty() {
        return Err(Error::with_hint(
            "no servers",
            "Name the servers, as in: hugeinfo fleet db1 db2",
        ));
    }
    // Until here, a signal ends this process at once.
    command::end_on_signal()?;
    query_all(options, &mut servers)?;
    let clusters = clusters(&servers);
    let mut worst_first: Vec<&Server> = servers.iter().collect();
    worst_first.sort_by(|a, b| {
        let by_status = b.answer.status.cmp(&a.answer.status);
        by_status.then_with(|| a.name.cmp(&b.name))
    });
    let is_uneven = clusters.iter().any(Cluster::is_uneven);
    let worst = worst_first[0].answer.status;
    let worst = if is_uneven {
        worst.max(Status::Warning)
    } else {
        worst
    };
    Ok(Done {
        text: match options.format {
            Format::Text => to_text(worst, &worst_first, &clusters),
            Format::Json => format!("{:#}\n", to_json(worst, &worst_first, &clusters)),
        },
        exit_status: exit_status(worst),
    })
}

/// A server of a list: a host, or a connection string, which psql gets as it is. Every user of this
/// host can see the command line of psql, so a string with a secret is neither used nor shown.
fn server(text: &str, number: u32) -> Server {
    let conninfo = match may_have_secret(text) {
        true => None,
        false if text.contains('=') || text.contains("://") => Some(text.to_owned()),
        false => of_address(text),
    };
    Server {
        name: match conninfo {
            Some(_) => text.into(),
            None => format!("host {number}").into(),
        },
        answer: Answer::unknown(match conninfo {
            Some(_) => "not queried",
            None => {
                "not a host, or might contain a secret, which other users could see: put \
                 passwords into ~/.pgpass, or use a service"
            }
        }),
        conninfo,
    }
}

/// Whether a connection string might contain a secret. Keywords are literal, except in a URI, where
/// percent signs could hide them.
fn may_have_secret(conninfo: &str) -> bool {
    let text = conninfo.to_ascii_lowercase();
    let has_word = ["password", "secret", "scram_"]
        .iter()
        .any(|word| text.contains(word));
    let is_odd_uri = text.split_once("://").is_some_and(|(_, rest)| {
        // The user name can contain any character by mistake.
        let user = rest.rsplit_once('@').map(|(user, _)| user);
        rest.contains('%') || user.is_some_and(|user| user.contains(':'))
    });
    has_word || is_odd_uri
}

/// The connection string of `HOST`, `HOST:PORT` or `[HOST]:PORT`. A host can be a directory with
/// Unix sockets.
fn of_address(address: &str) -> Option<String> {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    let bare = |host: &str| host.trim_matches(['[', ']']).to_owned();
    let (host, port) = match address.rsplit_once(':') {
        Some(_) if bare(address).parse::<Ipv6Addr>().is_ok() => (bare(address), None),
        Some((host, port)) if is_port(port) => (bare(host), Some(port)),
        Some(_) => return None,
        None => (bare(address), None),
    };
    let port = port.map_or(String::new(), |port| format!(" port={port}"));
    (!host.is_empty()).then(|| format!("host={}{port}", quoted(&host)))
}

/// A value in a connection string.
fn quoted(value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('\'', r"\'");
    format!("'{value}'")
}

// Queries. If psql cannot connect, pg_isready finds out whether there is a server, because messages
// of a server are in its language.

fn query_all(options: &Options, servers: &mut [Server]) -> Result<(), Error> {
    let questions = questions(options);
    let threads = usize::from(options.jobs).min(servers.len());
    let waiting = servers
        .iter_mut()
        .filter(|server| server.conninfo.is_some());
    let waiting = Mutex::new(waiting);
    let work = || {
        while !is_interrupted() {
            let next = waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next();
            let Some(server) = next else { break };
            if let Some(conninfo) = &server.conninfo {
                server.answer = query(options, &questions, conninfo);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // With fewer threads, it only takes longer.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    match is_interrupted() {
        true => Err(Error::new("interrupted by a signal")),
        false => Ok(()),
    }
}

/// One transaction, so that a pooler uses one server for all queries. Whole rows, because an older
/// version has fewer columns.
fn questions(options: &Options) -> [String; 3] {
    let milliseconds = u64::from(options.timeout) * 1000;
    // If the extension is not installed, any user can have created an object with this name.
    let schema = "(SELECT n.nspname FROM pg_extension AS e \
        JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pg_hugeinfo')";
    [
        format!(
            "SET LOCAL search_path = pg_catalog; \
             SET LOCAL statement_timeout = {milliseconds}; \
             SET LOCAL client_min_messages = error; \
             SET LOCAL standard_conforming_strings = on"
        ),
        format!(
            r"SELECT json_build_object('schema', {schema}, 'database', current_database(),
                'is_standby', pg_is_in_recovery(),
                'version', (SELECT extversion FROM pg_extension WHERE extname = 'pg_hugeinfo'),
                'system_identifier', (SELECT system_identifier::text FROM pg_control_system()),
                'may_look', has_schema_privilege(to_regnamespace(quote_ident({schema})), 'USAGE'),
                'is_muted', coalesce(current_setting('pg_hugeinfo.muted_checks', true), '')
                  ~ '\mhuge_pages\M')
              FROM set_config('search_path', coalesce(quote_ident({schema}), 'pg_catalog'), true)"
        ),
        "SELECT to_json(s) FROM hugeinfo_status AS s".to_owned(),
    ]
}

fn query(options: &Options, questions: &[String], conninfo: &str) -> Answer {
    let limit = Duration::from_secs(options.timeout.into());
    let start = Instant::now();
    let mut psql = program("psql", options);
    psql.args(["-XAtqw1", "-v", "ON_ERROR_STOP=1", "-d", conninfo]);
    for question in questions {
        psql.args(["-c", question]);
    }
    let output = match Running::start(psql, limit).and_then(Running::finish) {
        Ok(output) => output,
        Err(_) if start.elapsed() >= limit => {
            let reason = format!("no answer within {} s", options.timeout);
            return Answer::new(Status::Critical, &reason);
        }
        Err(error) => return Answer::unknown(&error.to_string()),
    };
    if output.status.signal() == Some(Signal::XFSZ.as_raw()) {
        return Answer::unknown(&format!("psql printed more than {MOST_BYTES} bytes"));
    }
    if output.status.code() != Some(2) {
        return answer(&output);
    }
    let reason = error_in(&output);
    let mut pg_isready = program("pg_isready", options);
    pg_isready.args(["-q", "-t", "2", "-d", conninfo]);
    // psql might have used up the time.
    let limit = limit.saturating_sub(start.elapsed());
    let limit = limit.max(Duration::from_secs(3));
    match Running::start(pg_isready, limit).map(Running::finish) {
        // The server accepts connections, or libpq did not try to connect.
        Ok(Ok(found)) if matches!(found.status.code(), Some(0 | 3)) => Answer::unknown(&reason),
        Ok(_) => Answer::new(Status::Critical, &reason),
        Err(_) => Answer::unknown(&format!(
            "cannot check whether it is down without pg_isready in PATH: {reason}"
        )),
    }
}

fn program(name: &str, options: &Options) -> Command {
    let mut command = Command::new(name);
    let with_default = |name: &str, default: &str| {
        let value = env::var_os(name);
        (name.to_owned(), value.unwrap_or_else(|| default.into()))
    };
    command
        .envs([
            with_default("PGDATABASE", "postgres"),
            // The time limit of libpq, so that it tries the next of several hosts.
            with_default("PGCONNECT_TIMEOUT", &options.timeout.to_string()),
            with_default("PGAPPNAME", "hugeinfo"),
        ])
        // Messages of client programs are in English and UTF-8.
        .env("LC_ALL", "C")
        .env("PGCLIENTENCODING", "UTF8")
        .env_remove("PG_COLOR")
        .current_dir(".")
        .process_group(0);
    command::restrict(&mut command, MOST_BYTES);
    command
}

// Answers.

/// The answer in the output of psql.
fn answer(output: &Output) -> Answer {
    valid_answer(output)
        .unwrap_or_else(|error| Answer::unknown(&format!("unexpected answer: {error}")))
}

fn valid_answer(output: &Output) -> Result<Answer, serde_json::Error> {
    let text = String::from_utf8_lossy(&output.out);
    let mut objects = text.lines().filter(|line| line.starts_with('{'));
    let Some(facts) = objects.next() else {
        return Ok(Answer::unknown(&error_in(output)));
    };
    let facts: Facts = serde_json::from_str(facts)?;
    if let Some(row) = objects.next() {
        let row: Row = serde_json::from_str(row)?;
        let status = row.status.as_ref().and_then(status_of);
        let reason = match status {
            Some(_) => row.reason.as_ref().map_or("", |reason| &reason.0),
            None => "hugeinfo_status has no column status; the extension might be older",
        };
        return Ok(Answer {
            status: status.unwrap_or(Status::Unknown),
            reason: reason.into(),
            facts,
            row,
        });
    }
    let reason = match &facts.schema {
        None => {
            let database = facts.database.as_ref().map_or("?", |name| &name.0);
            format!("no extension pg_hugeinfo in database {database}")
        }
        Some(Line(schema)) if facts.may_look == Some(false) => {
            let schema = schema.replace('"', "\"\"");
            format!("missing privilege: GRANT USAGE ON SCHEMA \"{schema}\" TO pg_monitor")
        }
        Some(_) => error_in(output),
    };
    Ok(Answer {
        facts,
        ..Answer::unknown(&reason)
    })
}

fn status_of(text: &Line) -> Option<Status> {
    [
        Status::Ok,
        Status::Unknown,
        Status::Warning,
        Status::Critical,
    ]
    .into_iter()
    .find(|status| status.as_str() == text.0)
}

/// The messages of psql.
fn error_in(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.err);
    match text.trim() {
        "" => "psql printed nothing".to_owned(),
        text => text
            .strip_prefix("psql: error: ")
            .unwrap_or(text)
            .to_owned(),
    }
}

// Results of several servers.

/// Servers with the same system identifier, which are copies of one another.
struct Cluster<'a> {
    system_identifier: &'a str,
    members: Vec<&'a Server>,
}

fn clusters(servers: &[Server]) -> Vec<Cluster<'_>> {
    let mut clusters: BTreeMap<&str, Vec<&Server>> = BTreeMap::new();
    for server in servers {
        if let Some(Line(system_identifier)) = &server.answer.facts.system_identifier
            && server.answer.row.in_use.is_some()
        {
            clusters.entry(system_identifier).or_default().push(server);
        }
    }
    clusters
        .into_iter()
        .filter(|(_, members)| members.len() > 1)
        .map(|(system_identifier, members)| Cluster {
            system_identifier,
            members,
        })
        .collect()
}

impl Cluster<'_> {
    /// True if a failover would lose huge pages. Servers with `huge_pages = off`, or with the check
    /// muted, do not count.
    fn is_uneven(&self) -> bool {
        let mut counted = self.members.iter().filter(|server| {
            let Answer { facts, row, .. } = &server.answer;
            let is_off = row.huge_pages.as_ref().is_some_and(|word| word.0 == "off");
            facts.is_muted != Some(true) && !is_off
        });
        let first = counted.next().map(|server| server.answer.row.in_use);
        first.is_some_and(|first| counted.any(|server| server.answer.row.in_use != first))
    }

    fn with_huge_pages(&self, in_use: bool) -> Vec<&str> {
        self.members
            .iter()
            .filter(|server| server.answer.row.in_use == Some(in_use))
            .map(|server| server.name.0.as_str())
            .collect()
    }
}

// Output.

fn to_text(worst: Status, servers: &[&Server], clusters: &[Cluster<'_>]) -> String {
    let upper = |status: Status| status.as_str().to_ascii_uppercase();
    let lines: Vec<([String; 5], String)> = servers
        .iter()
        .map(|server| {
            let Answer { facts, row, .. } = &server.answer;
            let role = match facts.is_standby {
                Some(true) => "standby",
                Some(false) => "primary",
                None => "",
            };
            let page_size = row.page_size_bytes.map(|bytes| PageSize(bytes).to_string());
            let mut reason = server.answer.reason.0.clone();
            let own = env!("CARGO_PKG_VERSION");
            if let Some(Line(version)) = facts.version.as_ref().filter(|found| found.0 != own) {
                let _ = write!(reason, "; version {version}: this program has {own}");
            }
            let columns = [
                upper(server.answer.status),
                server.name.0.clone(),
                role.to_owned(),
                page_size.unwrap_or_default(),
                row.code.as_ref().map_or(String::new(), |Line(code)| {
                    escape::shortened(code, LONGEST_CODE)
                }),
            ];
            (columns, reason)
        })
        .collect();
    let widths = [0, 1, 2, 3, 4].map(|column| {
        let width = |(columns, _): &([String; 5], String)| columns[column].chars().count();
        lines.iter().map(width).max().unwrap_or_default()
    });
    let mut text = String::new();
    for (columns, reason) in &lines {
        for (column, width) in columns.iter().zip(widths) {
            let _ = write!(text, "{column:width$}  ");
        }
        let _ = writeln!(text, "{reason}");
    }
    let uneven: Vec<_> = clusters
        .iter()
        .filter(|cluster| cluster.is_uneven())
        .collect();
    for cluster in &uneven {
        let _ = writeln!(
            text,
            "WARNING  cluster {} is uneven: {} on huge pages, {} not. A failover loses huge pages.",
            cluster.system_identifier,
            cluster.with_huge_pages(true).join(" "),
            cluster.with_huge_pages(false).join(" ")
        );
    }
    let counts: Vec<_> = servers
        .chunk_by(|a, b| a.answer.status == b.answer.status)
        .map(|same| format!("{} {}", same.len(), same[0].answer.status.as_str()))
        .collect();
    let noun = if servers.len() == 1 {
        "server"
    } else {
        "servers"
    };
    let _ = write!(
        text,
        "{}: {} {noun}: {}",
        upper(worst),
        servers.len(),
        counts.join(", ")
    );
    if !uneven.is_empty() {
        let _ = write!(text, "; uneven clusters: {}", uneven.len());
    }
    text.push('\n');
    text
}

fn to_json(worst: Status, servers: &[&Server], clusters: &[Cluster<'_>]) -> Value {
    let of_cluster = |cluster: &Cluster<'_>| {
        let names: Vec<_> = cluster
            .members
            .iter()
            .map(|server| &server.name.0)
            .collect();
        json!({
            "system_identifier": cluster.system_identifier,
            "members": names,
            "on_huge_pages": cluster.with_huge_pages(true),
            "on_small_pages": cluster.with_huge_pages(false),
            "is_uneven": cluster.is_uneven(),
        })
    };
    json!({
        "schema": 1,
        "status": worst.as_str(),
        "servers": servers,
        "clusters": clusters.iter().map(of_cluster).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_or_without_a_port() {
        for (address, expected) in [
            ("db1", Some("host='db1'")),
            ("db1:5433", Some("host='db1' port=5433")),
            ("10.0.0.1:5433", Some("host='10.0.0.1' port=5433")),
            ("::1", Some("host='::1'")),
            ("[fe80::1%eth0]:5433", Some("host='fe80::1%eth0' port=5433")),
            ("[::1]", Some("host='::1'")),
            ("/run/a:5433", Some("host='/run/a' port=5433")),
            ("/run/a'b", Some(r"host='/run/a\'b'")),
            ("/run/a\\", Some(r"host='/run/a\\'")),
            ("user:secret", None),
            ("user:secret@db1", None),
            ("db1:", None),
            (":5433", None),
            ("[::1]5433", None),
            ("", None),
        ] {
            assert_eq!(of_address(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn strings_with_secrets_are_neither_used_nor_shown() {
        for text in [
            "host=db1 sslmode=require",
            "host='a b' sslkey=/k\\ passfile=x",
            "  host=db\tport=5433 ",
            "postgres://u@db:5433/d",
            "postgresql://u@db1,db2/d?sslmode=require&target_session_attrs=any",
            "postgres:///?host=/run",
        ] {
            assert_eq!(server(text, 1).conninfo.as_deref(), Some(text));
        }
        for text in [
            "password=x",
            "host=db PASSWORD=x",
            "host='db'password = x",
            "host=db\x0bsslpassword=x",
            "host=db scram_client_key=x",
            "host=db oauth_client_secret=x",
            "postgres://u:x@db",
            "postgres://u:@db",
            "postgres://u:x/y@db",
            "postgres://u:x?y@db",
            "postgres://u%3Ax@db",
            "POSTGRES://u:x@db",
            "dbname=postgres://u:x@db",
            "host=db dbname=postgres://u:x@db",
            "postgres://db/?pass%77ord=x",
            "postgres://db/?user=u&password=x",
            "user:x@db",
        ] {
            let server = server(text, 7);
            assert_eq!(
                (server.conninfo, server.name),
                (None, "host 7".into()),
                "{text}"
            );
        }
    }
}
