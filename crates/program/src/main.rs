//! `hugeinfo`: the answers of the extension when SQL is not available.
//!
//! Exit status: 0 done, 1 a start would not get huge pages, 2 PostgreSQL would not start, 3 wrong
//! usage, missing permissions, or unknown.

mod check;
mod command;
mod completion;
mod ensure;
mod error;
mod explain;
mod fit;
mod fleet;
mod machine;
mod man;
mod next_start;
mod owner;
mod plan;
mod planned;
mod pool;
mod postgres;
mod preflight;
mod probe;
mod report;
mod reservations;
mod runbook;
mod search;
mod size;
mod status;
mod target;
mod why;

use std::{
    ffi::OsString,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, LazyLock},
    time::Duration,
};

use clap::{
    Args, CommandFactory, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

use advice::{check::Status, text};
use host::{
    escape,
    linux::{lookup::Guard, root::Root},
    shell,
};

use crate::size::Size;

/// The allocator of musl maps and unmaps memory again and again, which took a third of the time of
/// `hugeinfo status`.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// The version with the commit, which tools/program sets if it knows the commit.
const VERSION: &str = match option_env!("HUGEINFO_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Huge pages for PostgreSQL, without a connection to a server.
#[derive(Parser)]
#[command(name = "hugeinfo", version = VERSION, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Shows whether the server is on huge pages, and what to do.
    Status(status::Options),
    /// Evaluates all checks.
    Check(check::Options),
    /// Explains a check or a code, with instructions.
    Explain(explain::Options),
    /// Lists the steps to a healthy server.
    Runbook(runbook::Options),
    /// Writes an HTML page about a running server.
    Report(report::Options),
    /// Computes how many huge pages a server with these settings needs.
    Plan(plan::Options),
    /// Computes the largest shared_buffers that fits into a number of huge pages or amount of
    /// memory.
    Fit(fit::Options),
    /// Shows whether a start would get huge pages now, as this user and in this cgroup.
    Preflight(preflight::Options),
    /// Adds the huge pages that servers need for their next start. Requires root.
    Ensure(ensure::Options),
    /// Shows why the server did not start.
    Why(why::Options),
    /// Shows hugeinfo_status of many servers, the worst first. Requires psql and pg_isready.
    Fleet(fleet::Options),
    /// Prints a shell completion script for this program.
    Completion(completion::Options),
    /// Creates the manual pages.
    #[command(hide = true)]
    Man(man::Options),
    // Run by this program. Their names are unlike those that people type.
    #[command(hide = true, name = probe::CHILD)]
    Touch(probe::Options),
    #[command(hide = true, name = next_start::CHILD)]
    Settings(next_start::Options),
    #[command(hide = true, name = search::CHILD)]
    Search(search::Options),
}

/// The server whose shared memory is computed.
#[derive(Args)]
struct Server {
    /// A setting, as in the option -c of postgres, such as shared_buffers=64GB. Can be repeated.
    #[arg(short = 'c', value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Reads the configuration files of this data directory. The server can be running.
    #[arg(short = 'D', value_name = "DATADIR")]
    data: Option<std::path::PathBuf>,
    /// A Debian cluster, such as 17/main.
    #[arg(long, value_name = "VERSION/NAME", conflicts_with = "data")]
    cluster: Option<String>,
    /// The directory of the PostgreSQL programs. Default: that of the version of the data
    /// directory, or of the newest installed version.
    #[arg(long, value_name = "DIR")]
    bindir: Option<std::path::PathBuf>,
    #[arg(skip = next_start::TIME_LIMIT)]
    time_limit: Duration,
    /// The postmaster. `None`: the server does not run, or was not searched for.
    #[arg(skip)]
    postmaster: Option<u32>,
    /// See [`target::Target::is_only_found`].
    #[arg(skip)]
    is_only_found: bool,
}

impl Server {
    /// The directory for the option -D of postgres.
    fn directory(&self) -> Option<PathBuf> {
        let cluster = self.cluster.as_ref();
        // systemd writes the name of an instance with a slash for each dash: 17/my/db.
        let cluster = cluster.map(|name| match name.split_once('/') {
            Some((version, name)) => format!("{version}/{}", name.replace('/', "-")),
            None => name.clone(),
        });
        let cluster = cluster.map(|name| Path::new("/etc/postgresql").join(name));
        self.data.clone().or(cluster)
    }

    /// These options, with another directory.
    fn at(&self, directory: Option<PathBuf>) -> Self {
        Self {
            settings: self.settings.clone(),
            data: directory,
            cluster: None,
            bindir: self.bindir.clone(),
            time_limit: self.time_limit,
            postmaster: None,
            is_only_found: false,
        }
    }

    /// The command with which a person declares to trust the configuration of this server.
    fn named_by(&self) -> String {
        let verb = std::env::args().nth(1).unwrap_or_default();
        let moment = match verb.as_str() {
            "ensure" => " --for restart",
            _ => "",
        };
        let word = |word: OsString| match word.to_str() {
            // An option, not a value.
            Some(option) if option.starts_with('-') => Some(option.to_owned()),
            _ => shell::quoted(word),
        };
        let words = self.arguments().into_iter().map(word);
        let words: Option<Vec<_>> = words.collect();
        let words = words.map_or("-D DATADIR".to_owned(), |words| words.join(" "));
        format!("hugeinfo {verb} {words}{moment}")
    }

    /// These options, for each of several servers.
    fn of_several(&self) -> Self {
        Self {
            time_limit: next_start::TIME_LIMIT_OF_SEVERAL,
            ..self.at(self.directory())
        }
    }

    /// The options for another run of this program, perhaps in another directory.
    fn arguments(&self) -> Vec<OsString> {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path).into_os_string();
        let directory = self.directory().map(absolute);
        let bindir = self.bindir.clone().map(absolute);
        let options = [("-D", directory), ("--bindir", bindir)];
        let options = options
            .into_iter()
            .filter_map(|(option, value)| Some([option.into(), value?]));
        let settings = self.settings.iter();
        let settings = settings.map(|setting| ["-c".into(), setting.into()]);
        options.chain(settings).flatten().collect()
    }
}

