//! `hugeinfo ensure`: gives servers the huge pages of their next start.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use advice::{
    answer,
    check::CheckId,
    decision::Decision,
    ensure,
    model::{
        machine::{Machine, ServerState},
        start::{self, StartOutcome},
        step::Step,
    },
    render,
};
use clap::{Args, ValueEnum};
use host::{
    escape,
    linux::error::of_start,
    server::state::HugePages,
    units::{Bytes, PageSize, Pages, huge_pages},
};

use crate::{
    Done,
    command::{caught, is_interrupted, within},
    error::Error,
    is_root, machine,
    next_start::NextStart,
    planned::Detail,
    pool::{self, Attempt, Growth},
    reservations::{Reservations, has_started},
    target::{self, Target},
};

/// Time for the next starts of all servers.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Time for a look at a running server, while other runs wait for the lock.
const READ_LIMIT: Duration = Duration::from_secs(5);

const RUNS: &str = "the server runs; nothing was changed";

/// The time of the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Moment {
    /// Later in this boot. With --all, only the clusters that start at boot.
    Boot,
    /// Now, as in ExecStartPre of a unit. Fails only if the start would certainly fail.
    Start,
    /// Soon: the server still runs, and is about to be restarted, as in before_stop of Patroni.
    /// Counts the pages that the server releases.
    Restart,
}

/// The options of `ensure`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    /// All stopped Debian clusters; with --for restart, all running servers as well.
    #[arg(long, conflicts_with_all = ["data", "cluster", "settings"])]
    all: bool,
    /// When the next start happens. Without this option, that is unknown.
    #[arg(long = "for", value_enum)]
    moment: Option<Moment>,
    /// How long to keep trying while memory is short or fragmented, such as 60s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    wait: Duration,
    /// How long to wait for another run of ensure, in addition to --wait.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    lock_wait: Duration,
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
        _ => return Err("expected a time, such as 60s or 2min".to_owned()),
    };
    let number: u32 = digits.parse().map_err(|_| "expected a time, such as 60s")?;
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
    format!("warning: {}", error.indented())
}

fn ensure(options: &Options) -> Result<Done, Error> {
    if !options.dry_run && !is_root() {
        return Err(Error::with_hint(
            "only root can change the pools of the kernel",
            "To print the commands, use --dry-run",
        ));
    }
    // PostgreSQL computes the next starts before the lock, so that other runs need not wait for it.
    let mut servers = with_next_starts(targets(options)?, options)?;
    // If memory is short, only these would not start.
    servers.sort_by_key(|(_, next)| !next.as_ref().is_some_and(needs_huge_pages));
    let mut reservations = match options.dry_run {
        true => Reservations::none(),
        false => Reservations::lock(Instant::now() + options.wait + options.lock_wait)?,
    };
    let deadline = Instant::now() + options.wait;
    // The steps that a dry run has printed for the servers before.
    let mut printed = Vec::new();
    // Memory that servers need later, by their users.
    let mut later: Vec<_> = servers.iter().map(needs).collect();
    let mut lines = Vec::new();
    let mut exit_status = 0;
    for (index, (target, next)) in servers.into_iter().enumerate() {
        let own = std::mem::take(&mut later[index]);
        let of_owner = later.iter().filter(|(owner, _)| *owner == own.0);
        let result = match next {
            None => Ok(Outcome::new(RUNS, 0)),
            Some(next) => next.and_then(|next| {
                let run = ServerRun {
                    target: &target,
                    next: &next,
                    options,
                    deadline,
                    later: of_owner.map(|(_, bytes)| *bytes).sum(),
                };
                caught(|| run.run(&mut reservations, &mut printed))
            }),
        };
        let done = match result {
            Ok(done) => done,
            Err(error) if options.is_lenient() => Outcome::new(warning(&error), 0),
            Err(error) => Outcome::new(error.indented(), error.exit_status()),
        };
        if done.starts_on_small_pages() {
            later[index] = own;
        }
        lines.push(format!("{}: {}\n", target.name(), done.text));
        exit_status = crate::worse(exit_status, done.exit_status);
    }
    reservations.save()?;
    Ok(Done {
        text: escape::lines(lines.concat()),
        exit_status,
    })
}

/// A server, and its next start if it is to be served.
type Candidate = (Target, Option<Result<NextStart, Error>>);

