//! Steps as commands.

use serde_json::{Value, json};

use crate::model::{
    demand::{self, Demands, When, Who},
    machine::{Machine, ServerState},
    numa,
    start::{self, StartOutcome},
    step::{Counts, LimitChange, Pending, ServiceChange, SettingChange, SettingPlace, Step},
};
use host::{
    escape,
    linux::{
        boot::{Edit, NextBoot},
        hugepages::{self, Pool},
        transparent_hugepage,
    },
    server::{
        connection::Connection,
        state::{Backing, HugePages, Server},
    },
    shell::quoted,
    units::{GIGANTIC, PageSize, Pages, huge_pages},
};

/// The place to run a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A root shell on this host.
    RootShell,
    /// A root shell on the node that runs this container.
    Node,
    /// A session of a superuser.
    Sql,
    /// Whatever starts PostgreSQL.
    Service,
    /// A person does it by hand.
    ByHand,
}

impl Place {
    /// Name in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RootShell => "root shell",
            Self::Node => "root shell of the node",
            Self::Sql => "SQL",
            Self::Service => "service",
            Self::ByHand => "by hand",
        }
    }
}

/// The place to run the step.
pub fn place(machine: &Machine, step: &Step) -> Place {
    let facts = machine.whole();
    let shell = match facts.and_then(|facts| facts.is_container) {
        Some(true) => Place::Node,
        Some(false) | None => Place::RootShell,
    };
    match step {
        Step::SetPoolAtBoot { edit, .. } if edited(edit).is_none() => Place::ByHand,
        Step::RaiseLimit(change) if quoted(change.cgroup.join(&change.file)).is_none() => {
            Place::ByHand
        }
        // The path is as seen from here.
        Step::RaiseLimit(_) => Place::RootShell,
        Step::Compact
        | Step::SetPool { .. }
        | Step::Demote { .. }
        | Step::SetPoolAtBoot { .. }
        | Step::CheckPool { .. }
        | Step::SetThp { .. } => shell,
        Step::ChangeSetting(SettingChange {
            place: SettingPlace::AlterSystem,
            ..
        })
        | Step::Reload => Place::Sql,
        Step::ChangeSetting(_)
        | Step::ChangeService(_)
        | Step::Stop
        | Step::Start
        | Step::Restart
        | Step::RestartOther { .. } => Place::Service,
    }
}

/// Whether `vm.nr_hugepages` is the pool of this size. The default size of another host is a guess.
fn is_set_by_sysctl(machine: &Machine, size: PageSize) -> bool {
    machine.default_size() == Some(size) && (machine.whole().is_some() || size < GIGANTIC)
}

/// The commands of a step, a line each. `None`: the step is not a command.
pub fn command(machine: &Machine, step: &Step) -> Option<String> {
    match step {
        Step::Compact => Some("echo 1 > /proc/sys/vm/compact_memory".to_owned()),
        Step::SetPool { size, pages } => Some(if is_set_by_sysctl(machine, *size) {
            format!("sysctl -w vm.nr_hugepages={pages}")
        } else {
            let directory = hugepages::directory(size.0);
            format!("echo {pages} > {directory}/nr_hugepages")
        }),
        Step::Demote { from, pages, .. } => {
            let directory = hugepages::directory(from.0);
            Some(format!("echo {pages} > {directory}/demote"))
        }
        Step::SetPoolAtBoot { edit, .. } => edited(edit),
        // Fails without closing an interactive shell. A script with `set -e` ends.
        Step::CheckPool { size, pages } => {
            let has = match is_set_by_sysctl(machine, *size) {
                true => "sysctl -n vm.nr_hugepages".to_owned(),
                false => format!("cat {}/nr_hugepages", hugepages::directory(size.0)),
            };
            let text = quoted(if_short(machine, *size, *pages))
                .unwrap_or_else(|| "'too few pages'".to_owned());
            Some(format!(
                "if ! [ \"$({has})\" -ge {pages} ]; then echo {text} >&2; false; fi"
            ))
        }
        Step::RaiseLimit(change) => {
            let file = quoted(change.cgroup.join(&change.file))?;
            Some(format!("echo {} > {file}", change.bytes.0))
        }
        Step::ChangeSetting(SettingChange {
            name,
            value,
            place: SettingPlace::AlterSystem,
            ..
        }) => Some(alter_system(name, value)),
        Step::Reload => Some("SELECT pg_reload_conf();".to_owned()),
        Step::SetThp { file, mode } => Some(format!(
            "echo {mode} > {}/{file}",
            transparent_hugepage::DIRECTORY
        )),
        Step::ChangeSetting(_)
        | Step::ChangeService(_)
        | Step::Stop
        | Step::Start
        | Step::Restart
        | Step::RestartOther { .. } => None,
    }
}

