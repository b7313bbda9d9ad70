//! The limit on locked memory, which much advice names, but which does not affect PostgreSQL's huge
//! pages.

use serde_json::json;

use crate::{
    advice::{
        check::{Answer, Finding},
        thresholds::{IO_URING_LOCKED_BYTES, IO_URING_LOCKS_BEFORE},
        words::human,
    },
    model::machine::Machine,
};

pub(super) fn judge(machine: &Machine) -> Answer {
    let around = machine.around()?;
    let limit = *around.locked_memory.as_ref()?;
    let kernel = &around.host.kernel_release;
    let shown = limit.map_or_else(|| "unlimited".to_owned(), human);
    let is_old = version(kernel).is_some_and(|version| version < IO_URING_LOCKS_BEFORE);
    let is_low = limit.is_some_and(|bytes| bytes < IO_URING_LOCKED_BYTES);
    let finding = if around.uses_io_uring && is_old && is_low {
        Finding::warning(format!(
            "io_method = io_uring locks memory for its rings on Linux {kernel}, and the limit is {shown}; huge pages do not need it"
        ))
    } else {
        Finding::ok(format!(
            "memlock ({shown}) does not affect PostgreSQL's huge pages: nothing to set"
        ))
    };
    Ok(finding.with(json!({
        "memlock_bytes": limit,
        "kernel_release": kernel,
        "io_uring": around.uses_io_uring,
    })))
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
