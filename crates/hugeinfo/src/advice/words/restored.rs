//! In words: a start has no room for what it brings back.

use crate::server::restored::{Because, Kept, TooLow, Value, WalLevel};

/// What is wrong with these settings.
pub fn too_low(settings: &[TooLow]) -> String {
    join(settings, |one| {
        let setting = match one.value {
            Some(value) => format!("{} = {value}", one.setting),
            None => format!("{} is too low", one.setting),
        };
        match one.because {
            Because::Primary => format!("{setting}, and the primary has {}", one.least),
            Because::Exist(kept, 1) => format!("{setting}, and there is 1 {}", name(kept)),
            Because::Exist(kept, count) => {
                format!("{setting}, and there are {count} {}s", name(kept))
            }
            Because::Untold(kept) => format!(
                "{setting}, and the number of {}s cannot be determined here",
                name(kept)
            ),
        }
    })
}

/// What to do about them.
pub(super) fn raise(settings: &[TooLow]) -> String {
    join(settings, |one| {
        let setting = one.setting;
        let raise = match one.least {
            Value::Number(least) => format!("set {setting} to at least {least}"),
            Value::WalLevel(WalLevel::Replica) => format!("set {setting} to at least replica"),
            least => format!("set {setting} to {least}"),
        };
        match one.because {
            Because::Primary => format!("{raise}, as much as the primary has"),
            Because::Exist(kept, _) => format!("{raise}, or {}", without(kept)),
            Because::Untold(kept) => format!("{raise}, or count the {}s first", name(kept)),
        }
    })
}

fn join(settings: &[TooLow], say: impl Fn(&TooLow) -> String) -> String {
    let said: Vec<_> = settings.iter().map(say).collect();
    said.join("; ")
}

fn name(kept: Kept) -> &'static str {
    match kept {
        Kept::Slots => "replication slot",
        Kept::PhysicalSlots => "physical replication slot",
        Kept::LogicalSlots => "logical replication slot",
        Kept::PreparedTransactions => "prepared transaction",
        Kept::Origins => "replication origin",
    }
}

fn without(kept: Kept) -> &'static str {
    match kept {
        Kept::Slots => "drop those slots of pg_replication_slots that nobody needs",
        Kept::PhysicalSlots => "drop the physical slots of pg_replication_slots",
        Kept::LogicalSlots => "drop the logical slots of pg_replication_slots",
        Kept::PreparedTransactions => "end those transactions of pg_prepared_xacts first",
        Kept::Origins => "drop those origins of pg_replication_origin that nobody needs",
    }
}
