//! Quantities: bytes, page sizes and numbers of pages. All arithmetic saturates.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, Mul, Sub},
};

use serde::{Deserialize, Serialize};

/// A number of bytes. Displayed for people, rounded to the nearest unit: `1074 MB`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

/// The size of one page, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(pub u64);

/// Pages of this size and larger stay on the kernel command line, because a running kernel rarely
/// finds contiguous memory for them.
pub const GIGANTIC: PageSize = PageSize(1 << 30);

/// A number of huge pages.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Pages(pub u64);

macro_rules! saturating {
    ($($quantity:ident),*) => {$(
        impl Add for $quantity {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl Sub for $quantity {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Sum for $quantity {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self(0), Self::add)
            }
        }
    )*};
}

saturating!(Bytes, Pages);

impl Mul<PageSize> for Pages {
    type Output = Bytes;

    fn mul(self, size: PageSize) -> Bytes {
        Bytes(self.0.saturating_mul(size.0))
    }
}

impl Bytes {
    /// Pages that hold this many bytes.
    pub fn in_pages(self, size: PageSize) -> Pages {
        Pages(self.0.div_ceil(size.0.max(1)))
    }

    /// Whole pages in this many bytes.
    pub fn whole_pages(self, size: PageSize) -> Pages {
        Pages(self.0 / size.0.max(1))
    }

    /// This share of it, rounded down.
    pub fn percent(self, percent: u64) -> Self {
        let share = u128::from(self.0) * u128::from(percent) / 100;
        Self(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// This size as a percentage of another one. Callers round it when they print it.
    pub fn percentage_of(self, whole: Self) -> f64 {
        self.0 as f64 * 100.0 / whole.0.max(1) as f64
    }

    /// Whole megabytes, rounded up: following a figure has to be enough.
    pub fn megabytes_at_least(self) -> u64 {
        self.0.div_ceil(1 << 20)
    }
}

impl Pages {
    /// The verb after this number of pages: `1 page is`, `2 pages are`.
    pub fn verb(self, of_one: &'static str, of_several: &'static str) -> &'static str {
        if self == Self(1) { of_one } else { of_several }
    }
}

impl fmt::Display for Bytes {
    /// In the largest unit that leaves it exact or with two digits: `2 MB`, `1074 MB`, `142 GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [
            (1 << 40, "TB"),
            (1 << 30, "GB"),
            (1 << 20, "MB"),
            (1 << 10, "kB"),
        ];
        let bytes = self.0;
        let is_fit = |&&(unit, _): &&(u64, _)| {
            bytes > 0 && (bytes.is_multiple_of(unit) || bytes / 10 >= unit)
        };
        match UNITS.iter().find(is_fit) {
            Some((unit, name)) => {
                let rounded_up = u64::from(bytes % unit >= unit / 2);
                write!(f, "{} {name}", bytes / unit + rounded_up)
            }
            None => write!(f, "{bytes} bytes"),
        }
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes(self.0).fmt(f)
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number of huge pages for people: `1 huge page of 2 MB`.
pub fn huge_pages(count: Pages, size: PageSize) -> String {
    let noun = if count.0 == 1 { "page" } else { "pages" };
    format!("{count} huge {noun} of {size}")
}

/// A page size in the name of a resource of Kubernetes: `2Mi`.
pub fn kubernetes_size(size: PageSize) -> String {
    match size.0 >> 20 {
        0 => format!("{}Ki", size.0 >> 10),
        megabytes if megabytes < 1024 => format!("{megabytes}Mi"),
        megabytes => format!("{}Gi", megabytes >> 10),
    }
}

/// The setting that requests huge pages of this size, as in `postgresql.conf`.
pub fn huge_page_size_setting(size: PageSize) -> String {
    format!("huge_page_size = {}", setting_value(size.0))
}

/// A size as PostgreSQL shows it: a whole number of the largest possible unit.
///
/// ```
/// use host::units::setting_value;
///
/// assert_eq!(setting_value(300 << 20), "300MB");
/// assert_eq!(setting_value(1025 << 20), "1025MB");
/// assert_eq!(setting_value(2 << 40), "2TB");
/// assert_eq!(setting_value(0), "0");
/// ```
pub fn setting_value(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB")];
    let unit = units
        .into_iter()
        .find(|(unit, _)| bytes.is_multiple_of(*unit));
    match (bytes, unit.unwrap_or((1 << 10, "kB"))) {
        (0, _) => "0".to_owned(),
        (bytes, (unit, name)) => format!("{}{name}", bytes / unit),
    }
}

/// Huge pages as a resource of Kubernetes: `hugepages-2Mi: 1074Mi`.
pub fn kubernetes_resource(bytes: Bytes, size: PageSize) -> String {
    let megabytes = bytes.megabytes_at_least();
    format!("hugepages-{}: {megabytes}Mi", kubernetes_size(size))
}

/// Parses a size such as `2MB`, `1 GB`, `64Mi`, `2048kB` or `1G`, as PostgreSQL, Kubernetes and the
/// kernel write them. `unit`: bytes of a number without a unit. All units are powers of 1,024.
///
/// `None`: another notation, such as fractions or octal numbers, or too large.
pub fn parse_size(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim_ascii();
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, name) = text.split_at(end);
    let unit = match name.trim_ascii_start() {
        "" => unit,
        "B" => 1,
        "kB" | "KB" | "K" | "k" | "Ki" => 1 << 10,
        "MB" | "M" | "m" | "Mi" => 1 << 20,
        "GB" | "G" | "g" | "Gi" => 1 << 30,
        "TB" | "T" | "t" | "Ti" => 1 << 40,
        _ => return None,
    };
    let is_octal = digits.len() > 1 && digits.starts_with('0');
    let number = digits.parse::<u64>().ok().filter(|_| !is_octal)?;
    number.checked_mul(unit)
}

