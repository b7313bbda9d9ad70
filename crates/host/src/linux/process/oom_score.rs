//! `/proc/PID/oom_score` and `oom_score_adj`: the order in which the OOM killer kills processes
//! (Documentation/filesystems/proc.rst, chapter 3.1).

use crate::linux::{error::ReadError, process::Process, text::parse_number};

/// Reads the present score. The process with the highest score is killed first.
pub fn score(process: &Process, buffer: &mut Vec<u8>) -> Result<i32, ReadError> {
    number(process, "oom_score", buffer)
}

/// Reads the adjustment by an administrator, from -1000 (never kill) to 1000.
pub fn score_adj(process: &Process, buffer: &mut Vec<u8>) -> Result<i32, ReadError> {
    number(process, "oom_score_adj", buffer)
}

fn number(process: &Process, name: &str, buffer: &mut Vec<u8>) -> Result<i32, ReadError> {
    let parse = |text: &[u8]| parse(text.trim_ascii()).ok_or(1);
    process.parse(name, buffer, "a number was expected", parse)
}

/// Parses a decimal number, which can be negative.
pub fn parse(text: &[u8]) -> Option<i32> {
    let (sign, digits) = text
        .strip_prefix(b"-")
        .map_or((1, text), |digits| (-1, digits));
    let magnitude = i32::try_from(parse_number(digits)?).ok()?;
    Some(sign * magnitude)
}
