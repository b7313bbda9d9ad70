//! Thresholds above which a finding is worth an administrator's time, and the memory that remedies
//! leave, each with its reason.

/// The [`reserve`](crate::model::memory::reserve) that stays available is this percentage of RAM,
/// for all programs that allocate meanwhile ...
pub(crate) const RESERVE_PERCENT: u64 = 2;
/// ... and at least this much, which is enough for the system and a login on a small host.
pub(crate) const RESERVE_BYTES: u64 = 256 << 20;
/// Other programs are assumed to use this percentage of RAM on a host whose `MemAvailable` is
/// unknown, such as a host that is only planned.
pub(crate) const ASSUMED_USE_PERCENT: u64 = 10;

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

/// `Committed_AS` is wrong if it exceeds the limit and twice all RAM and swap, although at least
/// this percentage of RAM is available.
pub(crate) const CONTRADICTING_OF_RAM_PERCENT: u64 = 50;

/// `/proc/meminfo` is that of the host if `MemTotal` is at least this percentage of the memory of
/// all nodes, which also count what the kernel keeps for itself ...
pub(crate) const RAM_OF_NODES_PERCENT: u64 = 80;
/// ... and if `MemAvailable` is at least this percentage of their free memory ...
pub(crate) const AVAILABLE_OF_FREE_PERCENT: u64 = 50;
/// ... less this percentage of their memory, for the reserves of the kernel.
pub(crate) const KERNEL_RESERVES_OF_NODES_PERCENT: u64 = 5;

/// The segment is on few nodes if they have more than this percentage of its faulted-in pages ...
pub(crate) const SEGMENT_ON_ONE_NODE_PERCENT: u64 = 90;
/// ... and if at least this much of it has been faulted in.
pub(crate) const SEGMENT_TOUCHED_BYTES: u64 = 1 << 30;
/// A node has too much of the segment if it has this many times its even share ...
pub(crate) const SEGMENT_ON_FULL_NODE_SHARES: u64 = 3;
/// ... and less than this percentage of its memory is free, so that processes get memory of other
/// nodes ...
pub(crate) const FULL_NODE_FREE_PERCENT: u64 = 1;
/// ... while another node has at least this percentage free: memory is not short everywhere.
pub(crate) const OTHER_NODE_FREE_PERCENT: u64 = 10;

/// A cgroup is near its memory limit above this percentage of it, without the file cache: with a
/// few more connections, the kernel kills or throttles processes.
pub(crate) const NEAR_CGROUP_LIMIT_PERCENT: u64 = 95;

/// Findings name the memory of ZFS above this percentage of RAM. Less does not decide whether
/// memory is enough.
pub(crate) const ZFS_OF_RAM_PERCENT: u64 = 10;
