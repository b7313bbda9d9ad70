//! Thresholds above which a finding is worth an administrator's time, each with its reason. The
//! memory that has to stay available is [`reserve`](crate::model::memory::reserve), because
//! remedies use it, too.

/// Idle huge pages are a warning if they exceed both this percentage of the needed pages ...
pub(crate) const IDLE_OF_NEED_PERCENT: u64 = 10;
/// ... and this percentage of RAM. Changing the pool for fewer pages is not worth the work.
pub(crate) const IDLE_OF_RAM_PERCENT: u64 = 1;

/// Page tables are large above this percentage of RAM, which the file cache then lacks. On huge
/// pages they stay far below it, for any number of connections.
pub(crate) const PAGE_TABLES_OF_RAM_PERCENT: u64 = 2;
/// On small pages, also above this percentage of the segment: 100 connections that have faulted in
/// all of it ...
pub(crate) const PAGE_TABLES_OF_SEGMENT_PERCENT: u64 = 20;
/// ... if they exceed this size. Idle processes have some hundred kB each.
pub(crate) const PAGE_TABLES_AT_LEAST_BYTES: u64 = 64 << 20;

/// Swapped-out memory of all processes of the server. Memory that processes used only while they
/// started can be swapped out without harm, and is less.
pub(crate) const SWAP_BYTES: u64 = 64 << 20;

/// Major faults per second, on average over the life of the present processes. A healthy server has
/// them only while it starts.
pub(crate) const MAJOR_FAULTS_PER_SECOND: u64 = 10;
/// Minimum age of the server in seconds, because starting causes major faults.
pub(crate) const MAJOR_FAULTS_AFTER_SECONDS: u64 = 600;

/// Committed memory is near the limit above this percentage of `CommitLimit`: with a few more
/// connections, `fork` or `palloc` fails.
pub(crate) const COMMITTED_PERCENT: u64 = 90;

/// The segment is on few nodes if they have more than this percentage of its faulted-in pages ...
pub(crate) const SEGMENT_ON_ONE_NODE_PERCENT: u64 = 90;
/// ... and if at least this much of it has been faulted in.
pub(crate) const SEGMENT_TOUCHED_BYTES: u64 = 1 << 30;
