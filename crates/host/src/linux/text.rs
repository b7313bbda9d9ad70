//! Parses lines and numbers in text files of the kernel.

use std::io::{self, BufRead};

/// Parses decimal digits without sign or blanks, up to 64 bits.
pub fn parse_number(digits: &[u8]) -> Option<u64> {
    if digits.first().is_none_or(|b| !b.is_ascii_digit()) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses an unsigned counter of the kernel. `None`: not a number, or above `i64::MAX`, because the
/// kernel decremented the counter below zero.
pub(crate) fn parse_counter(digits: &[u8]) -> Option<u64> {
    parse_number(digits).filter(|&counter| !is_below_zero(counter))
}

/// True if an unsigned counter was decremented below zero. No correct counter is that large, even
/// in bytes.
pub(crate) fn is_below_zero(counter: u64) -> bool {
    counter > i64::MAX.unsigned_abs()
}

/// Parses hexadecimal digits.
pub(crate) fn parse_hex(digits: &[u8]) -> Option<u64> {
    if digits.first().is_none_or(|b| !b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

/// Parses `     1234 kB` to bytes. `None`: another format, or below zero, as in [`parse_counter`].
pub(crate) fn parse_kilobytes(text: &[u8]) -> Option<u64> {
    let kilobytes = parse_counter(text.trim_ascii().strip_suffix(b" kB")?)?;
    let bytes = kilobytes.checked_mul(1024)?;
    (!is_below_zero(bytes)).then_some(bytes)
}

/// The text before and after the first `separator`.
pub(crate) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&b| b == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

/// The words of a line, separated by blanks.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ').filter(|word| !word.is_empty())
}

/// The lines that are not empty, with their numbers, starting at 1.
pub fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    text.split(|&b| b == b'\n')
        .zip(1..)
        .map(|(line, n)| (n, line))
        .filter(|(_, line)| !line.is_empty())
}

/// Reads a stream line by line, because a file can be long and the kernel generates it during
/// reads.
pub(crate) struct LineReader<R> {
    text: R,
    line: Vec<u8>,
    number: usize,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(text: R) -> Self {
        Self {
            text,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line without its line feed, and its number, starting at 1.
    pub(crate) fn next(&mut self) -> io::Result<Option<(usize, &[u8])>> {
        self.line.clear();
        self.number += 1;
        if self.text.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some((self.number, line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_below_zero_has_no_value() {
        for (text, counter) in [
            ("0", Some(0)),
            ("9223372036854775807", Some(i64::MAX.unsigned_abs())),
            ("9223372036854775808", None),
            ("18446744073709551615", None),
            ("18446744073709551616", None),
            ("-1", None),
        ] {
            assert_eq!(parse_counter(text.as_bytes()), counter, "{text}");
        }
        for (text, bytes) in [
            ("  12 kB", Some(12 << 10)),
            ("9007199254740991 kB", Some(i64::MAX.unsigned_abs() - 1023)),
            ("9007199254740992 kB", None),
            // SwapFree in LXD containers without swap
            ("18446744073709346016 kB", None),
            // the product is below 2^64
            ("18014396678257232 kB", None),
            ("12 MB", None),
            ("kB", None),
        ] {
            assert_eq!(parse_kilobytes(text.as_bytes()), bytes, "{text}");
        }
    }
}
