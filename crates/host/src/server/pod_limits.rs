//! Limits of the pod on huge pages, from environment variables of the container.
//!
//! Kubernetes limits a pod in a cgroup above those of its containers, which is not visible inside
//! the container (kubernetes issue 85938). The downward API can set an environment variable to the
//! limit: `resourceFieldRef: limits.hugepages-2Mi`, a number of bytes.

use std::ffi::{OsStr, OsString};

use crate::{
    escape,
    linux::cgroup::{Group, Limits},
    units::{PageSize, kubernetes_size, parse_size},
};

use crate::server::facts::{Facts, InvalidLimit};

/// Maximum number of characters shown, longer than any valid number of bytes.
const LONGEST_SHOWN: usize = 40;

/// A number of at least this size is a number of bytes: in kilobytes, it would be 256 GB.
const LEAST_OF_BYTES: u64 = 256 << 20;

impl Facts {
    /// Adds the limits in the environment, as cgroups above all others. An empty variable is
    /// ignored.
    #[must_use]
    pub fn with_pod_limits(mut self, environment: impl Fn(&str) -> Option<OsString>) -> Self {
        let Ok(hugetlb) = &mut self.state.hugetlb else {
            return self;
        };
        for pool in self.state.pools.iter().flatten() {
            let page_bytes = pool.page_bytes;
            let variable = variable(page_bytes);
            let Some(value) = environment(&variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            // Kubernetes limits are multiples of the page size. Any other small number means that a
            // divisor has changed the unit.
            let is_of_bytes =
                |bytes: &u64| bytes.is_multiple_of(page_bytes) || *bytes >= LEAST_OF_BYTES;
            let Some(bytes) = bytes(&value).filter(is_of_bytes) else {
                self.invalid_limits.push(InvalidLimit {
                    page_bytes,
                    variable,
                    value: escape::shortened(&escape::name(&value), LONGEST_SHOWN),
                });
                continue;
            };
            // The pod uses at least as much as the container.
            let mut all = hugetlb.groups.iter().flat_map(|group| &group.limits);
            let of_container = all.rfind(|limits| limits.page_bytes == page_bytes);
            let limits = Limits {
                page_bytes,
                fault_limit: Some(bytes),
                fault_use: of_container.and_then(|limits| limits.fault_use),
                reservation_limit: None,
                reservation_use: of_container.and_then(|limits| limits.reservation_use),
            };
            hugetlb.groups.push(Group {
                directory: variable.into(),
                limits: vec![limits],
                is_set_outside: true,
                is_told: true,
            });
        }
        self
    }
}

/// The name of the variable: `PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi` for the Kubernetes resource
/// `hugepages-2Mi`.
fn variable(page_bytes: u64) -> String {
    let size = kubernetes_size(PageSize(page_bytes));
    format!("PG_HUGEINFO_LIMIT_HUGEPAGES_{size}")
}

/// Parses a number of bytes. Kubernetes quantities are signed 64-bit integers.
fn bytes(value: &OsStr) -> Option<u64> {
    parse_size(value.to_str()?, 1).filter(|bytes| i64::try_from(*bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        linux::{
            cgroup::{Hugetlb, Version},
            hugepages::Pool,
        },
        server::state::{HugePages, Server, SharedMemoryType, State},
    };

    #[test]
    fn variables_are_named_as_kubernetes_names_page_sizes() {
        for (page_bytes, size) in [
            (64 << 10, "64Ki"),
            (2 << 20, "2Mi"),
            (512 << 20, "512Mi"),
            (1 << 30, "1Gi"),
        ] {
            let name = format!("PG_HUGEINFO_LIMIT_HUGEPAGES_{size}");
            assert_eq!(variable(page_bytes), name);
        }
    }

    /// The limit on pages of 2 MB that this value of the variable sets, and the invalid values.
    fn limit(value: &str) -> (Option<u64>, usize) {
        let mut state = State::unread(Server {
            huge_pages: HugePages::Try,
            shared_memory_type: SharedMemoryType::Mmap,
            huge_page_size_bytes: None,
            shared_memory_bytes: 1 << 30,
        });
        state.pools = Ok(vec![Pool::empty(2 << 20)]);
        state.hugetlb = Ok(Hugetlb {
            version: Version::V2,
            groups: Vec::new(),
            counts_as_memory: false,
        });
        let facts = Facts::unread(state).with_pod_limits(|_| Some(value.into()));
        let groups = facts.state.hugetlb.expect("it was set").groups;
        let limits = groups.iter().flat_map(|group| &group.limits);
        let limit = limits.filter_map(|limits| limits.fault_limit).next();
        (limit, facts.invalid_limits.len())
    }

    /// 1073 MB are 536.5 pages, so only its size shows that the number is one of bytes.
    #[test]
    fn limit_is_a_number_of_bytes_or_has_a_unit() {
        for value in ["1125122048", "1125122048B", "1098752Ki", "1073Mi"] {
            assert_eq!(limit(value), (Some(1_125_122_048), 0), "{value}");
        }
        assert_eq!(limit("2097152"), (Some(2 << 20), 0));
        assert_eq!(limit(""), (None, 0));
    }

    /// With a divisor, the number is one of kB, MB or pages.
    #[test]
    fn limit_in_another_unit_is_invalid() {
        for value in [
            "1098752",
            "1073",
            "537",
            "1125122048 bytes",
            "-1",
            "9223372036854775808",
        ] {
            assert_eq!(limit(value), (None, 1), "{value}");
        }
    }
}
