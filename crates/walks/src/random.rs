//! Numbers that a seed gives again (splitmix64).

/// Never used for anything but tests.
pub struct Random(u64);

impl Random {
    /// A seed of its own for each walk.
    pub fn of(base: u64, walk: u64) -> Self {
        let mut random = Self(base);
        let base = random.next();
        Self(base ^ walk.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// 0 to the figure itself.
    pub fn to(&mut self, most: u64) -> u64 {
        self.next().checked_rem(most.saturating_add(1)).unwrap_or(0)
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.to(times.saturating_sub(1)) == 0
    }

    /// One of them.
    pub fn of_list<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        let most = u64::try_from(list.len()).ok()?.checked_sub(1)?;
        list.get(usize::try_from(self.to(most)).ok()?)
    }

    /// A figure near that one, as often as not the very limit of something.
    pub fn near(&mut self, figure: u64) -> u64 {
        (figure + self.to(2)).saturating_sub(1)
    }
}
