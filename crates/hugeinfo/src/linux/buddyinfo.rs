//! `/proc/buddyinfo`: free memory by the size of its blocks (mm/vmstat.c `frag_show_print`). A huge
//! page needs a whole block.

use crate::linux::{
    error::ReadError,
    root::Root,
    text::{lines, parse_number, words},
};

/// Free blocks of all zones of all nodes, by order: `[0]` counts blocks of one base page, `[9]`
/// blocks of 512.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeBlocks(pub Vec<u64>);

impl FreeBlocks {
    /// Huge pages that the free blocks hold as they are, without the kernel moving anything.
    /// `None`: such a page is larger than any block, as 1 GB is.
    pub fn huge_pages(&self, page_bytes: u64, base_page_bytes: u64) -> Option<u64> {
        let pages = page_bytes.checked_div(base_page_bytes)?;
        let order = usize::try_from(pages.checked_ilog2()?).ok()?;
        let large_enough = self.0.get(order..).filter(|blocks| !blocks.is_empty())?;
        let held = large_enough
            .iter()
            .zip(0_u32..)
            .map(|(&blocks, larger)| blocks.saturating_mul(1_u64.checked_shl(larger).unwrap_or(0)));
        Some(held.fold(0, u64::saturating_add))
    }
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
    let mut free: Vec<u64> = Vec::new();
    for (number, line) in lines(bytes) {
        let mut words = words(line);
        let is_zone = words.next() == Some(b"Node") && words.nth(1) == Some(b"zone");
        if !is_zone || words.next().is_none() {
            return Err(number);
        }
        for (order, word) in words.enumerate() {
            let blocks = parse_number(word).ok_or(number)?;
            if order == free.len() {
                free.push(0);
            }
            free[order] = free[order].saturating_add(blocks);
        }
    }
    Ok(FreeBlocks(free))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_NODES: &[u8] = b"Node 0, zone      DMA      1      0      0      1      2      1      1      0      1      1      3 \n\
        Node 0, zone   Normal   4096    512      7      0      0      0      0      0      0      2      5 \n\
        Node 1, zone   Normal      1      1      1      1      1      1      1      1      1      1      1 \n";

    #[test]
    fn blocks_of_all_zones_are_added_up() {
        let free = parse(TWO_NODES).map(|free| free.0);
        assert_eq!(free, Ok(vec![4098, 513, 8, 2, 3, 2, 2, 1, 2, 4, 9]));
    }

    #[test]
    fn larger_blocks_hold_several_pages() {
        let free = parse(TWO_NODES).unwrap_or_default();
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
    fn another_form_is_refused() {
        assert_eq!(parse(b"Node 0, zone Normal 1 x\n"), Err(1));
        assert_eq!(parse(b"Node 0, zone DMA 1\nzone 1\n"), Err(2));
        assert_eq!(parse(b""), Ok(FreeBlocks::default()));
    }
}
