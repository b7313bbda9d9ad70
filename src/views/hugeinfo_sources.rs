//! `hugeinfo_sources`: a row for each kernel source, and whether it can be read here.

use hugeinfo::{linux::root::Root, server::sources};
use pgrx::{pg_sys::panic::ErrorReport, prelude::*};

use super::functions::functions;
use crate::{
    error::Error,
    postgres::{encoding::shown, server::subject},
};

functions! {
    cost = 10000;
    /// Each kernel source that this extension reads, and whether it can be read here.
    view hugeinfo_sources;
    columns (
        /// Stable short name of the file, system call or directory.
        name!(source, &'static str),
        /// Path of the source; files of a process are those of the postmaster.
        name!(path, String),
        /// ok, denied (no permission), missing (this kernel, container or sandbox does not have
        /// it), or failed (an error, or an unknown format).
        name!(status, &'static str),
        /// Views and functions that use it.
        name!(used_for, Vec<&'static str>),
    );
    fn hugeinfo_sources() {
        rows()
    }
}

/// Tries to read each source of the postmaster and this backend, then each source of the host. A
/// source that cannot be read is a result, not an error.
fn rows() -> Result<Vec<Row>, Error> {
    let sources = sources::probe(&Root::system(), &subject());
    let rows = sources.into_iter().map(|source| {
        (
            source.name,
            shown(source.path),
            source.status.as_str(),
            used_for(source.name),
        )
    });
    Ok(rows.collect())
}

/// The SQL objects that use a source, including those that use it only as a fallback.
fn used_for(source: &str) -> Vec<&'static str> {
    let objects = readers(source).split_whitespace();
    let with_its_like = |object| std::iter::once(object).chain(alike(object));
    objects.flat_map(with_its_like).collect()
}

/// Another object that reads all sources of this object.
fn alike(object: &str) -> Option<&'static str> {
    match object {
        "hugeinfo_checks" => Some("hugeinfo_runbook"),
        "hugeinfo_mappings" => Some("hugeinfo_postmaster_mappings"),
        "hugeinfo_plan" => Some("hugeinfo_next_start"),
        _ => None,
    }
}

/// Their names, separated by blanks.
fn readers(source: &str) -> &'static str {
    match source {
        "PROCMAP_QUERY" => {
            "hugeinfo_footprint hugeinfo_status hugeinfo_pools hugeinfo_page_tables \
             hugeinfo_memory hugeinfo_fault_rates hugeinfo_backends hugeinfo_mappings \
             hugeinfo_instances hugeinfo_plan hugeinfo_holders hugeinfo_checks"
        }
        "maps" => {
            "hugeinfo_footprint hugeinfo_status hugeinfo_pools hugeinfo_page_tables \
             hugeinfo_memory hugeinfo_fault_rates hugeinfo_backends hugeinfo_mappings \
             hugeinfo_numa hugeinfo_instances hugeinfo_plan hugeinfo_holders hugeinfo_checks"
        }
        "smaps" => {
            "hugeinfo_footprint hugeinfo_status hugeinfo_pools hugeinfo_page_tables \
             hugeinfo_memory hugeinfo_mappings hugeinfo_instances hugeinfo_plan \
             hugeinfo_holders hugeinfo_checks"
        }
        "smaps_rollup" => "hugeinfo_memory",
        "numa_maps" => {
            "hugeinfo_footprint hugeinfo_numa hugeinfo_status \
             hugeinfo_pools hugeinfo_page_tables hugeinfo_instances hugeinfo_plan \
             hugeinfo_holders hugeinfo_checks"
        }
        "status" => {
            "hugeinfo_footprint hugeinfo_status hugeinfo_pools hugeinfo_plan hugeinfo_backends \
             hugeinfo_page_tables hugeinfo_numa hugeinfo_instances \
             hugeinfo_holders hugeinfo_checks"
        }
        "stat" | "children" | "exe" => {
            "hugeinfo_footprint hugeinfo_backends hugeinfo_fault_rates hugeinfo_memory \
             hugeinfo_mappings hugeinfo_page_tables hugeinfo_numa hugeinfo_holders \
             hugeinfo_checks"
        }
        "oom_score" | "oom_score_adj" => "hugeinfo_backends hugeinfo_checks",
        "cmdline" | "cwd" => {
            "hugeinfo_footprint hugeinfo_backends hugeinfo_fault_rates hugeinfo_instances \
             hugeinfo_plan hugeinfo_fit hugeinfo_checks"
        }
        "cgroup" => "hugeinfo_status hugeinfo_pools hugeinfo_plan hugeinfo_host hugeinfo_checks",
        "mountinfo" => {
            "hugeinfo_status hugeinfo_pools hugeinfo_holders hugeinfo_plan hugeinfo_host \
             hugeinfo_checks"
        }
        "hugetlb control group" => "hugeinfo_status hugeinfo_pools hugeinfo_plan hugeinfo_checks",
        "memory control group" => "hugeinfo_host hugeinfo_checks",
        "meminfo" => {
            "hugeinfo_meminfo hugeinfo_host hugeinfo_status hugeinfo_pools hugeinfo_page_tables \
             hugeinfo_instances hugeinfo_plan hugeinfo_fit hugeinfo_checks"
        }
        "vmstat" => "hugeinfo_vmstat hugeinfo_checks",
        "vm settings" | "transparent huge pages" => "hugeinfo_host hugeinfo_checks",
        "pools" => {
            "hugeinfo_status hugeinfo_pools hugeinfo_page_tables hugeinfo_plan hugeinfo_fit \
             hugeinfo_holders hugeinfo_checks"
        }
        "nodes" => {
            "hugeinfo_numa hugeinfo_host hugeinfo_status hugeinfo_pools \
             hugeinfo_plan hugeinfo_checks"
        }
        "processors" => "hugeinfo_host",
        // uid_map, buddyinfo, sysctl files, …
        _ => "hugeinfo_checks",
    }
}
