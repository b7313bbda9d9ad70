//! One run of PostgreSQL's program.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    time::Instant,
};

use host::{
    escape,
    linux::{
        process::{Process, stat},
        root::Root,
    },
    server::failed_start::FailedStart,
};

use pgrx::PgSqlErrorCode;

use super::output::{Place, Running};
use crate::{
    error::Error,
    postgres::{
        child::{End, NOT_RUN, Program},
        places,
        server::subject,
    },
};

/// The arguments of the postmaster, without its name.
///
/// Read from the kernel, because an argument with quotes is ambiguous in `postmaster.opts`.
pub(crate) fn running_command_line() -> Result<Vec<OsString>, Error> {
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
    let mut arguments: Vec<OsString> = arguments
        .into_iter()
        .skip(1)
        .map(OsString::from_vec)
        .collect();
    // After it, no option can be added.
    arguments.pop_if(|last| last == "--");
    Ok(arguments)
}

/// A run that prints the value of a setting that PostgreSQL computes.
pub(crate) struct Run {
    path: PathBuf,
    running: Running,
}

impl Run {
    pub(crate) fn start<'a>(
        arguments: impl Iterator<Item = &'a OsString>,
        setting: &str,
    ) -> Result<Self, Error> {
        let path = places::program();
        let failed = |error: io::Error| Error::file("run", &path, error);
        // The first three change messages before the settings are read. The last one would make
        // the service manager take the program for the server.
        const LEFT_OUT: [&str; 4] = ["LANGUAGE", "LC_ALL", "LC_MESSAGES", "NOTIFY_SOCKET"];
        let environment = std::env::vars_os()
            .filter(|(name, _)| !LEFT_OUT.iter().any(|left_out| name == left_out))
            .chain([("LC_MESSAGES".into(), "C".into())]);
        let question = [OsString::from("-C"), setting.into()];
        let arguments = arguments.cloned().chain(question);
        let program = Program::new(path.clone(), arguments, environment).map_err(failed)?;
        let started = program.start().map_err(failed)?;
        let running = Running::new(started, Place::Program).map_err(|e| e.of(&path))?;
        Ok(Self { path, running })
    }

    /// The value, or why PostgreSQL would not start with the data directory `scratch`.
    pub(crate) fn value(
        self,
        scratch: &Path,
        deadline: Instant,
    ) -> Result<Result<u64, FailedStart>, Error> {
        let Self { path, running } = self;
        let output = running.wait(deadline).map_err(|e| e.of(&path))?;

        if let (End::Exited(NOT_RUN), Ok(errno)) = (output.end, output.err.as_slice().try_into()) {
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
            return Err(Error::file("run", &path, error));
        }
        // A preloaded library can write anything. The last line is from PostgreSQL.
        let readable = |bytes| escape::lines(OsStr::from_bytes(bytes));
        let text = readable(&output.out);
        if let (Some(Ok(value)), End::Exited(0)) = (text.lines().last().map(str::parse), output.end)
        {
            return Ok(Ok(value));
        }
        Ok(Err(FailedStart::parse(
            &readable(&output.err),
            &path.file_name().map(escape::name).unwrap_or_default(),
            &output.end.to_string(),
            matches!(output.end, End::Exited(1 | 2)),
            &escape::name(scratch),
        )))
    }
}