/// Computes the next starts of the servers that are to be served.
fn with_next_starts(targets: Vec<Target>, options: &Options) -> Result<Vec<Candidate>, Error> {
    let server = match options.all {
        true => options.server.of_several(),
        false => options.server.at(options.server.directory()),
    };
    let moment = options.moment;
    let read = move |target: &Target| match target.postmaster {
        Some(_) if moment != Some(Moment::Restart) => Ok(None),
        Some(pid) if target.is_only_found && target.is_in_use => {
            match machine::next_start_as_now(pid)? {
                Some(next) => Ok(Some(next)),
                None => NextStart::read(&target.options(&server), Detail::Pages).map(Some),
            }
        }
        _ => NextStart::read(&target.options(&server), Detail::Pages).map(Some),
    };
    let found = target::each(&targets, TIME_LIMIT, read);
    let servers = targets.into_iter();
    let servers = servers.zip(found.into_iter().map(Result::transpose));
    let is_at_boot = options.all && options.moment == Some(Moment::Boot);
    let is_served = |(_, next): &Candidate| match next {
        Some(Ok(next)) => next.starts_at_boot || !is_at_boot,
        _ => true,
    };
    Ok(servers.filter(is_served).collect())
}

fn targets(options: &Options) -> Result<Vec<Target>, Error> {
    if !options.all {
        return Ok(vec![Target::find(&options.server)?]);
    }
    Target::all()
}

/// The user of a server that does not run, and its shared memory.
fn needs((target, next): &Candidate) -> (Option<u32>, Bytes) {
    let next = next.as_ref().filter(|_| target.postmaster.is_none());
    let Some(Ok(next)) = next else {
        return (None, Bytes(0));
    };
    let settings = next.settings.as_ref();
    let bytes = settings.map_or(0, |settings| settings.server.shared_memory_bytes);
    (next.owner, Bytes(bytes))
}

fn needs_huge_pages(next: &Result<NextStart, Error>) -> bool {
    let settings = next.as_ref().ok().and_then(|next| next.settings().ok());
    settings.is_some_and(|settings| settings.server.huge_pages == HugePages::On)
}

/// One of the servers.
struct ServerRun<'a> {
    target: &'a Target,
    next: &'a NextStart,
    options: &'a Options,
    deadline: Instant,
    /// Shared memory of other servers of this user that start later, perhaps on small pages.
    later: Bytes,
}

/// The result for one server.
struct Outcome {
    text: String,
    exit_status: u8,
    /// The pages of its next start are reserved.
    has_pages: bool,
}

impl Outcome {
    fn starts_on_small_pages(&self) -> bool {
        !self.has_pages && self.exit_status < 2
    }

    fn new(text: impl Into<String>, exit_status: u8) -> Self {
        Self {
            text: text.into(),
            exit_status,
            has_pages: false,
        }
    }
}

