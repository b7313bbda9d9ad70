//! `hugeinfo fleet`: `hugeinfo_status` of many servers, the worst first.
//!
//! Servers are not trusted: their answers are bounded, only known members of the expected types are
//! used, and hidden characters in texts are escaped.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs::File,
    io::{self, PipeReader},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use advice::check::Status;
use clap::{Args, ValueEnum};
use host::{escape, units::PageSize};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, retry_on_intr},
    process::{Pid, Signal, kill_process_group},
};
use serde_json::{Deserializer, Map, Value, json};

use crate::{Done, command::is_interrupted, conninfo, error::Error, exit_status};

/// Programs that print more than this for one server are stopped.
const MOST_BYTES: usize = 1 << 20;

/// Longer texts are truncated.
const MOST_CHARACTERS: usize = 1000;

/// After a signal, the program ends within this time.
const TICK: Duration = Duration::from_millis(100);

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each server.
    Text,
    /// All members, with the names of the columns of `hugeinfo_status`.
    Json,
}

/// The options of `fleet`.
#[derive(Args)]
pub(crate) struct Options {
    /// Servers, such as db1, db1:5433, or 'host=db1 sslmode=require'.
    #[arg(value_name = "HOST", conflicts_with_all = ["list", "patroni", "services"])]
    hosts: Vec<String>,
    /// A file with a HOST on each line. "-": standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["patroni", "services"])]
    list: Option<PathBuf>,
    /// A file with the output of: patronictl list -f json. "-": standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "services")]
    patroni: Option<PathBuf>,
    /// Services in the service file of libpq, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    services: Vec<String>,
    /// The number of servers to query in parallel.
    #[arg(long, short, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    jobs: u16,
    /// The time limit for each server.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86400))]
    timeout: u32,
    /// The schema of the extension, if it differs from the one in pg_extension.
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A server, and its answer.
struct Server {
    name: String,
    /// `None`: it cannot be queried, for the reason in the answer.
    conninfo: Option<String>,
    /// The name of its cluster in Patroni.
    cluster: Option<String>,
    answer: Answer,
}

struct Answer {
    status: Status,
    reason: String,
    /// Validated columns of `hugeinfo_status`, and facts about the server.
    members: Map<String, Value>,
}

impl Answer {
    fn new(status: Status, reason: &str) -> Self {
        Self {
            status,
            reason: one_line(reason),
            members: Map::new(),
        }
    }

    fn unknown(reason: &str) -> Self {
        Self::new(Status::Unknown, reason)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name)?.as_str()
    }

    fn is(&self, name: &str) -> Option<bool> {
        self.members.get(name)?.as_bool()
    }
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let mut servers = servers(options)?;
    if servers.is_empty() {
        return Err(Error::with_hint(
            "no servers",
            "Name the servers, as in: hugeinfo fleet db1 db2",
        ));
    }
    query_all(options, &mut servers)?;
    note_older_versions(&mut servers);
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

// Lists of servers.

fn servers(options: &Options) -> Result<Vec<Server>, Error> {
    if let Some(file) = &options.patroni {
        let members = of_patroni(&text_of(file)?);
        return members.ok_or_else(|| Error::new("not the output of patronictl list -f json"));
    }
    if let Some(file) = &options.list {
        let text = text_of(file)?;
        let lines = text.lines().map(str::trim).zip(1..);
        return Ok(lines
            .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, number)| of_line(line, || format!("line {number}")))
            .collect());
    }
    if !options.hosts.is_empty() {
        let hosts = options.hosts.iter().zip(1..);
        return Ok(hosts
            .map(|(host, number)| of_line(host.trim(), || format!("host {number}")))
            .collect());
    }
    let of_service = |name: &String| Server::new(name, conninfo::of_service(name));
    Ok(options.services.iter().map(of_service).collect())
}

impl Server {
    fn new(name: &str, conninfo: String) -> Self {
        Self {
            name: one_line(name),
            conninfo: Some(conninfo),
            cluster: None,
            answer: Answer::unknown("not queried"),
        }
    }
}

