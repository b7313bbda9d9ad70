//! Planning for another host.

use super::member_errors::{not_a_value, planned_twice};
use crate::{error::Error, postgres::jsonb::Member};
use ::host::units::parse_size;

/// Another host, whose pools are unknown. Missing values are those of this host.
pub(crate) struct Host {
    pub(crate) ram_bytes: Option<u64>,
    /// Page sizes, the default first.
    pub(crate) page_sizes_bytes: Option<Vec<u64>>,
}

const RAM: &str = "host_ram";
const PAGE_SIZES: &str = "host_huge_page_sizes";

pub(super) const NAMES: [&str; 2] = [RAM, PAGE_SIZES];

impl Host {
    /// Removes the members about a host from the settings. `None`: there are none, so the plan is
    /// for this host.
    ///
    /// Errors: a value that is not a size.
    pub(crate) fn take_from(members: &mut Vec<Member>) -> Result<Option<Self>, Error> {
        let mut take = |wanted: &str| -> Result<Option<String>, Error> {
            let is_it = |(name, _): &Member| name.eq_ignore_ascii_case(wanted);
            let Some(place) = members.iter().position(is_it) else {
                return Ok(None);
            };
            let (name, value) = members.remove(place);
            if members.iter().any(is_it) {
                return Err(planned_twice(wanted));
            }
            let value = value.ok_or_else(|| not_a_value(&name))?;
            Ok(Some(value.to_string_lossy().into_owned()))
        };
        let (ram, sizes) = (take(RAM)?, take(PAGE_SIZES)?);
        if ram.is_none() && sizes.is_none() {
            return Ok(None);
        }
        let ram_bytes = ram.map(|text| bytes(&text).ok_or_else(|| not_a_size(RAM, &text)));
        let page_sizes_bytes = sizes.map(|text| {
            let each = text.split(',').map(page_size).collect::<Option<Vec<_>>>();
            each.ok_or_else(|| not_a_size(PAGE_SIZES, &text))
        });
        Ok(Some(Self {
            ram_bytes: ram_bytes.transpose()?,
            page_sizes_bytes: page_sizes_bytes.transpose()?,
        }))
    }
}

/// A number without a unit means bytes. `None`: not a size, or 0.
fn bytes(text: &str) -> Option<u64> {
    parse_size(text, 1).filter(|bytes| (1..=i64::MAX.unsigned_abs()).contains(bytes))
}

fn not_a_size(name: &str, value: &str) -> Error {
    Error::invalid(format!("invalid value for \"{name}\": \"{value}\"")).hint("Example: {\"host_ram\": \"256GB\", \"host_huge_page_sizes\": \"2MB, 1GB\"}. A number without a unit means bytes.")
}

/// Parses a page size: at least a small page of any kernel, and at most the largest huge page.
fn page_size(text: &str) -> Option<u64> {
    const SIZES: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 40;
    bytes(text.trim()).filter(|size| size.is_power_of_two() && SIZES.contains(size))
}
