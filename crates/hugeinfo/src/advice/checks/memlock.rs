//! The limit on locked memory, which much advice names and which has no part in PostgreSQL's huge
//! pages.

use serde_json::json;

use crate::advice::{
    check::{Check, Status},
    thresholds::{IO_URING_LOCKED_BYTES, IO_URING_LOCKS_BEFORE},
};
use crate::{advice::words::human, server::surroundings::Surroundings};

const NAME: &str = "memlock";

pub(super) fn check(around: &Surroundings) -> Check {
    let limit = match &around.locked_memory {
        Ok(limit) => *limit,
        Err(absent) => {
            let finding = format!(
                "the limit on locked memory cannot be told, and has no part in huge pages: {absent}"
            );
            return Check::new(NAME, Status::Unknown, finding);
        }
    };
    let shown = limit.map_or_else(|| "unlimited".to_owned(), human);
    let is_old =
        version(&around.host.kernel_release).is_some_and(|kernel| kernel < IO_URING_LOCKS_BEFORE);
    let is_low = limit.is_some_and(|bytes| bytes < IO_URING_LOCKED_BYTES);
    let check = if around.uses_io_uring && is_old && is_low {
        let finding = format!(
            "io_method = io_uring takes its rings from locked memory on Linux {}, and the limit is {shown}; huge pages do not need it",
            around.host.kernel_release
        );
        Check::new(NAME, Status::Warning, finding).with_remedy(
            "LimitMEMLOCK=infinity in the systemd unit; then restart PostgreSQL".to_owned(),
        )
    } else {
        let finding =
            format!("memlock ({shown}) has no part in PostgreSQL's huge pages: nothing to set");
        Check::new(NAME, Status::Ok, finding)
    };
    check.with_evidence(json!({
        "memlock_bytes": limit,
        "kernel_release": around.host.kernel_release,
        "io_uring": around.uses_io_uring,
    }))
}

/// The first two numbers of `uname -r`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_of_kernels() {
        assert_eq!(version("6.18.5"), Some((6, 18)));
        assert_eq!(version("4.18.0-553.el8_10.x86_64"), Some((4, 18)));
        assert_eq!(version("5.15-generic"), Some((5, 15)));
        assert_eq!(version("next"), None);
    }
}