fn text_of(file: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let mut read = |source: BorrowedFd<'_>| {
        while read_some(source, TICK, &mut bytes)? != Some(0) {
            if is_interrupted() {
                return Err(io::Error::other("interrupted by a signal"));
            }
        }
        Ok(())
    };
    let done = match file.to_str() {
        Some("-") => read(io::stdin().as_fd()),
        _ => File::open(file).and_then(|file| read(file.as_fd())),
    };
    done.map_err(|error| Error::file("read", file, error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads some bytes, and returns how many, 0 at the end. `None`: there were none within the limit.
fn read_some(source: impl AsFd, limit: Duration, bytes: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&source, PollFlags::IN)], Some(&limit)) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut some = [0; 65536];
    let length = retry_on_intr(|| rustix::io::read(&source, &mut some))?;
    bytes.extend_from_slice(&some[..length]);
    Ok(Some(length))
}

/// A server of a list. A line that might contain a secret is neither used nor shown.
fn of_line(line: &str, place: impl Fn() -> String) -> Server {
    let public = || Some(line.to_owned()).filter(|line| conninfo::is_public(line));
    match conninfo::of_address(line).or_else(public) {
        Some(conninfo) => Server::new(line, conninfo),
        None => Server {
            name: place(),
            conninfo: None,
            cluster: None,
            answer: Answer::unknown(
                "not a host, or might contain a secret, which other users could see: put \
                 passwords into ~/.pgpass, and strings with quotes into a service",
            ),
        },
    }
}

