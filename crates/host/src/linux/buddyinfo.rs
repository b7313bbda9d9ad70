//! `/proc/buddyinfo`: free memory by the size of its blocks (mm/vmstat.c `frag_show_print`). A huge
//! page needs a whole block.

use std::collections::BTreeMap;

use crate::linux::{
    error::ReadError,
    mounts::of_machine,
    root::Root,
    text::{lines, parse_counter, parse_number, words},
};

pub(crate) const PATH: &str = "/proc/buddyinfo";

/// Free blocks of all zones of each node, by order: `[0]` counts blocks of one base page, `[9]`
/// blocks of 512.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeBlocks(pub BTreeMap<u32, Vec<u64>>);

impl FreeBlocks {
    /// Huge pages that fit into the free blocks without compaction. `None`: such a page is larger
    /// than any block, as 1 GB is.
    pub fn huge_pages(&self, page_bytes: u64, base_page_bytes: u64) -> Option<u64> {
        self.0
            .values()
            .map(|blocks| held(blocks, page_bytes, base_page_bytes))
            .reduce(|all, one| Some(all?.saturating_add(one?)))
            .flatten()
    }
}

fn held(blocks: &[u64], page_bytes: u64, base_page_bytes: u64) -> Option<u64> {
    let pages = page_bytes.checked_div(base_page_bytes)?;
    let order = usize::try_from(pages.checked_ilog2()?).ok()?;
    let large_enough = blocks.get(order..).filter(|blocks| !blocks.is_empty())?;
    let held = large_enough
        .iter()
        .zip(0_u32..)
        .map(|(&blocks, larger)| blocks.saturating_mul(1_u64.checked_shl(larger).unwrap_or(0)));
    Some(held.fold(0, u64::saturating_add))
}

/// Reads the file.
pub fn read(root: &Root) -> Result<FreeBlocks, ReadError> {
    let read = root.read_filled(PATH);
    Ok(parse(&of_machine(root, read)?))
}

/// Lines such as `Node 0, zone   Normal   5   2   0`. Zones that cannot be parsed are skipped,
/// which makes the result a lower bound.
pub fn parse(bytes: &[u8]) -> FreeBlocks {
    let mut nodes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (node, blocks) in lines(bytes).filter_map(|(_, line)| parse_zone(line)) {
        let free = nodes.entry(node).or_default();
        free.resize(free.len().max(blocks.len()), 0);
        for (sum, blocks) in free.iter_mut().zip(blocks) {
            *sum = sum.saturating_add(blocks);
        }
    }
    FreeBlocks(nodes)
}

/// The node and the free blocks by order.
fn parse_zone(line: &[u8]) -> Option<(u32, Vec<u64>)> {
    let mut words = words(line);
    let is_node = words.next()? == b"Node";
    let node = parse_number(words.next()?.strip_suffix(b",")?)?;
    let is_zone = words.next()? == b"zone";
    let _name = words.next()?;
    let blocks = words.map(parse_counter).collect::<Option<_>>()?;
    (is_node && is_zone).then_some((u32::try_from(node).ok()?, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_NODES: &[u8] = b"Node 0, zone      DMA      1      0      0      1      2      1      1      0      1      1      3 \n\
        Node 0, zone   Normal   4096    512      7      0      0      0      0      0      0      2      5 \n\
        Node 1, zone   Normal      1      1      1      1      1      1      1      1      1      1      1 \n";

    #[test]
    fn blocks_of_the_zones_of_a_node_are_added_up() {
        let first = vec![4097, 512, 7, 1, 2, 1, 1, 0, 1, 3, 8];
        let expected = BTreeMap::from([(0, first), (1, vec![1; 11])]);
        assert_eq!(parse(TWO_NODES), FreeBlocks(expected));
    }

    #[test]
    fn larger_blocks_hold_several_pages() {
        let free = parse(TWO_NODES);
        assert_eq!(free.huge_pages(2 << 20, 4096), Some(4 + 2 * 9));
        assert_eq!(free.huge_pages(4 << 20, 4096), Some(9));
        assert_eq!(free.huge_pages(1 << 30, 4096), None);
        // 64 kB base pages: 512 MB are order 13, beyond the 11 orders shown here.
        assert_eq!(free.huge_pages(512 << 20, 64 << 10), None);
        assert_eq!(
            free.huge_pages(2 << 20, 64 << 10),
            Some(2 + 2 * 2 + 4 + 2 * 8 + 4 * 16 + 9 * 32)
        );
    }

    #[test]
    fn huge_numbers_of_blocks_saturate() {
        let most = i64::MAX;
        let text = format!("Node 0, zone Normal {most} 1 {most} {most}\n").repeat(2);
        let free = parse(text.as_bytes());
        assert_eq!(free.huge_pages(4096, 4096), Some(u64::MAX));
        assert_eq!(free.huge_pages(8192, 4096), Some(u64::MAX));
        for (page_bytes, base_page_bytes) in [(0, 4096), (u64::MAX, 4096), (2 << 20, 0)] {
            assert_eq!(free.huge_pages(page_bytes, base_page_bytes), None);
        }
    }

    #[test]
    fn invalid_zones_are_skipped() {
        let text = b"Node 0, zone Normal 1 x\nNode 0, zone DMA 1\nzone 1\nNode 1 zone DMA 7\n\
            Node 1, zone DMA 18446744073709551615\nNode 1, zone DMA -1\nNode 1, zone \xff 1 \xff\n\
            Node 1, zone";
        assert_eq!(parse(text), FreeBlocks(BTreeMap::from([(0, vec![1])])));
        assert_eq!(parse(b""), FreeBlocks::default());
    }
}
