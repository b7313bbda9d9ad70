//! What the server would use if it started now.

use std::{
    collections::HashMap,
    ffi::{CStr, OsString},
    path::Path,
    time::Instant,
};

use hugeinfo::server::{facts::Server, restored::Room};

use super::{
    held::{HELD, Tidy, tidy},
    on_disk, output, program,
    scratch::Scratch,
    settings::{self, Planned},
};
use crate::{
    error::Error,
    postgres::{
        exit, places,
        restored::room,
        server::server_with,
        settings::{is_from_command_line, setting},
    },
};

/// What the next start will use.
pub(crate) struct NextStart {
    pub(crate) server: Server,
    /// For what it brings back. Nobody has looked whether that suffices.
    pub(crate) room: Room,
}

/// Errors: PostgreSQL's own where it would not start.
pub(crate) fn next_start(planned: &Planned) -> Result<NextStart, Error> {
    exit::call_at_exit(tidy);
    let _tidy = Tidy;
    let deadline = Instant::now() + output::TIME_LIMIT;
    // Those that go before the files.
    let mut values = HashMap::new();
    for name in settings::DECIDING {
        if let Some(value) = planned.value(name) {
            values.insert(name, value.to_string_lossy().into_owned());
        } else if is_from_command_line(name) {
            values.insert(name, setting(name));
        }
    }
    // Both children at once. What PostgreSQL itself says of the files goes first.
    let reader = if values.len() < settings::DECIDING.len() {
        Some(on_disk::Reader::start(settings::DECIDING.to_vec())?)
    } else {
        None
    };
    let shared_memory_bytes = shared_memory_bytes(planned, deadline)?;
    if let Some(reader) = reader {
        for (name, value) in reader.finish(deadline)? {
            values.entry(name).or_insert(value);
        }
    }
    let in_effect = |name: &'static CStr| {
        let value = values.get(name).cloned();
        value.unwrap_or_else(|| settings::default(name))
    };
    Ok(NextStart {
        server: server_with(in_effect, shared_memory_bytes)?,
        room: room(in_effect)?,
    })
}

/// Size of the main segment, exact up to 8 TiB and rounded up to whole MB beyond.
fn shared_memory_bytes(planned: &Planned, deadline: Instant) -> Result<u64, Error> {
    let command_line = program::running_command_line()?;
    let scratch = Scratch::create()?;
    let path = scratch.path().to_owned();
    let mut arguments = command_line;
    arguments.extend(fixed_arguments(&path));
    HELD.with(|held| held.borrow_mut().scratch = Some(scratch));
    arguments.extend(planned.arguments());

    // On pages of 4 kB. The size is a multiple of 8 kB (CalculateShmemSize), and the figure one
    // page too large, as of PostgreSQL 15, or exact: the next even number below is right in both.
    let page = ["-c".into(), "huge_page_size=4kB".into()];
    let pages = program::ask(
        arguments.iter().chain(&page),
        "shared_memory_size_in_huge_pages",
        &path,
        deadline,
    )?;
    let bytes = match pages {
        Ok(pages) => Ok((pages & !1) << 12),
        // 2^31 of them are 8 TiB, the most that the setting can tell.
        Err(refusal) if refusal.message.contains("huge_page") => {
            let megabytes = program::ask(arguments.iter(), "shared_memory_size", &path, deadline)?;
            megabytes.map(|megabytes| megabytes << 20)
        }
        Err(refusal) => Err(refusal),
    };
    bytes.map_err(|refusal| planned.refused(refusal, &path))
}

/// What goes before all that the server is configured with: it would lead to its own directory, or
/// hide an error.
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
    // Its files may be relative to the data directory. It takes no shared memory.
    set("ssl", "off".into());
    set("log_destination", "stderr".into());
    set("log_line_prefix", OsString::new());
    set("log_min_messages", "error".into());
    set("log_error_verbosity", "verbose".into());
    set("lc_messages", "C".into());
    arguments
}
