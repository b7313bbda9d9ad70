//! How the kernel writes numbers in its text files.

/// Decimal digits only: no sign, no blanks, nothing beyond 64 bits.
pub(crate) fn parse_number(digits: &[u8]) -> Option<u64> {
    if digits.first().is_none_or(|b| !b.is_ascii_digit()) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Hexadecimal digits only.
pub(crate) fn parse_hex(digits: &[u8]) -> Option<u64> {
    if digits.first().is_none_or(|b| !b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

/// `     1234 kB`, in bytes.
pub(crate) fn parse_kilobytes(text: &[u8]) -> Option<u64> {
    parse_number(text.trim_ascii().strip_suffix(b" kB")?)?.checked_mul(1024)
}

/// What stands before and after the first `separator`.
pub(crate) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&b| b == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

/// The words between blanks.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ').filter(|word| !word.is_empty())
}

/// The lines that are not empty, with their numbers from 1.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    text.split(|&b| b == b'\n')
        .zip(1..)
        .map(|(line, n)| (n, line))
        .filter(|(_, line)| !line.is_empty())
}
