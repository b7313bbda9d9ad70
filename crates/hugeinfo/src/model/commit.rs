//! CommitLimit: what all processes together may ask for where `vm.overcommit_memory` is 2.

/// Where the limit comes from. The kernel keeps one of the two and sets the other to 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `vm.overcommit_ratio`: percent of what RAM is not in huge pages.
    Ratio(u64),
    /// `vm.overcommit_kbytes`, which no pool changes.
    Kilobytes(u64),
}

/// What the limit is made of (mm/util.c, `vm_commit_limit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// `MemTotal`.
    pub ram_bytes: u64,
    /// `SwapTotal`.
    pub swap_bytes: u64,
    /// Ratio or figure.
    pub rule: Rule,
    /// Size of a small page: the kernel counts in these.
    pub page_bytes: u64,
}

impl Commit {
    /// CommitLimit while this many bytes are in the pools of all sizes, used or not.
    pub fn limit_bytes(&self, huge_bytes: u64) -> u64 {
        let pages = |bytes: u64| bytes.checked_div(self.page_bytes).unwrap_or(0);
        let allowed = match self.rule {
            Rule::Kilobytes(kilobytes) => pages(kilobytes.saturating_mul(1024)),
            Rule::Ratio(percent) => {
                let small = pages(self.ram_bytes).saturating_sub(pages(huge_bytes));
                small.saturating_mul(percent) / 100
            }
        };
        let all = allowed.saturating_add(pages(self.swap_bytes));
        all.saturating_mul(self.page_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    fn limit(ram: u64, swap: u64, rule: Rule, huge: u64) -> u64 {
        Commit {
            ram_bytes: ram,
            swap_bytes: swap,
            rule,
            page_bytes: 4096,
        }
        .limit_bytes(huge)
    }

    #[test]
    fn limits() {
        let half = Rule::Ratio(50);
        let fixed = Rule::Kilobytes(5 << 20);
        for (ram, swap, rule, huge, expected) in [
            (16 * GB, 0, half, 0, 8 * GB),
            (16 * GB, 2 * GB, half, 0, 10 * GB),
            (16 * GB, 0, half, 8 * GB, 4 * GB),
            (16 * GB, 0, Rule::Ratio(100), 8 * GB, 8 * GB),
            (16 * GB, 0, half, 17 * GB, 0),
            (16 * GB, 0, fixed, 0, 5 * GB),
            (16 * GB, GB, fixed, 8 * GB, 6 * GB),
            // a machine of 24684092 kB, whose kernel says 12342044 kB: an odd page is lost
            (24_684_092 << 10, 0, half, 0, 12_342_044 << 10),
            (16 * GB, 0, Rule::Ratio(u64::MAX), 0, u64::MAX),
        ] {
            assert_eq!(
                limit(ram, swap, rule, huge),
                expected,
                "{ram} {rule:?} {huge}"
            );
        }
    }
}