/// The host on which the server is to run.
#[derive(Args)]
struct Host {
    /// The RAM of the host, such as 256GB. Default: that of this host.
    #[arg(long, value_name = "SIZE")]
    host_ram: Option<Size>,
    /// The huge page size of the host, such as 1GB. Unless this is the default size of the kernel,
    /// the server also needs huge_page_size. Default: all sizes of this host.
    #[arg(long, value_name = "SIZE")]
    page_size: Option<Size>,
}

impl Host {
    fn is_this(&self) -> bool {
        self.host_ram.is_none() && self.page_size.is_none()
    }
}

/// A sentence after `first`, wrapped if the output is a terminal.
fn sentence(first: &str, text: &str) -> String {
    let line = match std::io::stdout().is_terminal() {
        true => text::wrap(first, text),
        false => format!("{first}{text}"),
    };
    line + "\n"
}

/// Whether this process has the rights of root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The files of this machine. As root, lookups do not wait for file systems that programs of users
/// serve.
fn root() -> Root {
    static ROOT: LazyLock<Root> = LazyLock::new(|| match is_root() {
        true => Root::system().guarded(Arc::new(Guard::new().unwrap_or_default())),
        false => Root::system(),
    });
    ROOT.clone()
}

/// The result of a verb.
struct Done {
    text: String,
    exit_status: u8,
}

impl From<String> for Done {
    fn from(text: String) -> Self {
        Self {
            text,
            exit_status: 0,
        }
    }
}

/// The exit status of a plugin for Nagios.
fn exit_status(status: Status) -> u8 {
    match status {
        Status::Ok => 0,
        Status::Warning => 1,
        Status::Critical => 2,
        Status::Unknown => 3,
    }
}

/// The worse exit status of two servers. Critical counts more than unknown, as in `check`.
fn worse(one: u8, other: u8) -> u8 {
    const FROM_MILDEST: [u8; 4] = [0, 3, 1, 2];
    let rank = |status: &u8| FROM_MILDEST.iter().position(|known| known == status);
    match rank(&one) > rank(&other) {
        true => one,
        false => other,
    }
}

