//! Where a finding begins to be worth an administrator's time: all in one place, each with its reason.

/// Idle huge pages are a warning when they are both more than this share of what is needed ...
pub(super) const IDLE_OF_NEED_PERCENT: u64 = 10;
/// ... and more than this share of RAM. Below, setting the pool again is not worth the work.
pub(super) const IDLE_OF_RAM_PERCENT: u64 = 1;
