//! `hugetlb_cma=`: memory that is set apart at boot, of which the kernel makes its largest pages
//! while it runs (mm/hugetlb_cma.c; mm/hugetlb.c before 6.15).

use std::collections::BTreeMap;

use super::{
    command_line::Parameter,
    kernel::Kernel,
    number::{parse_memory, scan_decimal},
};

#[derive(Debug, Default)]
pub(super) struct Cma {
    bytes: u64,
    by_node: BTreeMap<u64, u64>,
    is_only: bool,
}

impl Cma {
    pub(super) fn take(&mut self, parameter: Parameter<'_>, kernel: &Kernel) {
        let Some(value) = parameter.value else {
            return;
        };
        if parameter.is("hugetlb_cma") {
            self.take_sizes(value, kernel);
        } else if parameter.is("hugetlb_cma_only") {
            self.is_only = match value {
                [b'y' | b'Y' | b't' | b'T' | b'1', ..] | [b'o' | b'O', b'n' | b'N', ..] => true,
                [b'n' | b'N' | b'f' | b'F' | b'0', ..] | [b'o' | b'O', b'f' | b'F', ..] => false,
                _ => self.is_only,
            };
        }
    }

    /// `cmdline_parse_hugetlb_cma`.
    fn take_sizes(&mut self, value: &[u8], kernel: &Kernel) {
        let mut rest = value;
        while !rest.is_empty() {
            let Some((node, after)) = scan_decimal(rest) else {
                return;
            };
            let Some(after) = after.strip_prefix(b":").filter(|_| kernel.knows_nodes()) else {
                self.bytes = parse_memory(value).0;
                return;
            };
            if node >= 1024 {
                return;
            }
            let (bytes, after) = parse_memory(after);
            self.by_node.insert(node, bytes);
            self.bytes = self.bytes.wrapping_add(bytes);
            let Some(after) = after.strip_prefix(b",") else {
                return;
            };
            rest = after;
        }
    }

    /// How many of the largest pages fit what is set apart, and those of each node where nodes were
    /// named. `None`: nothing is (`hugetlb_cma_reserve`).
    pub(super) fn reserved(&self, kernel: &Kernel) -> Option<Reserved> {
        let largest = match &kernel.sizes {
            Some(sizes) => sizes.iter().copied().max()?,
            None => 1 << 30,
        };
        if !kernel.is_gigantic(largest) || !kernel.has_cma {
            return None;
        }
        let mut bytes = self.bytes;
        let mut by_node = BTreeMap::new();
        for (&node, &of_node) in &self.by_node {
            match kernel.has_node(node).filter(|_| of_node >= largest) {
                Some(node) => {
                    by_node.insert(node, of_node.div_ceil(largest));
                }
                None => bytes = bytes.wrapping_sub(of_node),
            }
        }
        (bytes >= largest).then(|| Reserved {
            pages: bytes.div_ceil(largest),
            by_node,
            // From 6.15 on, pages are made of it at boot, too.
            is_used_at_boot: self.is_only && kernel.notes_words(),
        })
    }
}

#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) pages: u64,
    pub(super) by_node: BTreeMap<u32, u64>,
    pub(super) is_used_at_boot: bool,
}
