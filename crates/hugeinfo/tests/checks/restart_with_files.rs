use crate::scene::{GB, MB, Scene, limited};
use hugeinfo::server::{
    facts::{HugePages, SharedMemoryType},
    surroundings::Files,
};

/// 2 GB wait, the pool has them, and a control group lets so many MB be touched.
fn larger(m: &mut Scene, limit: u64) {
    m.pool(0).total = 1024;
    m.pool(0).free = 999;
    limited(&mut m.facts, Some(limit), None);
    m.waits(|next| next.shared_memory_bytes = 2 * GB);
}

table! { restart_with_files;
    "nothing waits" |_| {} Ok "nothing that waits";
    "more than the pool has" |m| { m.waits(|next| next.shared_memory_bytes = 2 * GB) }
        Warning "wait for a restart" "1024 huge pages of 2 MB are required and the pool can give 537"
        => "sysctl -w vm.nr_hugepages=1024";
    "the server would start, and break" |m| { larger(m, 1100) }
        Warning "wait for a restart" "after a restart the server would break"
        => "echo 2147483648 > '/sys/fs/cgroup/pg/hugetlb.2MB.max'; in Kubernetes raise the pod's limit on huge pages instead";
    "under the limit" |m| { larger(m, 2048) } Ok "would get them again";
    "less" |m| { m.waits(|next| next.shared_memory_bytes = 100 * MB) } Ok "would get them again";
    "sysv, while huge pages are in use" |m| { m.waits(|next| next.shared_memory_type = SharedMemoryType::Sysv) }
        Warning "a restart would lose huge pages: shared_memory_type = sysv"
        => "ALTER SYSTEM SET shared_memory_type = 'mmap'";
    "off, while huge pages are in use" |m| { m.waits(|next| next.huge_pages = HugePages::Off) }
        Warning "a restart would lose huge pages: huge_pages = off"
        => "ALTER SYSTEM SET huge_pages = 'try'";
    "sysv, while none are" |m| { m.fall_back(537); m.waits(|next| next.shared_memory_type = SharedMemoryType::Sysv) }
        Ok "would not ask";
    "sysv and huge pages required, which PostgreSQL says only when it starts in earnest"
        |m| { m.waits(|next| { next.shared_memory_type = SharedMemoryType::Sysv; next.huge_pages = HugePages::On }) }
        Critical "a restart would fail" "shared_memory_type = sysv"
        => "ALTER SYSTEM SET shared_memory_type = 'mmap'";
    "refused" |m| { m.around.files = Files::Refused("invalid value for parameter \"shared_buffers\"".to_owned()) }
        Critical "shared_buffers"
        => "correct what the message names; SELECT * FROM pg_file_settings WHERE NOT applied names files and lines";
    "refused, and more is wrong: no remedy may start the server"
        |m| { m.fall_back(537); m.around.files = Files::Refused("syntax error".to_owned()) }
        Critical "syntax error"
        => "correct what the message names; SELECT * FROM pg_file_settings WHERE NOT applied names files and lines";
    "nobody may look" |m| { m.around.files = Files::Unseen("for superusers".to_owned()) } Unknown "for superusers";
}