impl ServerRun<'_> {
    /// `printed`: the steps that a dry run has printed so far.
    fn run(
        &self,
        reservations: &mut Reservations,
        printed: &mut Vec<Step>,
    ) -> Result<Outcome, Error> {
        self.next.settings()?;
        // It might have started while this run waited for the lock.
        if self.target.postmaster.is_none() && has_started(&self.data(), self.next.owner)? {
            return Ok(Outcome::new(RUNS, 0));
        }
        let machine = self.read(reservations, printed)?;
        let server = machine.next_start();
        let Some(size) = machine.size_to_map(&server) else {
            let huge_pages = server.huge_pages.as_str();
            let text = format!("does not ask for huge pages (huge_pages = {huge_pages})");
            return Ok(Outcome::new(text, 0));
        };
        let pages = machine.pages_mapped(&server, size);
        let needs = huge_pages(pages, size);
        let gets = match self.target.postmaster {
            Some(_) => format!("will get {needs} after the restart"),
            None => format!("has its {needs}"),
        };
        let unknown = match ensure::of_unknown_owner(&machine) {
            Pages(0) => String::new(),
            idle => format!("; counts on {idle} idle pages that no known boot configuration sets"),
        };
        let set_aside = |reservations: &mut Reservations| {
            let held = machine.pages_held(size).unwrap_or_default();
            let to_restart = self.target.postmaster.map(|pid| (pid, held));
            reservations.add(self.data(), self.next.owner, size, pages, to_restart);
        };
        if self.options.dry_run {
            let steps = match ensure::steps(&machine) {
                Ok(steps) => steps,
                Err(decision) => return self.short(&machine, size, &to_do(&decision)),
            };
            let commands = steps
                .iter()
                .filter_map(|step| render::command(&machine, step));
            let commands: Vec<_> = commands.collect();
            let text = match commands.is_empty() {
                true => format!("{gets}{unknown}"),
                false => format!(
                    "lacks pages{unknown}; to add them:\n    {}",
                    commands.join("\n    ")
                ),
            };
            set_aside(reservations);
            printed.extend(steps);
            return Ok(Outcome {
                text,
                exit_status: 0,
                has_pages: true,
            });
        }
        let mut growth = Growth::at_most(pages);
        match self.grow(&mut growth, reservations) {
            Ok(None) => {
                set_aside(reservations);
                let added = match growth.added() {
                    Pages(0) => String::new(),
                    added => {
                        let verb = added.verb("was", "were");
                        format!("; {added} {verb} added to the pool")
                    }
                };
                Ok(Outcome {
                    text: format!("{gets}{added}{unknown}"),
                    exit_status: 0,
                    has_pages: true,
                })
            }
            failed => {
                growth.restore()?;
                self.short(
                    &self.read(reservations, &[])?,
                    size,
                    &failed?.unwrap_or_default(),
                )
            }
        }
    }

    fn data(&self) -> PathBuf {
        self.next.data_directory.clone().unwrap_or_default()
    }

    /// `steps`: steps that are done before the start.
    fn read(&self, reservations: &mut Reservations, steps: &[Step]) -> Result<Machine, Error> {
        reservations.forget_started();
        loop {
            let mut machine = match self.target.postmaster {
                Some(pid) => before_restart(pid, self.next.clone())?,
                None => machine::stopped(self.next, ServerState::Stopped)?,
            };
            if let Ok(after) = machine.apply_all(steps) {
                machine = after;
            }
            reservations.count_others(&mut machine, &self.data(), self.next.owner);
            // Pages count as reserved or as mapped, never as both or as neither. The loop ends,
            // because each round has fewer reservations.
            if !reservations.forget_started() {
                if let Some(owner) = self.next.owner {
                    ensure::distrust_other_users(&mut machine, owner);
                }
                ensure::count_later(&mut machine, self.later);
                return Ok(machine);
            }
        }
    }

    /// Adds the pages that the next start lacks. Plans each attempt with the machine as it is then,
    /// because other programs take memory and pages meanwhile. Returns why the pages are missing.
    fn grow(
        &self,
        growth: &mut Growth,
        reservations: &mut Reservations,
    ) -> Result<Option<String>, Error> {
        // Pages after the last attempt, since which memory was compacted.
        let mut compacted_at = None;
        loop {
            if is_interrupted() {
                return Err(Error::new("interrupted by a signal"));
            }
            let is_late = Instant::now() >= self.deadline;
            let why = match ensure::steps(&self.read(reservations, &[])?) {
                Ok(steps) => match growth.attempt(&steps)? {
                    Attempt::Whole => {
                        let after = start::outcome(&self.read(reservations, &[])?);
                        if matches!(after, StartOutcome::HugePages(_)) {
                            return Ok(None);
                        }
                        growth.restore()?;
                        "Another process reserved the pages first.".to_owned()
                    }
                    Attempt::Taken => "Other processes took pages that this run added.".to_owned(),
                    Attempt::Short(pages) if compacted_at.is_none_or(|before| pages > before) => {
                        pool::compact();
                        compacted_at = Some(pages);
                        continue;
                    }
                    Attempt::Short(_) => {
                        compacted_at = None;
                        let wait = self.options.wait.as_secs();
                        format!("The kernel could not allocate the pages within {wait} s.")
                    }
                },
                // Other programs might release memory. The memory of one that is ending is unknown.
                Err(decision @ (Decision::FreeMemory { .. } | Decision::CheckMemory { .. })) => {
                    growth.restore()?;
                    compacted_at = None;
                    to_do(&decision)
                }
                Err(decision) => return Ok(Some(to_do(&decision))),
            };
            if is_late {
                return Ok(Some(why));
            }
            thread::sleep(pool::PAUSE);
        }
    }

    /// The result for a server whose pages are missing.
    fn short(&self, machine: &Machine, size: PageSize, why: &str) -> Result<Outcome, Error> {
        let would_fail =
            |machine: &Machine| matches!(start::outcome(machine), StartOutcome::Fails(..));
        if self.options.is_lenient()
            && would_fail(machine)
            && !would_fail(&machine::stopped(self.next, ServerState::Stopped)?)
        {
            let pages = machine.pages_mapped(&machine.next_start(), size);
            let needs = huge_pages(pages, size);
            let text = format!(
                "warning: needs {needs}, which are set aside for other servers that are starting"
            );
            return Ok(Outcome::new(text, 0));
        }
        let (mark, status) = match machine.next_start().huge_pages {
            HugePages::On if would_fail(machine) => ("critical", 2),
            _ => ("warning", u8::from(self.options.strict)),
        };
        let finding = answer::finding(machine, CheckId::Restart).text;
        let stopped = ensure::while_stopped(machine).unwrap_or_default();
        let text = format!("{mark}: {finding} {why}").trim_end().to_owned();
        let text = format!("{text} {stopped}").trim_end().to_owned();
        Ok(Outcome::new(text, status))
    }
}

/// A server that runs, before its restart. Its memory might be locked.
fn before_restart(pid: u32, next: NextStart) -> Result<Machine, Error> {
    let read = within(READ_LIMIT, move || machine::before_restart(pid, &next));
    read.unwrap_or_else(|errno| {
        let why = of_start(&errno.into());
        Err(Error::new(format!("its memory could not be read: {why}")))
    })
}

fn to_do(decision: &Decision) -> String {
    format!("To do: {decision}")
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
