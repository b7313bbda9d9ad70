use crate::scene::{GB, MB, Scene, limited};
use hugeinfo::server::{
    facts::{HugePages, SharedMemoryType},
    restored::{Because, Kept, TooLow, Value, WalLevel},
    surroundings::Files,
};

fn connections() -> TooLow {
    number("max_connections", 20, 100, Because::Primary)
}

fn number(setting: &'static str, value: u64, least: u64, because: Because) -> TooLow {
    TooLow {
        setting,
        value: Some(Value::Number(value)),
        least: Value::Number(least),
        because,
    }
}

fn level(value: WalLevel, least: WalLevel, kept: Kept) -> TooLow {
    TooLow {
        setting: "wal_level",
        value: Some(Value::WalLevel(value)),
        least: Value::WalLevel(least),
        because: Because::Exist(kept, 1),
    }
}

fn several() -> Vec<TooLow> {
    vec![
        number(
            "max_replication_slots",
            1,
            3,
            Because::Exist(Kept::Slots, 3),
        ),
        level(WalLevel::Replica, WalLevel::Logical, Kept::LogicalSlots),
    ]
}

fn others() -> Vec<TooLow> {
    vec![
        number(
            "max_prepared_transactions",
            0,
            2,
            Because::Exist(Kept::PreparedTransactions, 2),
        ),
        TooLow {
            setting: "hot_standby",
            value: Some(Value::Switch(false)),
            least: Value::Switch(true),
            because: Because::Exist(Kept::LogicalSlots, 1),
        },
        number(
            "max_active_replication_origins",
            1,
            10,
            Because::Untold(Kept::Origins),
        ),
    ]
}

/// 2 GB wait, the pool has them, and a control group lets so many MB be touched.
fn larger(m: &mut Scene, limit: u64) {
    m.pool(0).total = 1024;
    m.pool(0).free = 999;
    limited(&mut m.facts, Some(limit), None);
    m.waits(|next| next.shared_memory_bytes = 2 * GB);
}

table! { restart_with_files;
    "nothing waits" |_| {} Ok "no waiting setting";
    "more than the pool has" |m| { m.waits(|next| next.shared_memory_bytes = 2 * GB) }
        Warning "wait for a restart" "the server needs 1024 huge pages of 2 MB; the pool can give 537"
        => "sysctl -w vm.nr_hugepages=1024";
    "the server would start, and break" |m| { larger(m, 1100) }
        Warning "wait for a restart" "after a restart the server would crash"
        => "echo 2147483648 > /sys/fs/cgroup/pg/hugetlb.2MB.max; in Kubernetes raise the pod's limit on huge pages instead";
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
    "as much as the primary has" |m| { m.around.files = Files::TooLow(vec![connections()]) }
        Critical "the next start would fail: max_connections = 20, and the primary has 100"
        => "set max_connections to at least 100, as much as the primary has";
    "several, and more is wrong: no remedy may start the server"
        |m| { m.fall_back(537); m.around.files = Files::TooLow(several()) }
        Critical
        "max_replication_slots = 1, and there are 3 replication slots; wal_level = replica, and there is 1 logical replication slot"
        => "set max_replication_slots to at least 3, or drop those slots of pg_replication_slots that nobody needs; set wal_level to logical, or drop the logical slots of pg_replication_slots";
    "others" |m| { m.around.files = Files::TooLow(others()) }
        Critical
        "max_prepared_transactions = 0, and there are 2 prepared transactions; hot_standby = off, and there is 1 logical replication slot; max_active_replication_origins = 1, and the number of replication origins cannot be determined here"
        => "set max_prepared_transactions to at least 2, or end those transactions of pg_prepared_xacts first; set hot_standby to on, or drop the logical slots of pg_replication_slots; set max_active_replication_origins to at least 10, or count the replication origins first";
    "physical slots" |m| { m.around.files = Files::TooLow(vec![level(WalLevel::Minimal, WalLevel::Replica, Kept::PhysicalSlots)]) }
        Critical "wal_level = minimal, and there is 1 physical replication slot"
        => "set wal_level to at least replica, or drop the physical slots of pg_replication_slots";
    "nobody may look" |m| { m.around.files = Files::Unseen("for superusers".to_owned()) } Unknown "for superusers";
}
