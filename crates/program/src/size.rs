//! Sizes on the command line.

use std::str::FromStr;

use host::units::parse_size;

/// A number of bytes above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = parse_size(text, 1).filter(|bytes| *bytes > 0);
        bytes
            .map(Self)
            .ok_or_else(|| "expected a size, such as 64GB, 1254Mi or a number of bytes".to_owned())
    }
}