/// The members in the output of `patronictl list -f json`, which can have several lists. `None`:
/// any other text.
fn of_patroni(text: &str) -> Option<Vec<Server>> {
    let lists = Deserializer::from_str(text).into_iter::<Vec<Map<String, Value>>>();
    let lists: Vec<_> = lists.collect::<Result<_, _>>().ok()?;
    if lists.is_empty() {
        return None;
    }
    let server = |member: Map<String, Value>| {
        let text = |name: &str| match member.get(name) {
            None | Some(Value::Null) => Some(None),
            Some(Value::String(text)) => Some(Some(text.clone())),
            Some(Value::Number(number)) => Some(Some(number.to_string())),
            Some(_) => None,
        };
        let (host, state) = (text("Host")?.unwrap_or_default(), text("State")?);
        let cluster: Vec<_> = [text("Cluster")?, text("Group")?]
            .into_iter()
            .flatten()
            .collect();
        let state = state.as_deref().unwrap_or("unknown state");
        // A member that does not run yet has no host.
        let missing = format!("Patroni lists no host: {state}");
        Some(Server {
            name: one_line(&text("Member")??),
            conninfo: conninfo::of_address(&host),
            cluster: (!cluster.is_empty()).then(|| one_line(&cluster.join("/"))),
            answer: Answer::new(Status::Critical, &missing),
        })
    };
    lists.into_iter().flatten().map(server).collect()
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
    let schema = match &options.schema {
        Some(schema) => format!("'{}'", schema.replace('\'', "''")),
        None => "(SELECT n.nspname FROM pg_extension AS e \
                 JOIN pg_namespace AS n ON n.oid = e.extnamespace \
                 WHERE e.extname = 'pg_hugeinfo')"
            .to_owned(),
    };
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
    let deadline = Instant::now() + limit;
    let mut psql = program("psql", options);
    psql.args(["-XAtqw1", "-v", "ON_ERROR_STOP=1", "-d", conninfo]);
    for question in questions {
        psql.args(["-c", question]);
    }
    let output = match end_of(psql, deadline) {
        Ok(End::Exit(Some(2), output)) => output,
        Ok(End::Exit(_, output)) => return answer(&output),
        Ok(End::Late) => {
            let reason = format!("no answer within {} s", options.timeout);
            return Answer::new(Status::Critical, &reason);
        }
        Ok(End::Large) => {
            return Answer::unknown(&format!("psql printed more than {MOST_BYTES} bytes"));
        }
        Ok(End::Interrupted) => return Answer::unknown("interrupted"),
        Err(error) => return Answer::unknown(&format!("psql: {error}")),
    };
    let reason = output.strip_prefix("psql: error: ").unwrap_or(&output);
    let mut pg_isready = program("pg_isready", options);
    pg_isready.args(["-q", "-t", "2", "-d", conninfo]);
    // psql might have used up the time.
    let deadline = deadline.max(Instant::now() + Duration::from_secs(3));
    match end_of(pg_isready, deadline) {
        // The server accepts connections, or libpq did not try to connect.
        Ok(End::Exit(Some(0 | 3), _)) => Answer::unknown(reason),
        Ok(_) => Answer::new(Status::Critical, reason),
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
        .env_remove("PG_COLOR");
    command
}

/// How a program ended, with its exit status, and the text on both outputs.
enum End {
    Exit(Option<i32>, String),
    Late,
    Large,
    Interrupted,
}

/// Runs a program. Ends it and its children at the time limit, after too much output, or after a
/// signal.
fn end_of(mut command: Command, deadline: Instant) -> io::Result<End> {
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let mut child = command.spawn()?;
    // The output ends when this process, too, has closed the pipe.
    drop(command);
    let end = watch(&mut child, &reader, deadline);
    if !matches!(end, Ok(End::Exit(..))) {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
    end
}

fn watch(child: &mut Child, reader: &PipeReader, deadline: Instant) -> io::Result<End> {
    let mut output = Vec::new();
    let mut is_open = true;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if is_interrupted() {
            return Ok(End::Interrupted);
        } else if left.is_zero() {
            return Ok(End::Late);
        } else if output.len() > MOST_BYTES {
            return Ok(End::Large);
        } else if is_open {
            is_open = read_some(reader, left.min(TICK), &mut output)? != Some(0);
        } else if let Some(status) = child.try_wait()? {
            let text = String::from_utf8_lossy(&output).into_owned();
            return Ok(End::Exit(status.code(), text));
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

// Answers.

/// The valid values of a member.
#[derive(Clone, Copy)]
enum Form {
    /// Any text, which is shown on one line.
    Text,
    /// A text of several lines.
    Lines,
    Boolean,
    /// At most 18 digits.
    Number,
    /// A word with at most 40 letters.
    Word,
    Version,
    /// At most 20 digits in a text.
    Digits,
}

/// Members of the first answer: facts about the server.
const FACTS: &[(&str, Form)] = &[
    ("schema", Form::Text),
    ("database", Form::Text),
    ("is_standby", Form::Boolean),
    ("may_look", Form::Boolean),
    ("is_muted", Form::Boolean),
    ("version", Form::Version),
    ("system_identifier", Form::Digits),
];

/// Members of the second answer: columns of `hugeinfo_status`.
const COLUMNS: &[(&str, Form)] = &[
    ("status", Form::Text),
    ("code", Form::Word),
    ("reason", Form::Text),
    ("remedy", Form::Lines),
    ("huge_pages", Form::Text),
    ("shared_memory_type", Form::Text),
    ("in_use", Form::Boolean),
    ("fits_after_restart", Form::Boolean),
    ("page_size_bytes", Form::Number),
    ("segment_bytes", Form::Number),
    ("segment_pages", Form::Number),
    ("huge_page_size_bytes", Form::Number),
    ("required_huge_pages", Form::Number),
    ("pool_total_pages", Form::Number),
    ("pool_available_pages", Form::Number),
    ("shortfall_pages", Form::Number),
    ("recommended_nr_hugepages", Form::Number),
];

impl Form {
    /// The value to show. `None`: invalid.
    fn valid(self, value: &Value) -> Option<Value> {
        match self {
            Self::Boolean => value.as_bool().map(Value::from),
            Self::Number => {
                const MOST: u64 = 10_u64.pow(18) - 1;
                value.as_u64().filter(|n| *n <= MOST).map(Value::from)
            }
            Self::Text => value.as_str().map(|text| one_line(text).into()),
            Self::Lines => {
                let lines = value.as_str()?.lines().take(100).map(one_line);
                Some(lines.collect::<Vec<_>>().join("\n").into())
            }
            Self::Word => {
                let text = value.as_str().filter(|text| is_word(text, 40))?;
                Some(text.into())
            }
            Self::Version => {
                let text = value.as_str().filter(|text| version(text).is_some())?;
                Some(text.into())
            }
            Self::Digits => {
                let text = value.as_str().filter(|text| is_number(text, 20))?;
                Some(text.into())
            }
        }
    }
}

fn is_number(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str, longest: usize) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=longest).contains(&text.len()) && text.bytes().all(is_letter)
}

/// A version in the order of releases: `0.2.0-dev` is before `0.2.0`.
fn version(text: &str) -> Option<(Vec<u32>, bool)> {
    let (numbers, suffix) = match text.split_once('-') {
        Some((numbers, suffix)) => (numbers, Some(suffix)),
        None => (text, None),
    };
    let number = |text: &str| text.parse().ok().filter(|_| is_number(text, 5));
    let numbers: Vec<u32> = numbers.split('.').map(number).collect::<Option<_>>()?;
    let is_valid = numbers.len() == 3 && suffix.is_none_or(|suffix| is_word(suffix, 20));
    is_valid.then_some((numbers, suffix.is_none()))
}

/// A text as one printable line.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    escape::shortened(&escape::name(words.join(" ")), MOST_CHARACTERS)
}

/// The answer in the output of psql.
fn answer(output: &str) -> Answer {
    valid_answer(output).unwrap_or_else(|member| {
        Answer::unknown(&format!("unexpected answer: invalid value of {member}"))
    })
}

/// Errors: the name of an invalid member.
fn valid_answer(output: &str) -> Result<Answer, &'static str> {
    let mut objects = output
        .lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok());
    let mut members = Map::new();
    let facts = objects.next().unwrap_or_default();
    add_members(&mut members, FACTS, &facts)?;
    if let Some(columns) = objects.next() {
        add_members(&mut members, COLUMNS, &columns)?;
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let status = text("status").and_then(status_of);
        let reason = match status {
            Some(_) => text("reason").unwrap_or_default(),
            None => "hugeinfo_status has no column status; the extension might be older",
        };
        return Ok(Answer {
            status: status.unwrap_or(Status::Unknown),
            reason: reason.to_owned(),
            members,
        });
    }
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let reason = match text("schema") {
        None if !facts.is_empty() => {
            let database = text("database").unwrap_or("?");
            format!("no extension pg_hugeinfo in database {database}")
        }
        Some(schema) if members.get("may_look") == Some(&Value::Bool(false)) => {
            let schema = schema.replace('"', "\"\"");
            format!("missing privilege: GRANT USAGE ON SCHEMA \"{schema}\" TO pg_monitor")
        }
        _ => error_in(output).to_owned(),
    };
    Ok(Answer {
        members,
        ..Answer::unknown(&reason)
    })
}

