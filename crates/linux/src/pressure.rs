//! Pressure stall information: how long processes have waited for memory, for the host
//! (`/proc/pressure/memory`) and for cgroups (`memory.pressure`), in the same format
//! (Documentation/accounting/psi.rst; kernel/sched/psi.c).

use std::path::Path;

use crate::{
    error::ReadError,
    root::Root,
    text::{lines, parse_counter, parse_number, split_once, words},
};

/// The host's file. Missing if the kernel was built without it, or booted with `psi=0`.
pub const OF_HOST: &str = "proc/pressure/memory";

/// Both kinds of stalls. `None`: the kernel does not count them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// At least one process waited.
    pub some: Option<Stalls>,
    /// All runnable processes waited, so that no work was done.
    pub full: Option<Stalls>,
}

/// Shares of time, and the total time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stalls {
    /// Percent of the last 10 seconds.
    pub avg10: f64,
    /// Percent of the last minute.
    pub avg60: f64,
    /// Percent of the last 5 minutes.
    pub avg300: f64,
    /// Microseconds since boot, or since the cgroup was created.
    pub total: u64,
}

/// Reads a pressure file.
pub fn read(root: &Root, file: impl AsRef<Path>) -> Result<Pressure, ReadError> {
    Ok(parse(&root.read_record(file)?))
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full`. Other lines, and
/// further values in a line, are ignored. A line that lacks a valid value counts as missing.
pub fn parse(text: &[u8]) -> Pressure {
    let mut pressure = Pressure::default();
    for (_, line) in lines(text) {
        match split_once(line, b' ') {
            Some((b"some", figures)) => pressure.some = parse_stalls(figures),
            Some((b"full", figures)) => pressure.full = parse_stalls(figures),
            _ => {}
        }
    }
    pressure
}

fn parse_stalls(figures: &[u8]) -> Option<Stalls> {
    let figure = |name: &[u8]| {
        let mut pairs = words(figures).filter_map(|word| split_once(word, b'='));
        pairs.find_map(|(key, value)| (key == name).then_some(value))
    };
    Some(Stalls {
        avg10: parse_percent(figure(b"avg10")?)?,
        avg60: parse_percent(figure(b"avg60")?)?,
        avg300: parse_percent(figure(b"avg300")?)?,
        total: parse_counter(figure(b"total")?)?,
    })
}

/// A percentage, which always has two decimals.
fn parse_percent(text: &[u8]) -> Option<f64> {
    let (whole, hundredths) = split_once(text, b'.').filter(|(_, decimals)| decimals.len() == 2)?;
    let whole = u32::try_from(parse_number(whole)?).ok()?;
    let hundredths = u32::try_from(parse_number(hundredths)?).ok()?;
    Some((f64::from(whole) * 100.0 + f64::from(hundredths)) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_and_full_are_parsed() {
        let text = "some avg10=0.22 avg60=12.17 avg300=100.00 total=9223372036854775807\n\
                    full avg10=0.00 avg60=1.09 avg300=0.50 total=7\n";
        let some = Stalls {
            avg10: 0.22,
            avg60: 12.17,
            avg300: 100.0,
            total: i64::MAX.unsigned_abs(),
        };
        let full = Stalls {
            avg10: 0.0,
            avg60: 1.09,
            avg300: 0.5,
            total: 7,
        };
        let both = Pressure {
            some: Some(some),
            full: Some(full),
        };
        assert_eq!(parse(text.as_bytes()), both);
    }

    #[test]
    fn unknown_lines_and_values_are_ignored() {
        let text = "most avg10=1\nsome avg10=1.00 avg60=2.00 avg300=3.00 total=4 p99=5\n";
        let pressure = parse(text.as_bytes());
        assert_eq!(pressure.some.map(|some| some.total), Some(4));
        assert_eq!(pressure.full, None);
        assert_eq!(parse(b""), Pressure::default());
    }

    #[test]
    fn invalid_line_counts_as_missing() {
        let good = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0";
        for (from, to) in [
            (good, "some"),
            ("total=0", ""),
            ("total=0", "total=-1"),
            ("total=0", "total=18446744073709551615"),
            ("avg10=0.00", "avg10=0"),
            ("avg10=0.00", "avg10=0.0"),
            ("avg10=0.00", "avg10=-0.1"),
            ("avg60=0.00", "avg60=nan"),
            ("avg300=0.00", "avg300=99999999999.00"),
        ] {
            let line = good.replace(from, to);
            let full = good.replace("some", "full");
            let pressure = parse(format!("{line}\n{full}\n").as_bytes());
            assert_eq!(pressure.some, None, "{line}");
            assert_eq!(pressure.full, Some(Stalls::default()), "{line}");
        }
    }
}
