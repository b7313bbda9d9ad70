//! The settings that the server would use if it started now.

use std::{
    ffi::{CStr, CString, OsString},
    os::unix::ffi::OsStringExt,
};

use host::{
    linux::{
        process::{Process, stat},
        root::Root,
    },
    next_start::{
        Computation, Origin, SIZING,
        largest_buffers::{Fit, TooFewPages},
    },
    server::state::Server,
    units::{Bytes, PageSize, Pages},
};
use pgrx::PgSqlErrorCode;

use super::{
    children::{Children, Cleanup},
    on_disk::{OnDisk, Reader},
    settings::{self, Planned},
};
use crate::{
    error::Error,
    postgres::{
        places,
        planned_value::waits,
        server::{server_with, subject},
        settings::{BLOCK_BYTES, LIBRARIES, is_from_command_line, setting, waits_for_restart},
    },
};

pub(crate) struct NextStart {
    pub(crate) server: Server,
    /// The files that were read, without planned settings.
    pub(crate) on_disk: OnDisk,
    keeps_command_line: bool,
    /// Settings that Patroni raises.
    raised: Vec<(&'static str, u64)>,
}

impl NextStart {
    /// Names of settings in the files that are pending a restart.
    pub(crate) fn pending_settings(&self) -> Vec<String> {
        let waits = |name: &&CStr| {
            let mut raised = self.raised.iter();
            let raised = raised.find(|(raised, _)| raised.as_bytes() == name.to_bytes());
            let raised = raised.and_then(|(_, least)| CString::new(least.to_string()).ok());
            let value = raised.as_ref().or(self.on_disk.get(name));
            waits(name, value.map(CString::as_c_str), self.keeps_command_line)
        };
        let libraries = [LIBRARIES]
            .into_iter()
            .filter(|name| waits_for_restart(name));
        SIZING
            .into_iter()
            .filter(waits)
            .chain(libraries)
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

/// Whether the command line sets one of the settings that decide the size of the segment.
pub(crate) fn has_options() -> bool {
    SIZING.into_iter().any(is_from_command_line)
}

/// The settings of a start from the files alone. `None`: that start would be the same. Errors:
/// PostgreSQL's own error if it would not start.
pub(crate) fn from_files(planned: &Planned, next: &NextStart) -> Option<Result<Server, Error>> {
    if !next.keeps_command_line || !has_options() {
        return None;
    }
    let _cleanup = Cleanup::at_end();
    let start = server_of(planned, &next.on_disk, None);
    Some(start).filter(|start| start.as_ref().ok() != Some(&next.server))
}

/// Describes the settings on the command line, and a start from the files alone. `None`: that start
/// would be the same.
pub(crate) fn on_command_line(planned: &Planned, next: &NextStart) -> Option<String> {
    let names = SIZING.into_iter().filter(|name| is_from_command_line(name));
    let names: Vec<_> = names.map(CStr::to_string_lossy).collect();
    let start = match from_files(planned, next)? {
        Ok(start) => format!(
            "would use huge_pages = {} and {} of shared memory",
            start.huge_pages.as_str(),
            Bytes(start.shared_memory_bytes)
        ),
        // Not every role can see why.
        Err(_) => "would fail".to_owned(),
    };
    Some(format!(
        "the command line of the server sets {}; a start from the files alone {start}",
        names.join(", ")
    ))
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
    let _cleanup = Cleanup::at_end();
    let computed = compute(planned, meanwhile);
    let (_, next, result) = computed.map_err(|error| planned.named_in(error))?;
    Ok((next, result?))
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
    let _cleanup = Cleanup::at_end();
    let find = || {
        let (computation, next, ()) = compute(planned, || ())?;
        let size = page_size(next.server.clone())?;
        let found = computation.largest_buffers(&next.server, pages, size, BLOCK_BYTES)?;
        Ok((size, found))
    };
    find().map_err(|error| planned.named_in(error))
}

fn compute<T>(
    planned: &Planned,
    meanwhile: impl FnOnce() -> T,
) -> Result<(Computation<Children>, NextStart, T), Error> {
    // Both children run at once.
    let reader = Reader::start()?;
    let computation = prepare(planned, Some(command_line()?))?;
    let segment = computation.start_segment(&[])?;
    let result = meanwhile();
    // PostgreSQL's own error about the files comes first.
    let shared_memory_bytes = computation.finish_segment(segment, &[])?;
    let on_disk = reader.finish()?;
    let value = in_effect(planned, &on_disk, computation.keeps_command_line);
    let server = server_with(value, shared_memory_bytes)?;
    let next = NextStart {
        server,
        on_disk,
        keeps_command_line: computation.keeps_command_line,
        raised: computation.raised.clone(),
    };
    Ok((computation, next, result))
}

/// Like [`next_start`], if the files have just been read.
pub(super) fn server_at_next_start(planned: &Planned, on_disk: &OnDisk) -> Result<Server, Error> {
    let _cleanup = Cleanup::at_end();
    let server = server_of(planned, on_disk, Some(command_line()?));
    server.map_err(|error| planned.named_in(error))
}

fn server_of(
    planned: &Planned,
    on_disk: &OnDisk,
    command_line: Option<Vec<OsString>>,
) -> Result<Server, Error> {
    let computation = prepare(planned, command_line)?;
    let bytes = computation.finish_segment(computation.start_segment(&[])?, &[])?;
    let value = in_effect(planned, on_disk, computation.keeps_command_line);
    server_with(value, bytes)
}

/// `command_line`: `None` for a start from the files alone.
fn prepare(
    planned: &Planned,
    command_line: Option<Vec<OsString>>,
) -> Result<Computation<Children>, Error> {
    let origin = Origin {
        program: &places::program(),
        data: &places::data_directory(),
        config_file: &places::config_file(),
        command_line,
    };
    Computation::prepare(Children, origin, planned.assignments())
}

/// The value at the next start: planned settings override the command line, which overrides the
/// files.
fn in_effect(
    planned: &Planned,
    on_disk: &OnDisk,
    keeps_command_line: bool,
) -> impl Fn(&'static CStr) -> String {
    move |name| {
        let text = |value: &CStr| value.to_string_lossy().into_owned();
        if let Some(value) = planned.value(name) {
            text(value)
        } else if keeps_command_line && is_from_command_line(name) {
            setting(name)
        } else if let Some(value) = on_disk.get(name) {
            text(value)
        } else {
            settings::default(name)
        }
    }
}

/// The arguments of the postmaster, without its name.
///
/// Read from the kernel, because an argument with quotes is ambiguous in `postmaster.opts`.
fn command_line() -> Result<Vec<OsString>, Error> {
    let root = Root::system();
    let mut buffer = Vec::new();
    let postmaster = rustix::process::getppid().map(|pid| pid.as_raw_pid());
    if subject().postmaster.map(u32::cast_signed) != postmaster {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot plan without a postmaster, because a plan uses its command line",
        )
        .hint("Start the server normally, not in single-user mode."));
    }
    // The PID in /proc, which can belong to another PID namespace.
    let this = Process::this(&root)?;
    let parent = stat::read(&this, &mut buffer)?.parent;
    let arguments = Process::open(&root, parent)?.arguments(&mut buffer)?;
    Ok(arguments
        .into_iter()
        .skip(1)
        .map(OsString::from_vec)
        .collect())
}
