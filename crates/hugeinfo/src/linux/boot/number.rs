//! Numbers in the formats of the kernel, which differ from `str::parse`.

/// Parses leading decimal digits (`sscanf("%lu")`). Returns the number and the rest.
pub(super) fn decimal(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Parses a size such as `2M` (lib/cmdline.c `memparse`). The kernel ignores characters after the
/// unit. `None`: no number, or too large.
pub(super) fn size(text: &str) -> Option<u64> {
    let (digits, base) = base(text);
    let end = digits.chars().take_while(|c| c.is_digit(base)).count();
    let number = u64::from_str_radix(&digits[..end], base).ok()?;
    let shift = match digits.as_bytes().get(end).map(u8::to_ascii_uppercase) {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        _ => 0,
    };
    number.checked_mul(1 << shift)
}

/// Parses a value written to a file in `/proc/sys/vm` (kernel/sysctl.c `proc_get_long`). The kernel
/// ignores all text after the first blank.
pub(super) fn sysctl(text: &str) -> Option<u64> {
    let word = text.split_ascii_whitespace().next()?;
    let (digits, base) = base(word);
    let is_digits = digits.chars().all(|c| c.is_digit(base));
    is_digits.then(|| u64::from_str_radix(digits, base).ok())?
}

/// lib/kstrtox.c `_parse_integer_fixup_radix`.
fn base(text: &str) -> (&str, u32) {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    }
}
