//! Lists of numbers as the kernel writes them, such as `0-3,8` (lib/vsprintf.c
//! `bitmap_list_string`).

use std::ops::RangeInclusive;

use crate::linux::text::{parse_number, split_once};

/// A list of numbers: processors, NUMA nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    ranges: Vec<RangeInclusive<u32>>,
}

impl List {
    /// Number of elements.
    pub fn count(&self) -> u64 {
        let of_range = |range: &RangeInclusive<u32>| u64::from(range.end() - range.start()) + 1;
        self.ranges.iter().map(of_range).sum()
    }

    /// True if the list contains the number.
    pub fn contains(&self, number: u32) -> bool {
        self.ranges.iter().any(|range| range.contains(&number))
    }

    /// True if the list contains all numbers of the other list.
    pub fn covers(&self, other: &Self) -> bool {
        let is_covered = |range: &RangeInclusive<u32>| {
            let mut own = self.ranges.iter();
            own.any(|own| own.contains(range.start()) && own.contains(range.end()))
        };
        other.ranges.iter().all(is_covered)
    }

    /// Numbers that are in both lists.
    pub fn intersection(&self, other: &Self) -> Self {
        let common = self.ranges.iter().flat_map(|own| {
            let of = move |range: &RangeInclusive<u32>| {
                *own.start().max(range.start())..=*own.end().min(range.end())
            };
            other
                .ranges
                .iter()
                .map(of)
                .filter(|range| !range.is_empty())
        });
        Self {
            ranges: common.collect(),
        }
    }
}

/// Parses numbers and ranges separated by commas, in ascending order. An empty line is an empty
/// list.
pub fn parse(bytes: &[u8]) -> Option<List> {
    let text = bytes.trim_ascii();
    if text.is_empty() {
        return Some(List::default());
    }
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    for part in text.split(|&b| b == b',') {
        let (first, last) = split_once(part, b'-').unwrap_or((part, part));
        let number = |digits| u32::try_from(parse_number(digits)?).ok();
        let range = number(first)?..=number(last)?;
        match ranges.last_mut() {
            _ if range.is_empty() => return None,
            Some(last) if last.end() >= range.start() => return None,
            // Merges adjacent ranges, so that equal lists have one representation.
            Some(last) if last.end() + 1 == *range.start() => *last = *last.start()..=*range.end(),
            _ => ranges.push(range),
        }
    }
    Some(List { ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_numbers_and_ranges() {
        for (text, count) in [
            ("0\n", 1),
            ("0-1\n", 2),
            ("0-3,8,10-255", 251),
            ("\n", 0),
            ("0-4294967295", 1 << 32),
        ] {
            let list = parse(text.as_bytes()).expect("a list");
            assert_eq!(list.count(), count, "{text:?}");
        }
        let list = parse(b"0-3,8").expect("a list");
        assert!(list.contains(0) && list.contains(3) && list.contains(8));
        assert!(!list.contains(4) && !list.contains(9));
    }

    #[test]
    fn invalid_lists_are_rejected() {
        for text in [
            "x",
            "1,",
            ",1",
            "3-1",
            "1-",
            "-1",
            "1 2",
            "2,1",
            "1,1-3",
            "4294967296",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