/// The other place in which a change has to be made so that it lasts. It follows the last of
/// several such steps.
pub(crate) fn to_keep(step: &Step, next: Option<&Step>) -> Option<&'static str> {
    match (step, next) {
        (Step::RaiseLimit(_), Some(Step::RaiseLimit(_)))
        | (Step::SetThp { .. }, Some(Step::SetThp { .. })) => None,
        // A cgroup ends with its unit or container, and its limits with it.
        (Step::RaiseLimit(_), _) => Some(
            "also raise the limit where it is set (unit or container runtime), or the next start resets it",
        ),
        (Step::SetThp { .. }, _) => {
            Some("also set it for the next boot (tmpfiles.d, tuned or the kernel command line)")
        }
        _ => None,
    }
}

/// The condition of a step that takes or releases idle pages of an unknown owner, because it is
/// unknown whether somebody needs them. A stop for such a step has the same condition. `machine` is
/// the state before all steps, `at` the state before this one, and `later` are the next steps.
pub(crate) fn condition<'s>(
    machine: &Machine,
    at: &Machine,
    step: &'s Step,
    later: impl IntoIterator<Item = &'s Step>,
) -> Option<String> {
    let grows = |step: &&Step| match step {
        Step::SetPool { size, pages } => {
            let pool = at.pool(*size);
            pool.is_some_and(|pool| *pages > Pages(pool.persistent()))
        }
        _ => false,
    };
    let step = match step {
        Step::Stop => later.into_iter().find(grows)?,
        step => step,
    };
    // Earlier steps can have used or released some of them.
    let idle = |size| {
        let pool = at.pool(size);
        let idle = pool.map_or(Pages(0), |pool| Pages(pool.free) - Pages(pool.reserved));
        demand::idle_of_unknown_owner(machine, size).min(idle)
    };
    let (size, taken) = match step {
        Step::SetPool { size, pages } => {
            let idle = idle(*size);
            let others = demand::without_unknown_owner(at, *size)?;
            (*size, idle.min(others + idle - *pages))
        }
        Step::Demote { from, pages, .. } => (*from, idle(*from).min(*pages)),
        _ => return None,
    };
    (taken > Pages(0)).then(|| {
        format!(
            "if no other program needs {} that {} idle now",
            huge_pages(taken, size),
            taken.verb("is", "are")
        )
    })
}

/// The command or the instruction of a step behind its [`condition`]. It must not be pasted as it
/// is.
pub(crate) fn conditional<'s>(
    machine: &Machine,
    at: &Machine,
    step: &'s Step,
    later: impl IntoIterator<Item = &'s Step>,
) -> Option<String> {
    let condition = condition(machine, at, step, later)?;
    let text = command(at, step).unwrap_or_else(|| instruction(at, step));
    Some(format!("{condition}: {text}"))
}