/// Adds the valid members of an answer. Older versions of the extension have fewer.
fn add_members(
    members: &mut Map<String, Value>,
    forms: &[(&'static str, Form)],
    answer: &Map<String, Value>,
) -> Result<(), &'static str> {
    for (name, form) in forms {
        let valid = match answer.get(*name) {
            None => continue,
            Some(Value::Null) => Value::Null,
            Some(value) => form.valid(value).ok_or(*name)?,
        };
        members.insert((*name).to_owned(), valid);
    }
    Ok(())
}

fn status_of(text: &str) -> Option<Status> {
    [
        Status::Ok,
        Status::Unknown,
        Status::Warning,
        Status::Critical,
    ]
    .into_iter()
    .find(|status| status.as_str() == text)
}

/// The first error in the output of psql, or all of it.
fn error_in(output: &str) -> &str {
    let error = |line| {
        let (before, error) = ["ERROR:", "FATAL:"]
            .into_iter()
            .find_map(|word| str::split_once(line, word))?;
        (before.is_empty() || before.starts_with("psql:")).then_some(error)
    };
    match output.lines().find_map(error) {
        Some(error) => error,
        None if output.trim().is_empty() => "psql printed nothing",
        None => output,
    }
}

// Results of several servers.

/// Compares with this program, because a server can claim any version.
fn note_older_versions(servers: &mut [Server]) {
    let own = env!("CARGO_PKG_VERSION");
    for server in servers {
        let found = server.answer.text("version").and_then(version);
        if found.is_some() && found < version(own) {
            let members = &mut server.answer.members;
            members.insert("program_version".to_owned(), own.into());
        }
    }
}

/// Servers with the same system identifier, which are copies of one another.
struct Cluster<'a> {
    system_identifier: &'a str,
    members: Vec<&'a Server>,
}

