//! How figures are said.

/// A size for people, in the largest unit that leaves it exact or with two digits: `2 MB`, `1074
/// MB`, `142 GB`.
pub fn human(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1 << 40, "TB"),
        (1 << 30, "GB"),
        (1 << 20, "MB"),
        (1 << 10, "kB"),
    ];
    UNITS
        .iter()
        .find(|&&(unit, _)| bytes > 0 && (bytes.is_multiple_of(unit) || bytes / 10 >= unit))
        .map_or_else(
            || format!("{bytes} bytes"),
            |&(unit, name)| {
                let rounded_up = u64::from(bytes % unit >= unit / 2);
                format!("{} {name}", bytes / unit + rounded_up)
            },
        )
}

/// So many huge pages of a size, for people: `1 huge page of 2 MB`.
pub fn huge_pages(count: u64, page_bytes: u64) -> String {
    let noun = if count == 1 { "page" } else { "pages" };
    format!("{count} huge {noun} of {}", human(page_bytes))
}

/// Sizes for people: `2 MB, 1 GB`, or `none`.
pub fn list(sizes: &[u64]) -> String {
    if sizes.is_empty() {
        return "none".to_owned();
    }
    let sizes: Vec<_> = sizes.iter().map(|&size| human(size)).collect();
    sizes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (4096, "4 kB"),
            (2 << 20, "2 MB"),
            (1 << 30, "1 GB"),
            (1074 << 20, "1074 MB"),
            (8_402_592 << 10, "8206 MB"),
            (3 << 40, "3 TB"),
            ((3 << 40) + 4096, "3072 GB"),
            (1_126_170_624, "1074 MB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn one_page_is_no_pages() {
        for (count, text) in [
            (0, "0 huge pages of 2 MB"),
            (1, "1 huge page of 2 MB"),
            (2, "2 huge pages of 2 MB"),
        ] {
            assert_eq!(huge_pages(count, 2 << 20), text);
        }
    }
}
