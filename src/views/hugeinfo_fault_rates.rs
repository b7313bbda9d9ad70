//! `hugeinfo_fault_rates(duration)`: page faults of each process over a sample, as `sar -B` and `pidstat -r` show them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use hugeinfo::stat::Stat;
use pgrx::{datum::Interval, pg_sys::panic::ErrorReport, prelude::*};

use crate::{
    error::{Error, bigint, pid_or_error},
    postgres, processes,
};

/// Longer samples are better taken as the difference of two reads of `hugeinfo_backends`.
const LONGEST: Duration = Duration::from_secs(3600);

/// The faults of each process, by what names it for good: its number and its start.
type Sample = BTreeMap<(u32, u64), (Stat, Option<String>)>;

fn sample() -> Result<Sample, Error> {
    let mut types = postgres::backend_types();
    let members = processes::all(|member, buffer| {
        let pid = member.process.pid();
        let backend_type = types
            .remove(&pid)
            .or_else(|| member.type_beyond_activity(buffer));
        Ok(Some((
            (pid, member.stat.start_ticks),
            (member.stat, backend_type),
        )))
    })?;
    Ok(members.into_iter().collect())
}

/// Sleeps for `duration` and gives a row for each process that was there before or after. A cancel ends the wait at once.
///
/// Errors: 22023 for a duration that is not above zero and at most an hour; else as `hugeinfo_status`.
#[pg_extern(parallel_restricted, cost = 1000000)]
#[allow(clippy::type_complexity)]
fn hugeinfo_fault_rates(
    duration: default!(Interval, "'1 second'"),
) -> Result<
    TableIterator<
        'static,
        (
            name!(pid, i32),
            name!(backend_type, Option<String>),
            name!(presence, &'static str),
            name!(seconds, f64),
            name!(minor_faults, Option<i64>),
            name!(major_faults, Option<i64>),
            name!(minor_faults_per_second, Option<f64>),
            name!(major_faults_per_second, Option<f64>),
        ),
    >,
    ErrorReport,
> {
    let rows = || {
        let duration = length(&duration).ok_or(Error::SampleLength)?;
        let start = Instant::now();
        let mut before = sample()?;
        postgres::wait(duration);
        // From start to start: between the two reads of a process lies the wait and what one sample takes, not two.
        let seconds = start.elapsed().as_secs_f64();
        let after = sample()?;
        let mut rows = Vec::with_capacity(after.len());
        for (key, (now, backend_type)) in after {
            let then = before.remove(&key);
            let presence = if then.is_some() { "stayed" } else { "came" };
            let (minor, major) =
                then.map_or((0, 0), |(then, _)| (then.minor_faults, then.major_faults));
            let minor = bigint(now.minor_faults.saturating_sub(minor))?;
            let major = bigint(now.major_faults.saturating_sub(major))?;
            let rate = |faults| Some(faults as f64 / seconds);
            let faults = (Some(minor), Some(major), rate(minor), rate(major));
            rows.push((key, backend_type, presence, faults));
        }
        for (key, (_, backend_type)) in before {
            rows.push((key, backend_type, "went", (None, None, None, None)));
        }
        rows.sort_unstable_by_key(|(key, ..)| *key);
        rows.into_iter()
            .map(
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
            )
            .collect::<Result<Vec<_>, Error>>()
    };
    Ok(TableIterator::new(rows()?))
}

/// A sample's length; `None` where it is not above zero, or longer than allowed. A month counts 30 days, as everywhere in PostgreSQL.
fn length(interval: &Interval) -> Option<Duration> {
    let days = i64::from(interval.months()) * 30 + i64::from(interval.days());
    let microseconds = days
        .checked_mul(86_400_000_000)?
        .checked_add(interval.micros())?;
    let length = Duration::from_micros(u64::try_from(microseconds).ok()?);
    (!length.is_zero() && length <= LONGEST).then_some(length)
}

extension_sql_file!(
    "hugeinfo_fault_rates.sql",
    requires = [hugeinfo_fault_rates]
);
