//! `hugeinfo ensure`: gives servers the huge pages of their next start.

use std::{
    io::IsTerminal,
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
    pool,
    promises::Promises,
    target::{Target, starts_at_boot},
};

/// When the servers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Moment {
    /// Later in this boot. With --all, only the clusters that start at boot.
    Boot,
    /// Now: from ExecStartPre of the unit. Fails only if the start would certainly fail.
    Start,
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
    if !options.dry_run && !rustix::process::geteuid().is_root() {
        return Err(Error::with_hint(
            "only root can change the pools of the kernel",
            "--dry-run prints the commands",
        ));
    }
    match all(options) {
        // The server might start all the same.
        Err(error) if options.moment == Some(Moment::Start) && !options.strict => {
            let text = format!("warning: {error}");
            Ok(Done::from(escape::lines(text)))
        }
        done => done,
    }
}

fn all(options: &Options) -> Result<Done, Error> {
    let deadline = Instant::now() + options.wait;
    let mut promises = match options.dry_run {
        true => Promises::none(),
        false => Promises::lock(deadline)?,
    };
    let targets = match options.all {
        true => Target::all()?,
        false => vec![Target::find(&options.server)?],
    };
    let mut lines = Vec::new();
    let mut exit_status = 0;
    for target in &targets {
        if options.moment == Some(Moment::Boot)
            && options.all
            && !target.directory.as_deref().is_none_or(starts_at_boot)
        {
            continue;
        }
        let name = target.name();
        let (text, status) = match one(target, options, deadline, &mut promises) {
            Ok(done) => done,
            // The server might start all the same.
            Err(error) if options.moment == Some(Moment::Start) && !options.strict => {
                (format!("warning: {}", error.to_string().trim_end()), 0)
            }
            Err(error) => (error.to_string().trim_end().to_owned(), error.exit_status()),
        };
        lines.push(format!("{name}: {text}\n"));
        exit_status = exit_status.max(status);
    }
    promises.save()?;
    Ok(Done {
        text: escape::lines(lines.concat()),
        exit_status,
    })
}

/// Returns the result for one server, and the exit status.
fn one(
    target: &Target,
    options: &Options,
    deadline: Instant,
    promises: &mut Promises,
) -> Result<(String, u8), Error> {
    if target.postmaster.is_some() {
        return Ok(("the server runs; nothing was changed".to_owned(), 0));
    }
    let next = NextStart::read(&target.options(&options.server), Detail::Pages)?;
    let settings = next.settings()?;
    let own = next.data_directory.clone().unwrap_or_default();
    let read = || -> Result<Machine, Error> {
        let mut machine = machine::stopped(&next, ServerState::Stopped)?;
        promises.reserve(&mut machine, &own);
        Ok(machine)
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
    let short = |machine: &Machine, why: &str| {
        let restart = diagnosis::findings(machine);
        let restart = restart.into_iter().find(|(id, _)| *id == CheckId::Restart);
        let finding = restart.map_or(String::new(), |(_, finding)| finding.text);
        let would_fail = matches!(start::outcome(machine), StartOutcome::Fails(..));
        let (mark, status) = match settings.huge_pages {
            HugePages::On if would_fail => ("critical", 2),
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
            true => (format!("has its {}", huge_pages(pages, size)), 0),
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
        let wait = options.wait.as_secs();
        let why = match is_whole {
            true => "Another program took the pages.".to_owned(),
            false => format!("The kernel did not find the memory within {wait} s."),
        };
        return short(&read()?, &why);
    }
    promises.promise(own, size, pages);
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
    Ok((format!("has its {}{added}", huge_pages(pages, size)), 0))
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
