//! Pages taken from nodes in turn, one from each, in large steps.

/// Takes a number of pages in turn from nodes, beginning with one of them. Tells what each
/// gives, and whose turn it is then.
pub(super) fn in_turn(pages: u64, first: usize, most: &[u64]) -> (Vec<u64>, usize) {
    let mut given = vec![0; most.len()];
    let mut turn = first;
    let mut left = pages;
    while left > 0 {
        let able: Vec<usize> = (0..most.len())
            .map(|step| turn.wrapping_add(step) % most.len())
            .filter(|&node| given[node] < most[node])
            .collect();
        let Some(least) = able.iter().map(|&node| most[node] - given[node]).min() else {
            break;
        };
        let all = u64::try_from(able.len()).unwrap_or(u64::MAX);
        // whole rounds at once, then what is left of one
        let rounds = (left / all).min(least);
        for &node in &able {
            let share = if rounds > 0 { rounds } else { left.min(1) };
            if share == 0 {
                break;
            }
            given[node] += share;
            left -= share;
            turn = (node + 1) % most.len();
        }
    }
    (given, turn)
}

/// Takes a number of pages from nodes, the first one first.
pub(super) fn in_order(pages: u64, most: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let mut left = pages;
    let mut given = Vec::new();
    for &(node, most) in most {
        let share = left.min(most);
        if share > 0 {
            given.push((node, share));
        }
        left -= share;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel does it: page by page.
    fn page_by_page(pages: u64, first: usize, most: &[u64]) -> (Vec<u64>, usize) {
        let mut given = vec![0; most.len()];
        let mut turn = first;
        for _ in 0..pages {
            let able = (0..most.len())
                .map(|step| (turn + step) % most.len())
                .find(|&node| given[node] < most[node]);
            let Some(node) = able else { break };
            given[node] += 1;
            turn = (node + 1) % most.len();
        }
        (given, turn)
    }

    #[test]
    fn in_turn_is_page_by_page() {
        for pages in 0..24 {
            for first in 0..3 {
                for most in 0..6_u64.pow(3) {
                    let most = [most % 6, most / 6 % 6, most / 36];
                    assert_eq!(
                        in_turn(pages, first, &most),
                        page_by_page(pages, first, &most),
                        "{pages} pages of {most:?}, first {first}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_nodes_give_nothing() {
        assert_eq!(in_turn(3, 0, &[]), (vec![], 0));
    }

    #[test]
    fn large_numbers_take_no_time() {
        let most = [u64::MAX, u64::MAX / 2, 7];
        let (given, _) = in_turn(1 << 50, 1, &most);
        assert_eq!(given.iter().sum::<u64>(), 1 << 50);
        assert_eq!(given[2], 7);
    }

    #[test]
    fn in_order_takes_the_first_first() {
        assert_eq!(in_order(5, &[(2, 3), (0, 0), (1, 9)]), [(2, 3), (1, 2)]);
    }
}
