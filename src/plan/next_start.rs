//! The settings that the server would use if it started now.

use std::{
    ffi::{CStr, CString, OsString},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    time::Instant,
};

use host::{
    server::{
        largest_buffers::{Fit, TooFewPages, fit},
        patroni,
        scratch_data::FIXED_SETTINGS,
        state::{Server, bytes_of_small_pages},
    },
    units::{PageSize, Pages},
};

use super::{
    held::{HELD, Tidy, tidy},
    on_disk::{OnDisk, Reader},
    output,
    program::{self, Run},
    scratch::Scratch,
    settings::{self, Planned},
};
use crate::{
    error::Error,
    postgres::{
        exit,
        interrupts::check_for_interrupts,
        places, recovery,
        server::server_with,
        settings::{
            BLOCK_BYTES, LIBRARIES, SIZING, is_from_command_line, setting, waits_for_restart,
        },
        standing::waits,
    },
};

/// The next start.
pub(crate) struct NextStart {
    pub(crate) server: Server,
    /// The files that were read, without planned settings.
    pub(crate) on_disk: OnDisk,
    command_line: CommandLine,
}

impl NextStart {
    /// Names of settings in the files that are pending a restart.
    pub(crate) fn pending_settings(&self) -> Vec<String> {
        let command_line = &self.command_line;
        let value = |name: &CStr| {
            let in_file = self.on_disk.get(name);
            command_line.raised(name).or(in_file.map(CString::as_c_str))
        };
        let waiting = SIZING
            .into_iter()
            .filter(|name| waits(name, value(name), command_line.is_kept()));
        let libraries = [LIBRARIES]
            .into_iter()
            .filter(|name| waits_for_restart(name));
        waiting
            .chain(libraries)
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

/// Errors: PostgreSQL's own error if it would not start.
pub(crate) fn next_start(planned: &Planned) -> Result<NextStart, Error> {
    Ok(next_start_while(planned, || Ok(()))?.0)
}

/// Like [`next_start`], and calls `meanwhile` while the children run.
///
/// Errors: PostgreSQL's own error comes before that of `meanwhile`.
pub(crate) fn next_start_while<T>(
    planned: &Planned,
    meanwhile: impl FnOnce() -> Result<T, Error>,
) -> Result<(NextStart, T), Error> {
    exit::call_at_exit(tidy);
    let _tidy = Tidy;
    let (_, next, result) = compute(planned, meanwhile)?;
    Ok((next, result))
}

/// Computes the largest `shared_buffers` with which the next start maps at most that many huge
/// pages. `page_size` chooses the size for its settings. Each run of the program has its own time
/// limit.
///
/// Errors: those of [`next_start`] and of `page_size`.
pub(crate) fn largest_buffers(
    planned: &Planned,
    pages: Pages,
    page_size: impl FnOnce(Server) -> Result<PageSize, Error>,
) -> Result<(PageSize, Result<Fit, TooFewPages>), Error> {
    exit::call_at_exit(tidy);
    let _tidy = Tidy;
    let (program, next, ()) = compute(planned, || Ok(()))?;
    let size = page_size(next.server.clone())?;
    let found = fit(&next.server, pages, size, BLOCK_BYTES, |blocks| {
        check_for_interrupts();
        let setting = format!("shared_buffers={}kB", blocks * BLOCK_BYTES / 1024);
        let deadline = Instant::now() + output::TIME_LIMIT;
        program.segment_bytes(&["-c".into(), setting.into()], deadline)
    })?;
    Ok((size, found))
}

fn compute<T>(
    planned: &Planned,
    meanwhile: impl FnOnce() -> Result<T, Error>,
) -> Result<(Program<'_>, NextStart, T), Error> {
    let deadline = Instant::now() + output::TIME_LIMIT;
    // PostgreSQL's own error about the files comes first.
    let reader = Reader::start()?;
    // With Patroni, the command line depends on the files. Otherwise, both children run at once.
    let (command_line, read) = match is_of_patroni() {
        false => (CommandLine::Kept, Err(reader)),
        true => {
            let on_disk = reader.finish(deadline);
            let command_line = match &on_disk {
                Ok(on_disk) => CommandLine::of_patroni(on_disk)?,
                Err(_) => CommandLine::OfPatroni(Vec::new()),
            };
            (command_line, Ok(on_disk))
        }
    };
    let program = Program::prepare(planned, &command_line)?;
    let run = program.start(&[])?;
    let result = meanwhile();
    let shared_memory_bytes = program.finish(run, &[], deadline)?;
    let on_disk = read.unwrap_or_else(|reader| reader.finish(deadline))?;
    let value = in_effect(planned, &on_disk, &command_line);
    let server = server_with(value, shared_memory_bytes)?;
    let next = NextStart {
        server,
        on_disk,
        command_line,
    };
    Ok((program, next, result?))
}

fn is_of_patroni() -> bool {
    patroni::wrote(&places::config_file())
}

/// The command line of the next start.
enum CommandLine {
    /// That of the running server.
    Kept,
    /// A new one of Patroni, which has no other settings than the file, except for these.
    OfPatroni(Vec<(&'static CStr, CString)>),
}

impl CommandLine {
    fn of_patroni(on_disk: &OnDisk) -> Result<Self, Error> {
        let Some(primary) = recovery::of_primary()? else {
            return Ok(Self::OfPatroni(Vec::new()));
        };
        let next = recovery::settings(|name| match on_disk.get(name) {
            Some(value) => value.to_string_lossy().into_owned(),
            None => settings::default(name),
        })?;
        let raised = patroni::raised(&next, &primary).into_iter();
        let raised = raised.filter_map(|(name, value)| {
            let mut known = SIZING.into_iter();
            let name = known.find(|known| known.to_bytes() == name.as_bytes())?;
            Some((name, CString::new(value.to_string()).ok()?))
        });
        Ok(Self::OfPatroni(raised.collect()))
    }

    fn is_kept(&self) -> bool {
        matches!(self, Self::Kept)
    }

    fn raised(&self, name: &CStr) -> Option<&CStr> {
        let Self::OfPatroni(raised) = self else {
            return None;
        };
        let (_, value) = raised.iter().find(|(raised, _)| *raised == name)?;
        Some(value)
    }

    /// The value that overrides the files.
    fn value(&self, name: &CStr) -> Option<String> {
        match self {
            Self::Kept => is_from_command_line(name).then(|| setting(name)),
            Self::OfPatroni(_) => {
                let value = self.raised(name)?;
                Some(value.to_string_lossy().into_owned())
            }
        }
    }

    fn arguments(&self) -> Result<Vec<OsString>, Error> {
        let Self::OfPatroni(raised) = self else {
            return program::running_command_line();
        };
        let arguments = raised.iter().flat_map(|(name, value)| {
            let argument = [name.to_bytes(), b"=", value.to_bytes()].concat();
            ["-c".into(), OsString::from_vec(argument)]
        });
        Ok(arguments.collect())
    }
}

/// Like [`next_start`], if the files have just been read.
pub(super) fn server_at_next_start(planned: &Planned, on_disk: &OnDisk) -> Result<Server, Error> {
    exit::call_at_exit(tidy);
    let _tidy = Tidy;
    let deadline = Instant::now() + output::TIME_LIMIT;
    let command_line = match is_of_patroni() {
        false => CommandLine::Kept,
        true => CommandLine::of_patroni(on_disk)?,
    };
    let program = Program::prepare(planned, &command_line)?;
    let shared_memory_bytes = program.segment_bytes(&[], deadline)?;
    server_with(
        in_effect(planned, on_disk, &command_line),
        shared_memory_bytes,
    )
}

/// The value at the next start: planned settings override the command line, which overrides the
/// files.
fn in_effect(
    planned: &Planned,
    on_disk: &OnDisk,
    command_line: &CommandLine,
) -> impl Fn(&'static CStr) -> String {
    move |name| {
        let text = |value: &CStr| value.to_string_lossy().into_owned();
        if let Some(value) = planned.value(name) {
            text(value)
        } else if let Some(value) = command_line.value(name) {
            value
        } else if let Some(value) = on_disk.get(name) {
            text(value)
        } else {
            settings::default(name)
        }
    }
}

/// PostgreSQL's program with the planned settings, in a scratch directory.
struct Program<'a> {
    planned: &'a Planned,
    arguments: Vec<OsString>,
    scratch: PathBuf,
}

impl<'a> Program<'a> {
    fn prepare(planned: &'a Planned, command_line: &CommandLine) -> Result<Self, Error> {
        let command_line = command_line.arguments()?;
        let scratch = Scratch::create()?;
        let path = scratch.path().to_owned();
        let mut arguments = command_line;
        arguments.extend(fixed_arguments(&path));
        HELD.with(|held| held.borrow_mut().scratch = Some(scratch));
        arguments.extend(planned.arguments());
        Ok(Self {
            planned,
            arguments,
            scratch: path,
        })
    }

    /// The size of the main segment, with these arguments in addition: exact up to 8 TiB, rounded
    /// up to whole MB above.
    fn segment_bytes(&self, more: &[OsString], deadline: Instant) -> Result<u64, Error> {
        self.finish(self.start(more)?, more, deadline)
    }

    /// Starts the run that computes the size.
    fn start(&self, more: &[OsString]) -> Result<Run, Error> {
        let page = ["-c".into(), "huge_page_size=4kB".into()];
        let arguments = self.arguments.iter().chain(more).chain(&page);
        Run::start(arguments, "shared_memory_size_in_huge_pages")
    }

    fn finish(&self, run: Run, more: &[OsString], deadline: Instant) -> Result<u64, Error> {
        let path = &self.scratch;
        let bytes = match run.value(path, deadline)? {
            Ok(pages) => Ok(bytes_of_small_pages(pages)),
            // 2^31 pages are 8 TiB, the maximum of the setting.
            Err(refusal) if refusal.message.contains("huge_page") => {
                let arguments = self.arguments.iter().chain(more);
                let run = Run::start(arguments, "shared_memory_size")?;
                run.value(path, deadline)?.map(|megabytes| megabytes << 20)
            }
            Err(refusal) => Err(refusal),
        };
        bytes.map_err(|refusal| self.planned.refused(refusal, path))
    }
}

fn fixed_arguments(scratch: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-D".into(), scratch.into()];
    let mut set = |name: &str, value: &Path| {
        let mut argument = OsString::from(name);
        argument.push(value);
        arguments.extend(["-c".into(), argument]);
    };
    set("config_file=", &places::config_file());
    set("data_directory=", scratch);
    let fixed = FIXED_SETTINGS.iter();
    arguments.extend(fixed.flat_map(|setting| ["-c".into(), OsString::from(setting)]));
    arguments
}
