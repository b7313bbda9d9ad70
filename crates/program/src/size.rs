//! Sizes on the command line.

use std::str::FromStr;

use host::units::parse_size;

/// A number of bytes above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A number without a unit is more likely a mistake than a host of so few bytes.
        let bytes = parse_size(text, 1).filter(|bytes| *bytes >= 1 << 10);
        bytes
            .map(Self)
            .ok_or_else(|| "expected a size with a unit, such as 64GB or 1254Mi, or a number of bytes (at least 1024)".to_owned())
    }
}