/// Removes hidden verbs from the suggestions for a misspelled one, and long lists of values.
fn helpful(mut error: clap::Error) -> clap::Error {
    const MOST_VALUES: usize = 20;
    let values = ContextKind::ValidValue;
    if let Some(ContextValue::Strings(names)) = error.get(values)
        && names.len() > MOST_VALUES
    {
        error.remove(values);
        let list = "to list all, use: hugeinfo explain".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![list]));
    }
    let kind = ContextKind::SuggestedSubcommand;
    if let Some(ContextValue::Strings(mut names)) = error.remove(kind) {
        let program = Arguments::command();
        let verb = |name: &String| program.find_subcommand(name);
        names.retain(|name| verb(name).is_some_and(|verb| !verb.is_hide_set()));
        if !names.is_empty() {
            error.insert(kind, ContextValue::Strings(names));
        }
    }
    error
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = helpful(error);
            let is_help = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            let _ = error.print();
            return ExitCode::from(if is_help { 0 } else { 3 });
        }
    };
    let handled = match arguments.verb {
        // These verbs have nothing to clean up and end at once, or they handle signals later.
        Verb::Touch(_) | Verb::Search(_) | Verb::Fleet(_) => Ok(()),
        Verb::Settings(_) if is_root() => Ok(()),
        Verb::Status(_)
        | Verb::Check(_)
        | Verb::Runbook(_)
        | Verb::Report(_)
        | Verb::Preflight(_)
        | Verb::Why(_)
            if is_root() =>
        {
            command::watch()
        }
        _ => command::end_on_signal(),
    };
    let done = handled.and_then(|()| match arguments.verb {
        Verb::Status(options) => status::run(&options),
        Verb::Check(options) => check::run(&options),
        Verb::Explain(options) => Ok(explain::run(&options)),
        Verb::Runbook(options) => runbook::run(&options),
        Verb::Report(options) => report::run(&options),
        Verb::Plan(options) => plan::run(&options),
        Verb::Fit(options) => fit::run(&options),
        Verb::Preflight(options) => preflight::run(&options),
        Verb::Ensure(options) => ensure::run(&options),
        Verb::Why(options) => why::run(&options),
        Verb::Touch(options) => probe::touch(&options),
        Verb::Fleet(options) => fleet::run(&options),
        Verb::Settings(options) => next_start::run(&options),
        Verb::Search(options) => search::run(&options),
        Verb::Completion(options) => Ok(completion::run(&options)),
        Verb::Man(options) => man::run(&options),
    });
    match done {
        Ok(done) => {
            let mut out = std::io::stdout();
            let written = out.write_all(done.text.as_bytes());
            if let Err(error) = written.and_then(|()| out.flush()) {
                eprintln!("hugeinfo: could not write the result: {error}");
                return ExitCode::from(3);
            }
            ExitCode::from(done.exit_status)
        }
        Err(error) => {
            // Parts of it can be from the owner of a data directory.
            eprint!("hugeinfo: {}", escape::lines(error.to_string()));
            ExitCode::from(error.exit_status())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_name_no_hidden_verbs() {
        for (typed, expected) in [("plam", Some("'plan'")), ("mam", None), ("internal", None)] {
            let error = Arguments::try_parse_from(["hugeinfo", typed]).err();
            let text = error.map(|error| helpful(error).to_string());
            let text = text.unwrap_or_default();
            let tip = text.lines().find(|line| line.contains("tip:"));
            match expected {
                Some(verb) => assert!(tip.is_some_and(|tip| tip.ends_with(verb)), "{text}"),
                None => assert_eq!(tip, None, "{text}"),
            }
        }
    }

    #[test]
    fn critical_counts_most() {
        for (one, other, expected) in [(2, 3, 2), (3, 1, 1), (0, 3, 3), (1, 0, 1), (2, 2, 2)] {
            assert_eq!(worse(one, other), expected);
            assert_eq!(worse(other, one), expected);
        }
    }
}