fn clusters(servers: &[Server]) -> Vec<Cluster<'_>> {
    let mut clusters: BTreeMap<&str, Vec<&Server>> = BTreeMap::new();
    for server in servers {
        if let Some(system_identifier) = server.answer.text("system_identifier")
            && server.answer.is("in_use").is_some()
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
            server.answer.is("is_muted") != Some(true)
                && server.answer.text("huge_pages") != Some("off")
        });
        let first = counted.next().map(|server| server.answer.is("in_use"));
        first.is_some_and(|first| counted.any(|server| server.answer.is("in_use") != first))
    }

    /// Its name in Patroni, or the system identifier.
    fn name(&self) -> &str {
        let mut names = self
            .members
            .iter()
            .filter_map(|server| server.cluster.as_deref());
        names.next().unwrap_or(self.system_identifier)
    }

    fn with_huge_pages(&self, in_use: bool) -> Vec<&str> {
        self.members
            .iter()
            .filter(|server| server.answer.is("in_use") == Some(in_use))
            .map(|server| server.name.as_str())
            .collect()
    }
}

// Output.

fn to_text(worst: Status, servers: &[&Server], clusters: &[Cluster<'_>]) -> String {
    let upper = |status: Status| status.as_str().to_ascii_uppercase();
    let lines: Vec<([String; 5], String)> = servers
        .iter()
        .map(|server| {
            let answer = &server.answer;
            let role = match answer.is("is_standby") {
                Some(true) => "standby",
                Some(false) => "primary",
                None => "",
            };
            let page_size = answer
                .members
                .get("page_size_bytes")
                .and_then(Value::as_u64);
            let page_size = page_size.map(|bytes| PageSize(bytes).to_string());
            let mut reason = answer.reason.clone();
            if let (Some(version), Some(own)) =
                (answer.text("version"), answer.text("program_version"))
            {
                let _ = write!(reason, "; older version {version}: this program has {own}");
            }
            let columns = [
                upper(answer.status),
                server.name.clone(),
                role.to_owned(),
                page_size.unwrap_or_default(),
                answer.text("code").unwrap_or_default().to_owned(),
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
            cluster.name(),
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
    let of_server = |server: &&Server| {
        let mut members = server.answer.members.clone();
        members.insert("name".to_owned(), server.name.clone().into());
        members.insert("status".to_owned(), server.answer.status.as_str().into());
        members.insert("reason".to_owned(), server.answer.reason.clone().into());
        let conninfo = server.conninfo.as_ref().map(escape::name);
        for (name, value) in [("conninfo", conninfo), ("cluster", server.cluster.clone())] {
            if let Some(value) = value {
                members.insert(name.to_owned(), value.into());
            }
        }
        Value::from(members)
    };
    let of_cluster = |cluster: &Cluster<'_>| {
        let names: Vec<_> = cluster.members.iter().map(|server| &server.name).collect();
        json!({
            "cluster": cluster.name(),
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
        "servers": servers.iter().map(of_server).collect::<Vec<_>>(),
        "clusters": clusters.iter().map(of_cluster).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_releases() {
        let ordered = ["0.0.1", "0.2.0-dev", "0.2.0", "0.9.0", "0.10.0", "1.0.0"];
        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
            assert!(version(pair[0]).is_some(), "{pair:?}");
        }
        for odd in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "1.2.x",
            "1.2.3-",
            "1.2.3-a b",
            "1.2.+3",
            "1.2.123456",
        ] {
            assert_eq!(version(odd), None, "{odd}");
        }
    }

    #[test]
    fn errors_are_found_between_other_lines() {
        for (output, error) in [
            ("a\nERROR:  b\nDETAIL:  c", "  b"),
            ("psql:<stdin>:1: ERROR:  b", "  b"),
            ("a ERROR: b", "a ERROR: b"),
            ("x: FATAL: y\npsql: FATAL: z", " z"),
            (" \n", "psql printed nothing"),
        ] {
            assert_eq!(error_in(output), error, "{output}");
        }
    }
}
