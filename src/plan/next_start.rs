//! What the server would use if it started now.

use std::{
    ffi::{CStr, OsString},
    path::Path,
    time::Instant,
};

use hugeinfo::server::{facts::Server, recovery::RecoverySettings};

use super::{
    held::{HELD, Tidy, tidy},
    on_disk::{OnDisk, Reader},
    output, program,
    scratch::Scratch,
    settings::{self, Planned},
};
use crate::{
    error::Error,
    postgres::{
        exit, places,
        recovery_settings::recovery_settings,
        server::server_with,
        settings::{LIBRARIES, SIZING, is_from_command_line, setting, waits_for_restart},
        standing::waits,
    },
};

/// What the next start will use.
pub(crate) struct NextStart {
    pub(crate) server: Server,
    /// Settings that limit what the start recovers. They can be too low.
    pub(crate) recovery_settings: RecoverySettings,
    /// The files that it was computed from, without planned settings.
    pub(crate) on_disk: OnDisk,
}

impl NextStart {
    /// The settings that the files change at the next start.
    pub(crate) fn waiting_settings(&self) -> Vec<String> {
        let waiting = SIZING
            .into_iter()
            .filter(|name| waits(name, self.on_disk.get(name).map(|value| value.as_c_str())));
        let libraries = [LIBRARIES]
            .into_iter()
            .filter(|name| waits_for_restart(name));
        waiting
            .chain(libraries)
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

/// Errors: PostgreSQL's own if it would not start.
pub(crate) fn next_start(planned: &Planned) -> Result<NextStart, Error> {
    exit::call_at_exit(tidy);
    let _tidy = Tidy;
    let deadline = Instant::now() + output::TIME_LIMIT;
    // Both children run at once. PostgreSQL's own error about the files comes first.
    let reader = Reader::start()?;
    let shared_memory_bytes = shared_memory_bytes(planned, deadline)?;
    let on_disk = reader.finish(deadline)?;
    let server = server_with(in_effect(planned, &on_disk), shared_memory_bytes)?;
    let recovery_settings = recovery_settings(in_effect(planned, &on_disk))?;
    Ok(NextStart {
        server,
        recovery_settings,
        on_disk,
    })
}

/// The same if the files have just been read.
pub(super) fn server_at_next_start(planned: &Planned, on_disk: &OnDisk) -> Result<Server, Error> {
    exit::call_at_exit(tidy);
    let _tidy = Tidy;
    let deadline = Instant::now() + output::TIME_LIMIT;
    let shared_memory_bytes = shared_memory_bytes(planned, deadline)?;
    server_with(in_effect(planned, on_disk), shared_memory_bytes)
}

/// The value that a start uses: planned settings override the command line, which overrides the
/// files.
fn in_effect(planned: &Planned, on_disk: &OnDisk) -> impl Fn(&'static CStr) -> String {
    move |name| {
        let text = |value: &CStr| value.to_string_lossy().into_owned();
        if let Some(value) = planned.value(name) {
            text(value)
        } else if is_from_command_line(name) {
            setting(name)
        } else if let Some(value) = on_disk.get(name) {
            text(value)
        } else {
            settings::default(name)
        }
    }
}

/// Size of the main segment: exact up to 8 TiB, rounded up to whole MB above.
fn shared_memory_bytes(planned: &Planned, deadline: Instant) -> Result<u64, Error> {
    let command_line = program::running_command_line()?;
    let scratch = Scratch::create()?;
    let path = scratch.path().to_owned();
    let mut arguments = command_line;
    arguments.extend(fixed_arguments(&path));
    HELD.with(|held| held.borrow_mut().scratch = Some(scratch));
    arguments.extend(planned.arguments());

    // On pages of 4 kB. The size is a multiple of 8 kB (CalculateShmemSize). The figure is one page
    // too large, as in PostgreSQL 15, or exact: rounded down to an even number, it is right in both
    // cases.
    let page = ["-c".into(), "huge_page_size=4kB".into()];
    let pages = program::ask(
        arguments.iter().chain(&page),
        "shared_memory_size_in_huge_pages",
        &path,
        deadline,
    )?;
    let bytes = match pages {
        Ok(pages) => Ok((pages & !1) << 12),
        // 2^31 of them are 8 TiB, the most that the setting can show.
        Err(refusal) if refusal.message.contains("huge_page") => {
            let megabytes = program::ask(arguments.iter(), "shared_memory_size", &path, deadline)?;
            megabytes.map(|megabytes| megabytes << 20)
        }
        Err(refusal) => Err(refusal),
    };
    bytes.map_err(|refusal| planned.refused(refusal, &path))
}

/// Options that override the server's configuration, which would lead to its own directory or hide
/// an error.
fn fixed_arguments(scratch: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-D".into(), scratch.into()];
    let mut set = |name: &str, value: OsString| {
        let mut argument = OsString::from(name);
        argument.push("=");
        argument.push(value);
        arguments.extend(["-c".into(), argument]);
    };
    set("config_file", places::config_file().into());
    set("data_directory", scratch.into());
    // Names of files may be relative to the data directory. It takes no shared memory.
    set("ssl", "off".into());
    // The program waits for the disk when it writes postmaster.pid, which nobody needs after a
    // crash. On a busy disk that took longer than the time limit.
    set("fsync", "off".into());
    set("log_destination", "stderr".into());
    set("log_line_prefix", OsString::new());
    set("log_min_messages", "error".into());
    set("log_error_verbosity", "verbose".into());
    set("lc_messages", "C".into());
    arguments
}
