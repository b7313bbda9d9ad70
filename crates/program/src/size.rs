//! Sizes on the command line.

use std::str::FromStr;

/// Bytes, written as in PostgreSQL (`64GB`), Kubernetes (`1254Mi`) or as a number. All units are
/// powers of 1,024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a size, such as 64GB, 1254Mi or a number of bytes".to_owned();
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let shift = match unit {
            "" | "B" => 0,
            "kB" | "Ki" => 10,
            "MB" | "Mi" => 20,
            "GB" | "Gi" => 30,
            "TB" | "Ti" => 40,
            _ => return Err(expected()),
        };
        let number: u64 = digits.parse().map_err(|_| expected())?;
        number
            .checked_mul(1 << shift)
            .filter(|bytes| *bytes > 0)
            .map(Self)
            .ok_or_else(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_units_of_postgresql_and_kubernetes() {
        for (text, bytes) in [
            ("8192", Some(8192)),
            ("64GB", Some(64 << 30)),
            ("1254Mi", Some(1254 << 20)),
            ("1TB", Some(1 << 40)),
            ("0", None),
            ("64gb", None),
            ("1.5GB", None),
            ("-1", None),
            ("GB", None),
            ("99999999999TB", None),
        ] {
            assert_eq!(text.parse().ok(), bytes.map(Size), "{text}");
        }
    }
}
