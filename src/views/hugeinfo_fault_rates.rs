//! `hugeinfo_fault_rates(duration)`: page faults of each process over a sample, as `sar -B` and
//! `pidstat -r` show them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use host::linux::{growth::try_collect, process::stat::Stat};
use pgrx::{datum::Interval, pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    numbers::{bigint_or_null, pid_or_error},
    postgres::{self, latch::wait},
    processes,
};

/// Maximum duration. For longer samples, users can read `hugeinfo_backends` twice and subtract.
const LONGEST: Duration = Duration::from_secs(3600);

/// The faults of each process. PID and start identify a process.
type Sample = BTreeMap<(u32, u64), (Stat, Option<String>)>;

fn sample() -> Result<Sample, Error> {
    let mut types = postgres::processes::backend_types()?;
    let mut sample = Sample::new();
    // One by one: collecting into a map would allocate for all of them at once.
    processes::all(|member, buffer| {
        let pid = member.process.pid();
        let backend_type = types
            .remove(&pid)
            .or_else(|| member.type_beyond_activity(buffer));
        sample.insert((pid, member.stat.start_ticks), (member.stat, backend_type));
        Ok(None::<()>)
    })?;
    Ok(sample)
}

functions! {
    cost = 1000000;
    /// Page faults of each process of this server during one second, as sar -B and pidstat -r show
    /// them.
    view hugeinfo_fault_rates;
    columns (
        /// Process ID.
        name!(pid, i32),
        /// Type of the process, as in hugeinfo_backends.
        name!(backend_type, Option<String>),
        /// stayed, came (the process started during the sample), or went (it ended, and its faults
        /// are NULL).
        name!(presence, &'static str),
        /// Actual length of the sample in seconds.
        name!(seconds, f64),
        /// Faults during the sample that did not read from disk.
        name!(minor_faults, Option<i64>),
        /// Faults during the sample that read from disk.
        name!(major_faults, Option<i64>),
        /// minor_faults per second.
        name!(minor_faults_per_second, Option<f64>),
        /// major_faults per second.
        name!(major_faults_per_second, Option<f64>),
    );
    /// Page faults of each process of this server during a sample of this duration, at most one
    /// hour.
    fn hugeinfo_fault_rates(duration: default!(Interval, "'1 s'")) {
        rows(length(&duration))
    }
}

/// Sleeps for `duration` and returns a row for each process that existed before or after. A cancel
/// ends the sleep at once.
///
/// Errors: 22023 if the duration is not above zero or exceeds one hour; else as for
/// `hugeinfo_status`.
fn rows(duration: Option<Duration>) -> Result<Vec<Row>, Error> {
    let duration = duration
        .filter(|duration| !duration.is_zero() && *duration <= LONGEST)
        .ok_or_else(|| {
            Error::invalid("duration must be longer than zero and at most one hour")
                .hint("For a longer sample, read hugeinfo_backends twice and subtract.")
        })?;
    let start = Instant::now();
    let mut before = sample()?;
    wait(duration);
    // Measures from start to start: between two reads of a process are the sleep and one pass over
    // the processes, not two.
    let seconds = start.elapsed().as_secs_f64();
    let after = sample()?;
    let mut rows = Vec::new();
    rows.try_reserve(after.len() + before.len())?;
    for (key, (now, backend_type)) in after {
        let then = before.remove(&key);
        let presence = if then.is_some() { "stayed" } else { "came" };
        let (minor, major) = then.map_or((Some(0), Some(0)), |(then, _)| {
            (then.minor_faults, then.major_faults)
        });
        let since = |now: Option<u64>, then: Option<u64>| {
            bigint_or_null(now.zip(then).map(|(now, then)| now.saturating_sub(then)))
        };
        let minor = since(now.minor_faults, minor);
        let major = since(now.major_faults, major);
        let rate = |faults: Option<i64>| Some(faults? as f64 / seconds);
        let faults = (minor, major, rate(minor), rate(major));
        rows.push((key, backend_type, presence, faults));
    }
    for (key, (_, backend_type)) in before {
        rows.push((key, backend_type, "went", (None, None, None, None)));
    }
    rows.sort_unstable_by_key(|(key, ..)| *key);
    try_collect(rows.into_iter().map(
        |((pid, _), backend_type, presence, (minor, major, minor_rate, major_rate))| {
            let pid = pid_or_error(pid)?;
            Ok((
                pid,
                backend_type,
                presence,
                seconds,
                minor,
                major,
                minor_rate,
                major_rate,
            ))
        },
    ))
}

/// The length of an interval. `None`: below zero, or too large for `bigint`. A month has 30 days,
/// as everywhere in PostgreSQL.
fn length(interval: &Interval) -> Option<Duration> {
    let days = i64::from(interval.months()) * 30 + i64::from(interval.days());
    let microseconds = days
        .checked_mul(86_400_000_000)?
        .checked_add(interval.micros())?;
    Some(Duration::from_micros(u64::try_from(microseconds).ok()?))
}
