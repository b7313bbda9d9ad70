//! `/proc/buddyinfo`: free memory by the size of its blocks (mm/vmstat.c `frag_show_print`). A huge
//! page needs a whole block.

use std::collections::BTreeMap;

use crate::linux::{
    error::ReadError,
    root::Root,
    text::{lines, parse_number, words},
};

/// Free blocks of all zones of each node, by order: `[0]` counts blocks of one base page, `[9]`
/// blocks of 512.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeBlocks(pub BTreeMap<u32, Vec<u64>>);

impl FreeBlocks {
    /// Huge pages that the free blocks hold as they are, without the kernel moving anything: those
    /// of one node, or of all. `None`: such a page is larger than any block, as 1 GB is.
    pub fn huge_pages(
        &self,
        node: Option<u32>,
        page_bytes: u64,
        base_page_bytes: u64,
    ) -> Option<u64> {
        let is_meant = |number: u32| node.is_none_or(|node| node == number);
        let nodes = self.0.iter().filter(|(number, _)| is_meant(**number));
        nodes
            .map(|(_, blocks)| held(blocks, page_bytes, base_page_bytes))
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
    const PATH: &str = "proc/buddyinfo";
    root.parse(
        PATH,
        "a node, a zone and numbers of free blocks were expected",
        parse,
    )
}

/// Lines such as `Node 0, zone   Normal   5   2   0`. Errors: the number of a line of another form.
pub fn parse(bytes: &[u8]) -> Result<FreeBlocks, usize> {
    let mut nodes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for (number, line) in lines(bytes) {
        let mut words = words(line);
        let is_zone = words.next() == Some(b"Node");
        let node = words.next().and_then(|word| word.strip_suffix(b","));
        let node = node.and_then(parse_number);
        let node = node.and_then(|node| u32::try_from(node).ok());
        let is_zone = is_zone && words.next() == Some(b"zone");
        let (true, Some(node), Some(_)) = (is_zone, node, words.next()) else {
            return Err(number);
        };
        let free = nodes.entry(node).or_default();
        for (order, word) in words.enumerate() {
            let blocks = parse_number(word).ok_or(number)?;
            if order == free.len() {
                free.push(0);
            }
            free[order] = free[order].saturating_add(blocks);
        }
    }
    Ok(FreeBlocks(nodes))
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
        assert_eq!(parse(TWO_NODES), Ok(FreeBlocks(expected)));
    }

    #[test]
    fn larger_blocks_hold_several_pages() {
        let free = parse(TWO_NODES).unwrap_or_default();
        assert_eq!(free.huge_pages(None, 2 << 20, 4096), Some(4 + 2 * 9));
        assert_eq!(free.huge_pages(Some(0), 2 << 20, 4096), Some(3 + 2 * 8));
        assert_eq!(free.huge_pages(Some(1), 2 << 20, 4096), Some(1 + 2));
        assert_eq!(free.huge_pages(Some(7), 2 << 20, 4096), None);
        assert_eq!(free.huge_pages(None, 4 << 20, 4096), Some(9));
        assert_eq!(free.huge_pages(None, 1 << 30, 4096), None);
        // 64 kB base pages: 512 MB are order 13, beyond the 11 orders shown here.
        assert_eq!(free.huge_pages(None, 512 << 20, 64 << 10), None);
        assert_eq!(
            free.huge_pages(None, 2 << 20, 64 << 10),
            Some(2 + 2 * 2 + 4 + 2 * 8 + 4 * 16 + 9 * 32)
        );
    }

    #[test]
    fn another_form_is_refused() {
        assert_eq!(parse(b"Node 0, zone Normal 1 x\n"), Err(1));
        assert_eq!(parse(b"Node 0, zone DMA 1\nzone 1\n"), Err(2));
        assert_eq!(parse(b""), Ok(FreeBlocks::default()));
    }
}
