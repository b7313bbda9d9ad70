//! `hugeinfo ensure`: gives servers the huge pages of their next start.

use std::{
    io::IsTerminal,
    thread,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use hugeinfo::{
    advice::{check::CheckId, diagnosis, ensure, render},
    escape,
    model::{
        machine::{Machine, ServerState},
        start::{self, StartOutcome},
        step::Step,
    },
    server::facts::HugePages,
    units::{Pages, huge_pages},
};

use crate::{
    Done,
    error::Error,
    machine,
    next_start::{Detail, NextStart},
    pool, postgres,
    promises::Promises,
    target::{Target, starts_at_boot},
};

/// Longest time to wait for other runs, in addition to the time for memory.
const LOCK_WAIT: Duration = Duration::from_secs(60);

const RUNS: &str = "the server runs; nothing was changed";

/// When the servers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Moment {
    /// Later in this boot. With --all, only the clusters that start at boot.
    Boot,
    /// Now: from ExecStartPre of the unit. Fails only if the start would certainly fail.
    Start,
    /// Soon, after a stop of the server that still runs: from before_stop of Patroni. Its pages are
    /// free then.
    Restart,
}

/// The options of `ensure`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// The clusters of Debian's packages that do not run.
    #[arg(long, conflicts_with_all = ["data", "cluster", "settings"])]
    all: bool,
    /// When the servers start.
    #[arg(long = "for", value_enum)]
    moment: Option<Moment>,
    /// How long to try while memory is short or fragmented, such as 60s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    wait: Duration,
    /// Prints the commands, and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Exit status 1 if a server would start, but without huge pages.
    #[arg(long)]
    strict: bool,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1,
        "min" => 60,
        _ => return Err("a time was expected, such as 60s or 2min".to_owned()),
    };
    let number: u32 = digits
        .parse()
        .map_err(|_| "a time was expected, such as 60s")?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    match ensure(options) {
        Err(error) if options.is_lenient() => Ok(Done {
            text: escape::lines(format!("{}\n", warning(&error))),
            exit_status: 0,
        }),
        done => done,
    }
}

impl Options {
    /// Whether a server starts although something is unknown.
    fn is_lenient(&self) -> bool {
        self.moment == Some(Moment::Start) && !self.strict
    }
}

fn warning(error: &Error) -> String {
    format!("warning: {}", error.to_string().trim_end())
}

fn ensure(options: &Options) -> Result<Done, Error> {
    if !options.dry_run && !rustix::process::geteuid().is_root() {
        return Err(Error::with_hint(
            "only root can change the pools of the kernel",
            "--dry-run prints the commands",
        ));
    }
    // PostgreSQL computes the next starts before the lock, so that other runs need not wait for it.
    let mut servers: Vec<_> = targets(options)?
        .into_iter()
        .map(|target| {
            let next = match target.postmaster {
                Some(_) if options.moment != Some(Moment::Restart) => None,
                _ => Some(NextStart::read(
                    &target.options(&options.server),
                    Detail::Pages,
                )),
            };
            (target, next)
        })
        .collect();
    // If memory is short, only these would not start.
    servers.sort_by_key(|(_, next)| !next.as_ref().is_some_and(needs_huge_pages));
    let mut promises = match options.dry_run {
        true => Promises::none(),
        false => Promises::lock(Instant::now() + options.wait + LOCK_WAIT)?,
    };
    let deadline = Instant::now() + options.wait;
    let mut lines = Vec::new();
    let mut exit_status = 0;
    for (target, next) in servers {
        let result = match next {
            Some(next) => {
                next.and_then(|next| one(&target, &next, options, deadline, &mut promises))
            }
            None => Ok((RUNS.to_owned(), 0)),
        };
        let (text, status) = match result {
            Ok(done) => done,
            Err(error) if options.is_lenient() => (warning(&error), 0),
            Err(error) => (error.to_string().trim_end().to_owned(), error.exit_status()),
        };
        lines.push(format!("{}: {text}\n", target.name()));
        exit_status = exit_status.max(status);
    }
    promises.save()?;
    Ok(Done {
        text: escape::lines(lines.concat()),
        exit_status,
    })
}

fn targets(options: &Options) -> Result<Vec<Target>, Error> {
    if !options.all {
        return Ok(vec![Target::find(&options.server)?]);
    }
    let mut targets = Target::all()?;
    if options.moment == Some(Moment::Boot) {
        targets.retain(|target| target.directory.as_deref().is_none_or(starts_at_boot));
    }
    Ok(targets)
}

fn needs_huge_pages(next: &Result<NextStart, Error>) -> bool {
    let settings = next.as_ref().ok().and_then(|next| next.settings().ok());
    settings.is_some_and(|settings| settings.huge_pages == HugePages::On)
}