/// Why the boot line has another number than the pool: a start from the files needs more, or pages
/// that no visible server holds are also needed after a boot.
pub(crate) fn more_at_boot(machine: &Machine, step: &Step) -> Option<String> {
    let Step::SetPoolAtBoot { size, pages, .. } = step else {
        return None;
    };
    let next = machine.next_start();
    let held = demand::unexplained(machine, *size);
    let demands = Demands::at_boot(machine, *size, &next)?;
    if demands.total() != *pages {
        return None;
    }
    let is_same = self::demands(machine, *size, *pages).as_ref() == Some(&demands);
    let has_more = !is_same && demands.sum(|who| *who == Who::FromFiles) > Pages(0);
    let from_files = has_more.then(|| demands.to_string());
    let if_held = (held > Pages(0)).then(|| {
        format!(
            "{} if the {held} that no visible server holds (hugeinfo_holders) are needed after a boot, too",
            *pages + held
        )
    });
    let notes: Vec<_> = from_files.into_iter().chain(if_held).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The sum of the demands on a pool, where several programs need its pages. `None`: a step that
/// sets no pool, or another number.
pub(super) fn sum(machine: &Machine, step: &Step) -> Option<String> {
    let Step::SetPool { size, pages, .. } = step else {
        return None;
    };
    let demands = demands(machine, *size, *pages)?;
    (demands.all.len() > 1).then(|| demands.to_string())
}

/// The demands on a pool, if their sum is this number.
fn demands(machine: &Machine, size: PageSize, pages: Pages) -> Option<Demands> {
    let next = machine.next_start();
    let demands = Demands::of(machine, size, &next, When::AfterRestart);
    demands.filter(|demands| demands.total() == pages)
}

/// A step inside of a sentence.
pub(crate) fn in_sentence(machine: &Machine, step: &Step) -> String {
    let text = command(machine, step).unwrap_or_else(|| instruction(machine, step));
    match (step, place(machine, step)) {
        (Step::RaiseLimit(_), _) => {
            format!("{text} (also where the limit is set: unit or container runtime)")
        }
        (_, Place::Node) => format!("{text} (on the node, as root)"),
        _ => text,
    }
}

/// The instruction for a step that is not a command.
pub fn instruction(machine: &Machine, step: &Step) -> String {
    match step {
        Step::Stop => "stop PostgreSQL (ends all sessions)".to_owned(),
        Step::Start if needs_options(machine) => WITH_OPTIONS.to_owned(),
        Step::Start => "start PostgreSQL".to_owned(),
        Step::Restart => "restart PostgreSQL (ends all sessions)".to_owned(),
        Step::RestartOther { server, .. } => {
            format!("restart {server} (ends all of its sessions)")
        }
        Step::ChangeService(change) => service(machine, *change),
        Step::ChangeSetting(change) => {
            in_place(machine, &change.name, &change.value, &change.place)
        }
        Step::RaiseLimit(LimitChange {
            cgroup,
            file,
            bytes,
            ..
        }) => format!(
            "write {} into {} by hand: this name cannot be quoted in a shell command",
            bytes.0,
            escape::name(cgroup.join(file))
        ),
        Step::SetPoolAtBoot { edit, .. } => by_hand(edit),
        _ => String::new(),
    }
}

fn alter_system(name: &str, value: &str) -> String {
    format!("ALTER SYSTEM SET {name} = {};", setting_value(value))
}

/// The command or instruction that sets a value for the next start.
pub(crate) fn setting(machine: &Machine, name: &str, value: &str) -> String {
    match machine.setting_place(name, None) {
        SettingPlace::AlterSystem => alter_system(name, value),
        place => in_place(machine, name, value, &place),
    }
}

/// The instruction to change a setting in that place.
fn in_place(machine: &Machine, name: &str, value: &str, place: &SettingPlace) -> String {
    let line = format!("{name} = {}", setting_value(value));
    match place {
        SettingPlace::AlterSystem => line,
        SettingPlace::File(Some(file)) => format!("in {file}: {line}"),
        SettingPlace::File(None) => format!("in the configuration file: {line}"),
        SettingPlace::CommandLine => {
            let facts = machine.whole();
            let who = match facts.and_then(|facts| facts.is_container) {
                Some(true) => "see postmaster.opts",
                _ => "a systemd unit or Patroni can set it; see postmaster.opts",
            };
            format!(
                "set {line} on the command line of the server, which overrides its files ({who})"
            )
        }
    }
}

fn service(machine: &Machine, change: ServiceChange) -> String {
    let facts = machine.whole();
    let has_systemd = facts.and_then(|facts| facts.has_systemd) != Some(false);
    let children = format!(
        "PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj and PG_OOM_ADJUST_VALUE={} in the environment of the server",
        machine.oom_score_of_backends()
    );
    let what = match change {
        ServiceChange::ProtectPostmaster if has_systemd => format!(
            "set OOMScoreAdjust=-900 and OOMPolicy=continue in the systemd unit (if they are already set, find out why they have no effect), and {children}"
        ),
        ServiceChange::ProtectPostmaster => {
            format!("start PostgreSQL with oom_score_adj = -900, and {children}")
        }
        // A backend that can be killed must not be the end of the server.
        ServiceChange::ExposeBackends if machine.stops_after_kill() => {
            format!("set OOMPolicy=continue in the systemd unit, and {children}")
        }
        ServiceChange::ExposeBackends => format!("set {children}"),
        ServiceChange::ContinueAfterKill => {
            return "set OOMPolicy=continue in the systemd unit (systemctl edit, which applies it at once)"
                .to_owned();
        }
        ServiceChange::Interleave => {
            let nodes = match machine.is_bound_to_nodes() {
                true => numa::numbers(&numa::allowed_numbers(machine)).replace(' ', ""),
                false => "all".to_owned(),
            };
            format!("start PostgreSQL with numactl --interleave={nodes}")
        }
    };
    format!("{what}; takes effect at the next restart")
}

/// SQL in a remedy for the shell, and who runs it: psql if it certainly reaches this server, else a
/// comment. The shell of a node does not reach a container.
pub(super) fn psql(machine: &Machine, sql: &str) -> (Option<&'static str>, String) {
    let facts = machine.whole();
    let on_host = facts.filter(|facts| facts.is_container != Some(true));
    let command = || {
        let Connection { user, address } = &on_host?.connection;
        let (host, port) = address.as_ref()?;
        let host = quoted(host)?;
        let is_plain = !sql.contains(['"', '\\', '$', '`', '!']);
        let argument = match quoted(sql)? {
            _ if is_plain => format!("\"{sql}\""),
            quoted => quoted,
        };
        let psql = format!("psql -X -h {host} -p {port} -d postgres -c {argument}");
        Some(match user {
            // Processes of this user can take the open files of psql and read its environment
            // (pidfd_getfd, /proc/PID/environ), so it gets neither from root. With --pty, runuser
            // forwards its standard input, which would include the commands pasted below this one.
            Some(user) => (
                "as root:",
                format!(
                    "env -i PATH=\"$PATH\" runuser --pty -u {} -- {psql} </dev/null",
                    quoted(user)?
                ),
            ),
            None => ("as a superuser of PostgreSQL:", psql),
        })
    };
    match command() {
        Some((whose, command)) => (Some(whose), command),
        None => (
            None,
            format!("# in a superuser's session on this server: {sql}"),
        ),
    }
}

/// A value in SQL or a configuration file. SQL reads no octal numbers.
fn setting_value(value: &str) -> String {
    let value = value.trim();
    let is_number = value == "0"
        || value.starts_with(|first: char| matches!(first, '1'..='9'))
            && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "''"))
    }
}

