//! Pressure stall information: how long processes have waited for a resource, of the host
//! (`/proc/pressure/memory`) and of control groups (`memory.pressure`), in one form
//! (Documentation/accounting/psi.rst; kernel/sched/psi.c). Since Linux 4.20.

use std::path::Path;

use crate::linux::{
    error::ReadError,
    root::Root,
    text::{lines, parse_number, split_once, words},
};

/// Of the host's memory. Missing where the kernel was built without, or started with `psi=0`.
pub const OF_HOST: &str = "proc/pressure/memory";

/// Both kinds of waiting. `None`: the kernel doesn't count it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// At least one process waited.
    pub some: Option<Stalls>,
    /// All that had something to do waited, so that no work was done.
    pub full: Option<Stalls>,
}

/// For how long.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stalls {
    /// Percent of the last 10 seconds.
    pub avg10: f64,
    /// Percent of the last minute.
    pub avg60: f64,
    /// Percent of the last 5 minutes.
    pub avg300: f64,
    /// Microseconds since boot, or since the group was made.
    pub total: u64,
}

/// Reads such a file.
pub fn read(root: &Root, file: impl AsRef<Path>) -> Result<Pressure, ReadError> {
    let expected = "some or full was expected, with avg10, avg60, avg300 and total";
    root.parse(file, expected, parse)
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same with `full`. Errors: the number
/// of a line of another form. Other kinds, and other figures behind these, are passed over.
pub fn parse(text: &[u8]) -> Result<Pressure, usize> {
    let mut pressure = Pressure::default();
    for (number, line) in lines(text) {
        let (kind, figures) = split_once(line, b' ').ok_or(number)?;
        let stalls = match kind {
            b"some" => &mut pressure.some,
            b"full" => &mut pressure.full,
            _ => continue,
        };
        *stalls = Some(parse_stalls(figures).ok_or(number)?);
    }
    Ok(pressure)
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
        total: parse_number(figure(b"total")?)?,
    })
}

/// Always with two decimals.
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
    fn both_kinds_of_waiting() {
        let text = "some avg10=0.22 avg60=12.17 avg300=100.00 total=18446744073709551615\n\
                    full avg10=0.00 avg60=1.09 avg300=0.50 total=7\n";
        let some = Stalls {
            avg10: 0.22,
            avg60: 12.17,
            avg300: 100.0,
            total: u64::MAX,
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
        assert_eq!(parse(text.as_bytes()), Ok(both));
    }

    #[test]
    fn what_a_newer_kernel_adds_is_passed_over() {
        let text = "most avg10=1\nsome avg10=1.00 avg60=2.00 avg300=3.00 total=4 p99=5\n";
        let pressure = parse(text.as_bytes()).expect("a known line");
        assert_eq!(pressure.some.map(|some| some.total), Some(4));
        assert_eq!(pressure.full, None);
        assert_eq!(parse(b""), Ok(Pressure::default()));
    }

    #[test]
    fn the_line_is_named() {
        let good = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0";
        for (from, to) in [
            (good, "some"),
            ("total=0", ""),
            ("total=0", "total=-1"),
            ("avg10=0.00", "avg10=0"),
            ("avg10=0.00", "avg10=0.0"),
            ("avg10=0.00", "avg10=-0.1"),
            ("avg60=0.00", "avg60=nan"),
            ("avg300=0.00", "avg300=99999999999.00"),
        ] {
            let line = good.replace(from, to);
            let text = format!("{good}\n{line}\n");
            assert_eq!(parse(text.as_bytes()), Err(2), "{line}");
        }
    }
}