/// Returns the result for one server, and the exit status.
fn one(
    target: &Target,
    next: &NextStart,
    options: &Options,
    deadline: Instant,
    promises: &mut Promises,
) -> Result<(String, u8), Error> {
    let settings = next.settings()?;
    let own = next.data_directory.clone().unwrap_or_default();
    // It might have started while this run waited for the lock.
    if target.postmaster.is_none() && postgres::running(&own).is_some() {
        return Ok((RUNS.to_owned(), 0));
    }
    let read = || -> Result<Machine, Error> {
        loop {
            let open = promises.count_open();
            let mut machine = match target.postmaster {
                Some(pid) => machine::before_restart(pid, next)?,
                None => machine::stopped(next, ServerState::Stopped)?,
            };
            promises.reserve(&mut machine, &own);
            // Pages count as promised or as mapped, never as both or as neither.
            if promises.count_open() == open {
                return Ok(machine);
            }
        }
    };
    let machine = read()?;
    let server = machine.next_start();
    let Some(size) = machine.size_to_map(&server) else {
        let huge_pages = server.huge_pages.as_str();
        return Ok((
            format!("asks for no huge pages (huge_pages = {huge_pages})"),
            0,
        ));
    };
    let pages = machine.pages_mapped(&server, size);
    let gets = match target.postmaster {
        Some(_) => "gets after the restart its",
        None => "has its",
    };
    let short = |machine: &Machine, why: &str| {
        let finding = diagnosis::finding(machine, CheckId::Restart).text;
        let would_fail =
            |machine: &Machine| matches!(start::outcome(machine), StartOutcome::Fails(..));
        if options.is_lenient()
            && would_fail(machine)
            && !would_fail(&machine::stopped(next, ServerState::Stopped)?)
        {
            let needs = huge_pages(pages, size);
            let text = format!("warning: needs {needs} that are for servers which start now, too");
            return Ok((text, 0));
        }
        let (mark, status) = match settings.huge_pages {
            HugePages::On if would_fail(machine) => ("critical", 2),
            _ => ("warning", u8::from(options.strict)),
        };
        Ok((
            format!("{mark}: {finding} {why}").trim_end().to_owned(),
            status,
        ))
    };
    let steps = match ensure::steps(&machine) {
        Ok(steps) => steps,
        Err(decision) => return short(&machine, &format!("To do: {decision}")),
    };
    if options.dry_run {
        let commands = steps
            .iter()
            .filter_map(|step| render::command(&machine, step));
        let commands: Vec<_> = commands.collect();
        return Ok(match commands.is_empty() {
            true => (format!("{gets} {}", huge_pages(pages, size)), 0),
            false => (format!("needs\n    {}", commands.join("\n    ")), 0),
        });
    }
    let mut is_whole = false;
    let is_enough = || {
        is_whole = true;
        let after = start::outcome(&read()?);
        Ok(matches!(after, StartOutcome::HugePages(_)))
    };
    if !pool::take(&steps, deadline, progress, is_enough)? {
        // Another server has mapped pages since the first look.
        if is_whole && Instant::now() < deadline {
            thread::sleep(pool::PAUSE);
            return one(target, next, options, deadline, promises);
        }
        let wait = options.wait.as_secs();
        let why = match is_whole {
            true => "Another program took the pages.".to_owned(),
            false => format!("The kernel did not find the memory within {wait} s."),
        };
        return short(&read()?, &why);
    }
    let held = machine.pages_held(size).unwrap_or_default();
    promises.promise(own, size, pages, target.postmaster.map(|pid| (pid, held)));
    let added = steps.iter().find_map(|step| match step {
        Step::SetPool { size, pages, .. } => {
            let before = machine.pool(*size).map_or(0, |pool| pool.persistent());
            Some(*pages - Pages(before))
        }
        _ => None,
    });
    let added = match added {
        Some(added) => format!("; {added} were added to the pool"),
        None => String::new(),
    };
    Ok((format!("{gets} {}{added}", huge_pages(pages, size)), 0))
}

/// Shows progress on a terminal.
fn progress(size: hugeinfo::units::PageSize, pages: u64, wanted: u64) {
    if std::io::stderr().is_terminal() {
        let of = huge_pages(Pages(wanted), size);
        eprint!(
            "\r{pages} of {of}{}",
            if pages < wanted { "" } else { "\n" }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_wait() {
        for (text, expected) in [
            ("0", Some(0)),
            ("90s", Some(90)),
            ("2min", Some(120)),
            ("", None),
            ("1h", None),
            ("18446744073709551615", None),
        ] {
            let found = parse_time(text).ok();
            assert_eq!(found, expected.map(Duration::from_secs), "{text:?}");
            assert!(found.is_none_or(|found| Instant::now().checked_add(found).is_some()));
        }
    }
}
