//! How the kernel reads numbers that people write. Each place has a way of its own, and all of them
//! differ from `str::parse`.

/// `sscanf("%lu%n")`: blanks, decimal digits, and what comes after them. Too many digits wrap
/// (lib/vsprintf.c `vsscanf`, lib/kstrtox.c `_parse_integer_limit`).
pub(super) fn scan_decimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = skip_blanks(text);
    let (number, rest) = digits(text, 10);
    (rest.len() < text.len()).then_some((number, rest))
}

/// A size with a unit, such as `2M`, and what comes after it. What is no number is 0; `0x` and a
/// leading 0 count (lib/cmdline.c `memparse`).
pub(super) fn parse_memory(text: &[u8]) -> (u64, &[u8]) {
    let (base, text) = base_of(text);
    let (number, rest) = digits(text, base);
    let shift = match rest.first().map(u8::to_ascii_uppercase) {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        Some(b'P') => 50,
        Some(b'E') => 60,
        _ => return (number, rest),
    };
    // Bits that do not fit fall out.
    (number << shift, &rest[1..])
}

/// What is written below `/proc/sys/vm`: blanks, a number of any base, and then nothing or a blank
/// with anything after it. `None`: the kernel refuses it, and nothing changes (kernel/sysctl.c
/// `__do_proc_doulongvec_minmax`, `proc_get_long`).
pub(super) fn parse_sysctl(text: &[u8]) -> Option<u64> {
    /// One less than the kernel's `TMPBUFLEN`: this many characters of a number are looked at.
    const LONGEST: usize = 21;
    let text = skip_blanks(text);
    if !text.first()?.is_ascii_digit() {
        return None;
    }
    let (base, text_of_base) = base_of(text);
    let number = digits_checked(text_of_base, base)?;
    let rest = digits(text_of_base, base).1;
    let ends = rest
        .first()
        .is_none_or(|b| matches!(b, b' ' | b'\t' | b'\n'));
    let is_short = text.len() - rest.len() < LONGEST;
    (ends && is_short).then_some(number)
}

/// What is written to a file of a pool in `/sys`: decimal digits, perhaps `+` before and one
/// newline after them (lib/kstrtox.c `kstrtoul`).
pub(super) fn parse_sysfs(text: &[u8]) -> Option<u64> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_prefix(b"+").unwrap_or(text);
    crate::linux::text::parse_number(text)
}

/// Whether the kernel's `isspace` holds (lib/ctype.c): also of the no-break space of Latin-1.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r' | 0xa0)
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&b| is_blank(b)).count();
    &text[blanks..]
}

/// lib/kstrtox.c `_parse_integer_fixup_radix`.
fn base_of(text: &[u8]) -> (u32, &[u8]) {
    match text {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, rest)
        }
        [b'0', ..] => (8, text),
        _ => (10, text),
    }
}

fn digit(byte: u8, base: u32) -> Option<u64> {
    char::from(byte).to_digit(base).map(u64::from)
}

fn digits(text: &[u8], base: u32) -> (u64, &[u8]) {
    let mut number = 0_u64;
    for (at, &byte) in text.iter().enumerate() {
        let Some(digit) = digit(byte, base) else {
            return (number, &text[at..]);
        };
        number = number.wrapping_mul(u64::from(base)).wrapping_add(digit);
    }
    (number, &[])
}

fn digits_checked(text: &[u8], base: u32) -> Option<u64> {
    text.iter()
        .map_while(|&byte| digit(byte, base))
        .try_fold(0_u64, |number, digit| {
            number.checked_mul(u64::from(base))?.checked_add(digit)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each written on Linux 6.1 and 7.2, where the pool had 2 pages: what it had afterwards.
    #[test]
    fn as_two_kernels_took_them() {
        for (text, by_sysctl, by_sysfs) in [
            ("5", Some(5), Some(5)),
            ("5 # c", Some(5), None),
            ("5;", None, None),
            ("0x10", Some(16), None),
            ("010", Some(8), Some(10)),
            ("+5", None, Some(5)),
            ("-5", None, None),
            ("5 6", Some(5), None),
            ("5,6", None, None),
            ("5\t7", Some(5), None),
            ("", None, None),
            ("99999999999999999999", None, None),
            ("5.0", None, None),
            (" 5", Some(5), None),
            ("5 ", Some(5), None),
            ("08", None, Some(8)),
            ("0x", None, None),
            ("000000000000000000000005", None, Some(5)),
        ] {
            assert_eq!(
                parse_sysctl(text.as_bytes()),
                by_sysctl,
                "{text:?} by sysctl"
            );
            assert_eq!(parse_sysfs(text.as_bytes()), by_sysfs, "{text:?} by sysfs");
        }
    }

    #[test]
    fn sizes_as_memparse_takes_them() {
        for (text, bytes) in [
            ("2M", 2 << 20),
            ("1GB", 1 << 30),
            ("1g", 1 << 30),
            ("0x200000", 2 << 20),
            ("2048K", 2 << 20),
            ("010M", 8 << 20),
            ("04M", 4 << 20),
            ("", 0),
            ("M", 0),
            ("16E", 0),
            ("x", 0),
        ] {
            assert_eq!(parse_memory(text.as_bytes()).0, bytes, "{text}");
        }
    }

    #[test]
    fn decimals_as_sscanf_takes_them() {
        for (text, expected) in [
            ("5", Some((5, ""))),
            ("0:7", Some((0, ":7"))),
            (" 12abc", Some((12, "abc"))),
            ("0x10", Some((0, "x10"))),
            ("18446744073709551620", Some((4, ""))),
            ("-3", None),
            ("+3", None),
            ("", None),
        ] {
            let expected = expected.map(|(n, rest): (u64, &str)| (n, rest.as_bytes()));
            assert_eq!(scan_decimal(text.as_bytes()), expected, "{text}");
        }
    }
}
