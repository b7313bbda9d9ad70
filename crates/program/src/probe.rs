//! `hugeinfo preflight --probe`: maps and touches the huge pages of a start, in a child.

use std::{
    os::unix::process::{CommandExt, ExitStatusExt},
    time::Duration,
};

use advice::check::Status;
use clap::Args;
use host::{
    server::state::HugePages,
    units::{Bytes, PageSize, huge_pages},
};
use memmap2::MmapOptions;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::{Done, command, error::Error};

/// A terabyte on 2 MB pages takes a few minutes.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// The verb of the child.
pub(crate) const CHILD: &str = "internal-touch";

/// The options of the child.
#[derive(Args)]
pub(crate) struct Options {
    #[arg(long)]
    bytes: u64,
    #[arg(long)]
    page_bytes: u64,
}

pub(crate) enum Outcome {
    All,
    /// It refused the mapping, with this error.
    Refused(String),
    /// It killed the child with this signal while it touched the pages.
    Killed(i32),
}

/// Lets a child map that many bytes and touch each page. Needs the pages for that time.
pub(crate) fn probe(bytes: u64, size: PageSize) -> Result<Outcome, Error> {
    let mut command = command::this(CHILD);
    command.args(["--bytes", &bytes.to_string()]);
    command.args(["--page-bytes", &size.0.to_string()]);
    command.process_group(0);
    let output = command::run(command, TIME_LIMIT)?;
    Ok(match output.status.signal() {
        Some(signal) => Outcome::Killed(signal),
        None if output.status.success() => Outcome::All,
        None => Outcome::Refused(output.err.trim().replace("hugeinfo: ", "")),
    })
}

impl Outcome {
    /// The status of a start. If the mapping is refused and huge pages are required, it fails.
    pub(crate) fn status(&self, huge_pages: HugePages) -> Status {
        match (self, huge_pages) {
            (Self::All, _) => Status::Ok,
            (Self::Refused(_), HugePages::On) => Status::Critical,
            (Self::Refused(_) | Self::Killed(_), _) => Status::Warning,
        }
    }

    /// The answer as a sentence.
    pub(crate) fn sentence(&self, bytes: u64, size: PageSize) -> String {
        let pages = huge_pages(Bytes(bytes).in_pages(size), size);
        match self {
            Self::All => format!("Probe: the kernel allocated {pages}."),
            Self::Refused(why) => format!("Probe: the kernel refused {pages}: {why}."),
            Self::Killed(7) => format!(
                "Probe: the kernel reserved {pages}, but could not allocate all of them (SIGBUS). A server would crash."
            ),
            Self::Killed(signal) => {
                format!(
                    "Probe: the process was killed by signal {signal} while it touched {pages}."
                )
            }
        }
    }
}

/// The child.
pub(crate) fn touch(options: &Options) -> Result<Done, Error> {
    // The pages must not stay in use if the caller is killed.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| {
        Error::new(format!("could not arrange to end with the caller: {errno}"))
    })?;
    let failed = |error: std::io::Error| Error::new(error.to_string());
    if !options.page_bytes.is_power_of_two() {
        return Err(Error::new("--page-bytes: expected a huge page size"));
    }
    let whole =
        Bytes(options.bytes).in_pages(PageSize(options.page_bytes)) * PageSize(options.page_bytes);
    let length = usize::try_from(whole.0).map_err(|_| Error::new("too large"))?;
    let step = usize::try_from(options.page_bytes).map_err(|_| Error::new("too large"))?;
    let shift = u8::try_from(options.page_bytes.trailing_zeros()).unwrap_or_default();
    let mut map = MmapOptions::new()
        .len(length)
        .huge(Some(shift))
        .map_anon()
        .map_err(failed)?;
    for byte in map.iter_mut().step_by(step) {
        *byte = 1;
    }
    Ok(String::new().into())
}