/// The text with a capital first letter, as at the beginning of a sentence.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_page_has_a_singular_verb() {
        let verbs = [0, 1, 2].map(|pages| Pages(pages).verb("is", "are"));
        assert_eq!(verbs, ["are", "is", "are"]);
    }

    #[test]
    fn sizes_are_readable() {
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
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn sizes_have_the_units_of_postgresql_kubernetes_and_the_kernel() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("2048", Some(2 << 20)),
            ("2048kB", Some(2 << 20)),
            ("2048K", Some(2 << 20)),
            (" 2 MB ", Some(2 << 20)),
            ("64Mi", Some(64 << 20)),
            ("1GB", Some(1 << 30)),
            ("1G", Some(1 << 30)),
            ("1TB", Some(1 << 40)),
            ("512B", Some(512)),
            ("", None),
            ("MB", None),
            ("-1", None),
            ("1gb", None),
            ("1 2", None),
            ("0.5GB", None),
            ("010", None),
            ("0x800", None),
            ("99999999999TB", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(parse_size(text, 1 << 10), bytes, "{text:?}");
        }
        assert_eq!(parse_size("16", 8 << 10), Some(128 << 10));
        assert_eq!(parse_size("16kB", 8 << 10), Some(16 << 10));
    }

    #[test]
    fn page_counts_are_readable() {
        for (count, text) in [
            (0, "0 huge pages of 2 MB"),
            (1, "1 huge page of 2 MB"),
            (2, "2 huge pages of 2 MB"),
        ] {
            assert_eq!(huge_pages(Pages(count), PageSize(2 << 20)), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Bytes(1) - Bytes(2), Bytes(0));
        assert_eq!(Pages(u64::MAX) + Pages(1), Pages(u64::MAX));
        assert_eq!(Pages(1 << 60) * PageSize(2 << 20), Bytes(u64::MAX));
        assert_eq!(Bytes(u64::MAX).percent(10), Bytes(u64::MAX / 10));
        let share = Bytes(1_146_355_712).percentage_of(Bytes(64 << 30));
        assert_eq!(format!("{share:.0}"), "2");
        assert_eq!(Bytes((2 << 20) + 1).in_pages(PageSize(2 << 20)), Pages(2));
        assert_eq!(
            Bytes((2 << 20) + 1).whole_pages(PageSize(2 << 20)),
            Pages(1)
        );
        assert_eq!(Bytes((2 << 20) + 1).megabytes_at_least(), 3);
    }
}
