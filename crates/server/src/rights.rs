//! Capabilities of a process that affect its limits and the OOM killer.

use hugeinfo_linux::{
    error::{ReadError, fact},
    process::{
        Process,
        status::{self, Capabilities},
        uid_map,
    },
};

/// See [`Environment`](crate::environment::Environment) for both. `None`: unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// Whether the process is exempt from `RLIMIT_MEMLOCK`.
    pub has_ipc_lock: Option<bool>,
    /// Whether the process, or one started like it, can lower its `oom_score_adj`.
    pub can_lower_oom_score: Option<bool>,
}

impl Rights {
    /// Reads `status` and `uid_map` of a process.
    ///
    /// Errors: only out of memory.
    pub fn read(process: &Process, buffer: &mut Vec<u8>) -> Result<Self, ReadError> {
        let held = fact(status::read_capabilities(process, buffer))?.unwrap_or_default();
        let is_initial = fact(uid_map::is_initial(process, buffer))?.ok();
        let has = |mask: Option<u64>, capability| {
            // Without the bit, the namespace makes no difference.
            match Capabilities::contains(mask?, capability) {
                true => is_initial,
                false => Some(false),
            }
        };
        Ok(Self {
            has_ipc_lock: has(held.effective, Capabilities::IPC_LOCK),
            can_lower_oom_score: has(held.bounding, Capabilities::SYS_RESOURCE),
        })
    }
}