/// The shell command of an edit of the boot configuration. `None`: a name cannot be quoted.
fn edited(edit: &Edit) -> Option<String> {
    match edit {
        Edit::Replace { file, old, new } => Some(format!(
            "sed -i {} {}",
            quoted(substitution(old, new))?,
            quoted(file)?
        )),
        // Appending keeps other lines, and PostgreSQL can read the file whatever the umask is.
        Edit::Append {
            file,
            line,
            makes_directory,
        } => {
            let directory = file.rsplit_once('/').filter(|_| *makes_directory);
            let mkdir = match directory {
                Some((directory, _)) => format!("mkdir -p {} && ", quoted(directory)?),
                None => String::new(),
            };
            Some(format!(
                "(umask 022 && {mkdir}echo {} >> {})",
                quoted(line)?,
                quoted(file)?
            ))
        }
    }
}

fn by_hand(edit: &Edit) -> String {
    let (Edit::Replace {
        file, new: line, ..
    }
    | Edit::Append { file, line, .. }) = edit;
    format!(
        "write \"{}\" into {} by hand: this name cannot be quoted in a shell command",
        escape::name(line),
        escape::name(file)
    )
}

/// Replaces a whole line by a whole line, as sed reads it. Running it again is a no-op.
fn substitution(old: &str, new: &str) -> String {
    // No delimiter has a meaning for sed, or for bash within quotes.
    const DELIMITERS: [char; 6] = ['/', ',', '#', '@', '%', ':'];
    let is_free = |c: &char| !old.contains(*c) && !new.contains(*c);
    let delimiter = DELIMITERS.into_iter().find(is_free).unwrap_or('/');
    let mut pattern = String::with_capacity(old.len());
    for c in old.chars() {
        if c == '\t' {
            pattern.push_str("[[:blank:]]");
            continue;
        }
        if r"\.*[^$".contains(c) || c == delimiter {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    let mut replacement = String::with_capacity(new.len());
    for c in new.chars() {
        if c == '\\' || c == '&' || c == delimiter {
            replacement.push('\\');
        }
        replacement.push(c);
    }
    format!("s{delimiter}^{pattern}${delimiter}{replacement}{delimiter}")
}

/// The reason of a step.
pub fn why(machine: &Machine, step: &Step) -> String {
    match step {
        Step::Compact => "free memory is too fragmented for these pages".to_owned(),
        Step::SetPool { size, pages, .. } => {
            let now = machine
                .pool(*size)
                .map_or(Pages(0), |pool| Pages(pool.persistent()));
            if *pages < now {
                let idle = now - *pages;
                format!(
                    "{} {} idle",
                    huge_pages(idle, *size),
                    idle.verb("is", "are")
                )
            } else {
                match demands(machine, *size, *pages) {
                    Some(demands) => format!("the pool has {now}; {demands}"),
                    None => format!("the pool has {now}"),
                }
            }
        }
        Step::Demote { from, into, pages } => format!(
            "{} {} idle, and the pool of {into} pages has to grow",
            huge_pages(*pages, *from),
            pages.verb("is", "are")
        ),
        Step::SetPoolAtBoot { size, pages, .. } => {
            let request = machine.next_boot().and_then(|boot| boot.pages(size.0));
            let is_lower = request.is_some_and(|request| Pages(request.pages) > *pages);
            format!(
                "the next boot would {} {}",
                if is_lower {
                    "set up more than"
                } else {
                    "not set up"
                },
                huge_pages(*pages, *size)
            )
        }
        Step::CheckPool { .. } => {
            "the kernel might allocate fewer pages than requested, and sysctl does not report it"
                .to_owned()
        }
        Step::RaiseLimit(LimitChange {
            counts: Counts::Faults,
            ..
        }) => "a process that uses more pages than the limit dies of SIGBUS".to_owned(),
        Step::RaiseLimit(_) => "the limit is too low for the segment".to_owned(),
        Step::ChangeSetting(change) => match (change.name.as_str(), change.value.as_str()) {
            ("huge_pages", "try") if machine.next_start().huge_pages == HugePages::On => {
                "the server would not start with huge_pages = on".to_owned()
            }
            ("huge_pages", _) => "the server does not ask for huge pages".to_owned(),
            ("shared_memory_type", "mmap") => "only mmap can use huge pages".to_owned(),
            ("huge_page_size", "0") => "the kernel does not have the size that is set".to_owned(),
            _ => "as planned".to_owned(),
        },
        Step::Reload => "the settings take effect when the server reads its files".to_owned(),
        Step::ChangeService(change) => match change {
            ServiceChange::ProtectPostmaster => "the OOM killer can kill the postmaster",
            ServiceChange::ExposeBackends => "the OOM killer has to prefer the backends",
            ServiceChange::ContinueAfterKill => "systemd stops the server after an OOM kill",
            ServiceChange::Interleave => "the segment is on few NUMA nodes",
        }
        .to_owned(),
        Step::Stop => "the pool needs memory that the running server uses".to_owned(),
        Step::Start | Step::Restart => "the server maps its segment when it starts".to_owned(),
        Step::RestartOther { size, pages, .. } => format!(
            "{} of the pool are for this server, and idle until it restarts",
            huge_pages(*pages, *size)
        ),
        Step::SetThp { .. } => "memory gets transparent huge pages without a request".to_owned(),
    }
}

/// Why the next step is not safe if the pool is short, and what to do then. `machine` is the state
/// right before the start.
fn if_short(machine: &Machine, size: PageSize, pages: Pages) -> String {
    let insists = machine.next_start().huge_pages == HugePages::On;
    if machine.server_state != ServerState::Running {
        let (back, mut ways) = set_back(machine);
        let insists = matches!(start::outcome(&back), StartOutcome::Fails(..));
        let with_try = Server {
            huge_pages: HugePages::Try,
            ..back.next_start()
        };
        // A server that ran on small pages is no worse off on them.
        let was_on_small_pages =
            machine.did_run() && machine.facts.state.backing() == Backing::SmallPages;
        let start =
            if !was_on_small_pages && start::misfit(&back.with_next_start(with_try)).is_some() {
                "do not start (the segment does not fit on small pages), and undo the changes"
            } else {
                if insists {
                    let place = place_in_words(machine, "huge_pages");
                    ways.push(format!("set huge_pages = try {place}"));
                }
                if needs_options(&back) {
                    ways.push(WITH_OPTIONS.to_owned());
                }
                "undo the changes before the start"
            };
        return format!("too few pages, {start}: {}", ways.join("; "));
    }
    let before = machine.facts.state.pool(size.0);
    let before = Pages(before.map_or(0, Pool::persistent));
    let why = if insists {
        " (huge_pages = on)"
    } else if start::misfit_if_pool_is_short(machine, size, pages - before).is_some() {
        " (the segment does not fit on small pages)"
    } else {
        ""
    };
    let boot = machine.next_boot().and_then(|boot| boot.pages(size.0));
    let at_boot = match boot.is_some_and(|request| request.pages >= pages.0) {
        true => "reboot",
        false => "set them at boot",
    };
    format!("too few pages, do not restart{why}: free memory and repeat, or {at_boot}")
}

const WITH_OPTIONS: &str = "start PostgreSQL with the options that its command line had";

/// Whether a start from the files alone would fail, and the server ran with options.
fn needs_options(machine: &Machine) -> bool {
    let from_files = machine.next_start_from_files();
    machine.did_run()
        && (machine.state.next.refused_alone.is_some()
            || from_files.is_some_and(|from_files| !start::succeeds(&from_files)))
}

/// Returns the machine with the values that were read, and texts that restore them while the server
/// is stopped: the pools and, if the server ran, the settings and boot lines that have changed.
fn set_back(machine: &Machine) -> (Machine, Vec<String>) {
    let before = &machine.facts.state;
    let mut pools: Vec<_> = before.pools.iter().flatten().collect();
    let now = |pool: &Pool| {
        let now = machine.pool(PageSize(pool.page_bytes));
        now.map_or(0, Pool::persistent)
    };
    // Pools that shrink come first, because the others need their memory.
    pools.sort_by_key(|pool| now(pool) < pool.persistent());
    let mut back = machine.at_next_start();
    back.state
        .next
        .from_files
        .clone_from(&before.next.from_files);
    let mut ways = Vec::new();
    for pool in pools.iter().filter(|pool| now(pool) != pool.persistent()) {
        let step = Step::SetPool {
            size: PageSize(pool.page_bytes),
            pages: Pages(pool.persistent()),
        };
        ways.extend(command(&back, &step));
        back = back.apply(&step).unwrap_or(back);
    }
    if !machine.did_run() {
        return (back, ways);
    }
    let next = &machine.state.next;
    // Settings that no step has changed stay pending, unless they prevent the start.
    let as_read = before.next_start();
    let pending = back.with_next_start(as_read.clone());
    if back.next_start() == *as_read && start::succeeds(&pending) {
        return (pending, ways);
    }
    for name in &next.pending {
        let place = place_in_words(machine, name);
        ways.push(match next.settings.get(name.as_str()) {
            Some(setting) => format!("set {name} = {} {place}", setting.value),
            None => format!("set {name} to its old value {place}"),
        });
    }
    if !next.pending.is_empty() {
        for pool in pools {
            let pages = |boot: Option<&NextBoot>| Some(boot?.pages(pool.page_bytes)?.pages);
            let was = pages(before.next_boot.as_ref().ok());
            let line = machine
                .next_boot()
                .and_then(|boot| boot.pages(pool.page_bytes));
            ways.extend(line.and_then(|line| match was {
                Some(was) => (was != line.pages).then(|| format!("set {} to {was}", line.place)),
                None => Some(format!("remove the line {}", line.place)),
            }));
        }
    }
    (back.with_next_start(before.server.clone()), ways)
}

/// The place in which a setting can be changed.
fn place_in_words(machine: &Machine, name: &str) -> String {
    match machine.setting_place(name, None) {
        SettingPlace::AlterSystem => "in postgresql.auto.conf".to_owned(),
        SettingPlace::File(Some(file)) => format!("in {file}"),
        SettingPlace::File(None) => "in the configuration file".to_owned(),
        SettingPlace::CommandLine => "on the command line of the server".to_owned(),
    }
}

/// A remedy's steps as data: a list of objects with `action`, `where` and the command.
pub fn data(machine: &Machine, steps: &[Step]) -> Value {
    let mut at = machine.clone();
    let mut all = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let mut object = json!({
            "action": action(step),
            "where": place(&at, step).as_str(),
            "is_disruptive": step.is_disruptive(),
        });
        let conditional = conditional(machine, &at, step, &steps[index + 1..]);
        match (conditional, command(&at, step)) {
            (Some(conditional), _) => object["instruction"] = json!(conditional),
            (None, Some(command)) => object["command"] = json!(command),
            (None, None) => object["instruction"] = json!(instruction(&at, step)),
        }
        match step {
            Step::SetPool { size, pages, .. }
            | Step::SetPoolAtBoot { size, pages, .. }
            | Step::CheckPool { size, pages, .. } => {
                object["page_size_bytes"] = json!(size.0);
                object["pages"] = json!(pages.0);
            }
            Step::RaiseLimit(change) => {
                object["cgroup"] = json!(escape::name(&change.cgroup));
                object["bytes"] = json!(change.bytes.0);
            }
            Step::ChangeSetting(change) => {
                object["setting"] = json!(change.name);
                object["value"] = json!(change.value);
                object["pending_restart"] = json!(change.pending == Pending::Restart);
            }
            _ => {}
        }
        all.push(object);
        at = at.apply(step).unwrap_or(at);
    }
    Value::Array(all)
}

fn action(step: &Step) -> &'static str {
    match step {
        Step::Compact => "compact_memory",
        Step::SetPool { .. } => "set_pool",
        Step::Demote { .. } => "demote",
        Step::SetPoolAtBoot { .. } => "set_pool_at_boot",
        Step::CheckPool { .. } => "check_pool",
        Step::RaiseLimit(_) => "raise_limit",
        Step::ChangeSetting(_) => "change_setting",
        Step::Reload => "reload",
        Step::ChangeService(_) => "change_service",
        Step::Stop => "stop",
        Step::Start => "start",
        Step::Restart => "restart",
        Step::RestartOther { .. } => "restart_other_server",
        Step::SetThp { .. } => "set_thp",
    }
}
