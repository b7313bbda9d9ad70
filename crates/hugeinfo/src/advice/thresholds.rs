//! Where a finding begins to be worth an administrator's time: all in one place, each with its
//! reason. What pools have to leave of RAM is [`LEFT_PERCENT`](crate::model::memory::LEFT_PERCENT),
//! because remedies use it, too.

/// Idle huge pages are a warning when they are both more than this share of what is needed ...
pub(crate) const IDLE_OF_NEED_PERCENT: u64 = 10;
/// ... and more than this share of RAM. Below, setting the pool again is not worth the work.
pub(crate) const IDLE_OF_RAM_PERCENT: u64 = 1;

/// Page tables are large beyond this share of RAM: memory that the file cache then lacks. On huge
/// pages they stay far below it, whatever the number of connections.
pub(crate) const PAGE_TABLES_OF_RAM_PERCENT: u64 = 2;
/// Or beyond this share of the segment that they map, the price of a hundred connections that have
/// touched all of it ...
pub(crate) const PAGE_TABLES_OF_SEGMENT_PERCENT: u64 = 20;
/// ... if they are worth the talk at all: idle processes have some hundred kB each.
pub(crate) const PAGE_TABLES_AT_LEAST_BYTES: u64 = 64 << 20;

/// Swapped out by the processes of one server: what they touched at their start and never again may
/// well be gone, and is less.
pub(crate) const SWAP_BYTES: u64 = 64 << 20;

/// Faults that read from disk, a second, over the life of the processes that are there: a healthy
/// server has them only while it starts.
pub(crate) const MAJOR_FAULTS_PER_SECOND: u64 = 10;
/// Processes that are younger altogether tell nothing yet: a start has major faults of its own.
pub(crate) const MAJOR_FAULTS_AFTER_SECONDS: u64 = 600;

/// With strict overcommit, promises beyond this share of the limit: a few connections more, and
/// `fork` or `palloc` fails.
pub(crate) const COMMITTED_PERCENT: u64 = 90;

/// The segment lies on one node when that has more than this share of the pages that were touched
/// ...
pub(crate) const SEGMENT_ON_ONE_NODE_PERCENT: u64 = 90;
/// ... and enough of them were touched to tell.
pub(crate) const SEGMENT_TOUCHED_BYTES: u64 = 1 << 30;

/// Before this kernel (5.12), each process is charged for its ring of `io_method = io_uring` ...
pub(crate) const IO_URING_LOCKS_BEFORE: (u32, u32) = (5, 12);
/// ... and since this one (6.14) the user is charged for all rings.
pub(crate) const IO_URING_LOCKS_SINCE: (u32, u32) = (6, 14);
/// Locked memory of one ring with the 64 entries that PostgreSQL asks for, as measured.
pub(crate) const IO_URING_RING_BYTES: u64 = 8 << 10;
