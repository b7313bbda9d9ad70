//! The row of `hugeinfo_status`.

use serde::Serialize;

use super::answer::Verdict;
use crate::model::{
    forecast::{self, Forecast},
    machine::{Machine, ServerState},
};
use host::{
    linux::pages::pages_required,
    server::state::{Files, Server},
};

/// The columns of `hugeinfo_status`, without the remedy. `None`: unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusRow {
    pub status: &'static str,
    pub code: &'static str,
    pub reason: String,
    pub huge_pages: &'static str,
    pub shared_memory_type: &'static str,
    pub in_use: Option<bool>,
    pub page_size_bytes: Option<u64>,
    pub segment_bytes: Option<u64>,
    pub segment_pages: Option<u64>,
    pub huge_page_size_bytes: Option<u64>,
    pub required_huge_pages: Option<u64>,
    pub pool_total_pages: Option<u64>,
    pub pool_available_pages: Option<u64>,
    pub shortfall_pages: Option<u64>,
    pub fits_after_restart: Option<bool>,
    pub recommended_nr_hugepages: Option<u64>,
}

impl StatusRow {
    /// The row for a machine. A server that does not run has no segment.
    pub fn of(machine: &Machine, verdict: &Verdict) -> Self {
        let segment = machine
            .segment()
            .filter(|_| machine.server_state == ServerState::Running);
        // Computed as if the server requested huge pages, with the size that is set.
        let next = Server {
            huge_page_size_bytes: machine.state.next_start().huge_page_size_bytes,
            ..machine.next_start_on_huge_pages()
        };
        let asked_for = machine.size_asked_for(&next).map(|size| size.0);
        let target = Forecast::for_target(machine);
        let target = target.as_ref();
        // The kernel does not have the size, or the pools are unknown: compute from the requested
        // size.
        let required = match target {
            Some(target) => Some(target.required.0),
            None => {
                asked_for.map(|page_bytes| pages_required(machine.state.needed_bytes(), page_bytes))
            }
        };
        let page_size_bytes = segment.and_then(|segment| segment.page_bytes);
        // Figures of the next start are unknown until a person names the server.
        let is_named = !matches!(machine.state.next.files, Files::NotNamed(_));
        Self {
            status: verdict.status.as_str(),
            code: verdict.code,
            reason: verdict.reason.clone(),
            huge_pages: machine.state.server.huge_pages.as_str(),
            shared_memory_type: machine.state.server.shared_memory_type.as_str(),
            in_use: machine.is_on_huge_pages().filter(|_| segment.is_some()),
            page_size_bytes,
            segment_bytes: segment.map(|segment| segment.bytes),
            segment_pages: segment
                .zip(page_size_bytes)
                .map(|(segment, page)| segment.bytes.div_ceil(page)),
            huge_page_size_bytes: asked_for,
            required_huge_pages: required.filter(|_| is_named),
            pool_total_pages: target.map(|target| target.pool.total),
            pool_available_pages: target.and_then(|target| target.pool.available()),
            shortfall_pages: target
                .and_then(|target| target.shortfall)
                .map(|pages| pages.0)
                .filter(|_| is_named),
            fits_after_restart: forecast::fits(&machine.with_next_start(next)).filter(|_| is_named),
            recommended_nr_hugepages: target
                .and_then(Forecast::recommended)
                .map(|pages| pages.0)
                .filter(|_| is_named),
        }
    }
}
