//! `hugeinfo plan`: the number of huge pages for planned settings.

use std::fmt::Write;

use advice::{
    model::{forecast::Forecast, machine::Machine, other_host},
    render,
};
use clap::{Args, ValueEnum};
use host::{
    linux::{hugepages, meminfo, pages, root::Root},
    server::state::{HugePages, Server, SharedMemoryType},
    units::{Bytes, PageSize, Pages, huge_page_size_setting, huge_pages, kubernetes_resource},
};
use serde_json::json;

use crate::{Done, Host, error::Error, next_start::NextStart, planned::Detail};

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs, with the names of the columns of `hugeinfo_plan`.
    Json,
    /// A line for a file in /etc/sysctl.d.
    Sysctl,
    /// The resources of a container in Kubernetes.
    K8s,
}

/// The options of `plan`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    #[command(flatten)]
    host: Host,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let start = NextStart::read(&options.server, Detail::All)?;
    let next = start.settings()?.server.clone();
    note_differences(&next);
    let bytes = next.shared_memory_bytes;
    let machine = machine(&options.host, next)?;
    let result = Planning {
        bytes,
        // Figures are for huge_pages = try.
        machine: machine.with_next_start(machine.next_start_on_huge_pages()),
        has_others_pages: options.host.is_this() && has_pools(),
        shared_buffers: start.settings()?.shared_buffers_bytes,
        version: start.version,
    };
    if result.has_others_pages && options.format == Format::Sysctl {
        eprintln!(
            "NOTICE:  this host has huge pages, which others might use: the number is for this \
             server alone"
        );
    }
    let text = match options.format {
        Format::Text => result.text(),
        Format::Json => format!("{:#}\n", result.json()),
        Format::Sysctl => result.sysctl()?,
        Format::K8s => result.k8s()?,
    };
    Ok(text.into())
}

/// Reports settings with which the server would not request the pages that are printed.
pub(crate) fn note_differences(next: &Server) {
    if next.huge_pages == HugePages::Off {
        eprintln!("NOTICE:  huge_pages = off: figures are for huge_pages = try");
    }
    if next.shared_memory_type == SharedMemoryType::Sysv {
        eprintln!(
            "NOTICE:  shared_memory_type = sysv does not use huge pages: figures are for mmap"
        );
    }
}

/// The smallest huge page of any kernel.
const LEAST_HUGE_PAGE: u64 = 64 << 10;

/// The host with empty pools, on which this server is to start.
pub(crate) fn machine(host: &Host, next: Server) -> Result<Machine, Error> {
    let root = Root::system();
    let here = meminfo::read(&root)?.0.ok();
    let base = pages::base_page_bytes();
    let default = here.as_ref().and_then(|here| here.default_huge_page_bytes);
    let (next, sizes) = match host.page_size {
        Some(size) if !size.0.is_power_of_two() || size.0 < LEAST_HUGE_PAGE => {
            return Err(Error::new(
                "--page-size: expected a huge page size, such as 2MB or 1GB",
            ));
        }
        // If it is not the default size, the server has to request it.
        Some(size) => {
            let huge_page_size_bytes = Some(size.0).filter(|bytes| default != Some(*bytes));
            let next = Server {
                huge_page_size_bytes,
                ..next
            };
            (next, vec![size.0])
        }
        None => (next, hugepages::page_sizes(&root).unwrap_or_default()),
    };
    if sizes.is_empty() {
        return Err(Error::with_hint(
            "the kernel of this host has no huge pages, or hides them",
            "For another host, use --page-size",
        ));
    }
    let ram = host.host_ram.map(|ram| ram.0);
    let ram = ram.or_else(|| here.and_then(|here| here.total_bytes));
    Ok(other_host::machine(next, base, ram, default, &sizes))
}

/// The size that the server has to request with `huge_page_size`. `None`: it is the default size.
pub(crate) fn requested_size(machine: &Machine) -> Option<PageSize> {
    machine.next_start().huge_page_size_bytes.map(PageSize)
}

/// The pool that the settings select.
pub(crate) fn target(machine: &Machine) -> Result<Forecast, Error> {
    Forecast::for_target(machine)
        .ok_or_else(|| Error::with_hint("the default huge page size is unknown", "Use --page-size"))
}

/// Whether this host has huge pages, which others might use. Also if its pools cannot be read.
fn has_pools() -> bool {
    !hugepages::read(&Root::system()).is_ok_and(|pools| pools.iter().all(|pool| pool.total == 0))
}

struct Planning {
    version: String,
    machine: Machine,
    /// The number of pages for this server alone would take pages from others.
    has_others_pages: bool,
    bytes: u64,
    shared_buffers: u64,
}

impl Planning {
    fn forecasts(&self) -> Vec<Forecast> {
        Forecast::for_each_pool(&self.machine).unwrap_or_default()
    }

    fn how_to_set(&self, forecast: &Forecast) -> Option<String> {
        if self.has_others_pages {
            return Some(
                "# this host has huge pages, which others might use: see hugeinfo preflight, \
                 or hugeinfo status if the server runs"
                    .to_owned(),
            );
        }
        render::how_to_set(&self.machine, forecast)
    }

    fn text(&self) -> String {
        let mut text = format!(
            "PostgreSQL {}: {} of shared memory ({} bytes){}\n",
            self.version,
            Bytes(self.bytes),
            self.bytes,
            match self.machine.ram() {
                Some(ram) if Bytes(self.bytes) > ram => format!(", more than the RAM of {ram}"),
                Some(ram) if ram > Bytes(0) => {
                    format!(
                        ", {:.0}% of {ram} of RAM",
                        Bytes(self.bytes).percentage_of(ram)
                    )
                }
                _ => String::new(),
            }
        );
        for forecast in self.forecasts() {
            let size = PageSize(forecast.pool.page_bytes);
            let default = match forecast.is_default {
                Some(true) => ", the default size",
                _ => "",
            };
            let _ = writeln!(
                text,
                "\n{}{default}; {} unused at the end",
                huge_pages(forecast.required, size),
                forecast.tail_waste
            );
            for line in self
                .how_to_set(&forecast)
                .iter()
                .flat_map(|text| text.lines())
            {
                let _ = writeln!(text, "    {line}");
            }
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let requested = Forecast::for_target(&self.machine).map(|target| target.pool.page_bytes);
        let rows: Vec<_> = self
            .forecasts()
            .iter()
            .map(|forecast| {
                json!({
                    "page_size_bytes": forecast.pool.page_bytes,
                    "is_default": forecast.is_default,
                    "is_requested": requested == Some(forecast.pool.page_bytes),
                    "segment_bytes": self.bytes,
                    "required_pages": forecast.required.0,
                    "tail_waste_bytes": forecast.tail_waste.0,
                    "recommended_nr_hugepages": forecast.recommended().map(|pages| pages.0),
                    "how_to_set": self.how_to_set(forecast),
                })
            })
            .collect();
        json!({ "schema": 1, "postgresql": self.version, "plan": rows })
    }

    /// The number of pages for `vm.nr_hugepages`.
    fn of_default_size(&self) -> Result<Pages, Error> {
        let target = target(&self.machine)?;
        if target.is_default != Some(true) {
            let size = PageSize(target.pool.page_bytes);
            return Err(Error::with_hint(
                format!(
                    "vm.nr_hugepages sets pages of the default size, and the server requests {size}"
                ),
                "Use --format text",
            ));
        }
        Ok(target.required)
    }

    fn sysctl(&self) -> Result<String, Error> {
        let pages = self.of_default_size()?;
        Ok(format!("vm.nr_hugepages = {pages}\n"))
    }

    /// Kubernetes requires equal requests and limits, and memory or CPU in addition to huge pages.
    fn k8s(&self) -> Result<String, Error> {
        let target = target(&self.machine)?;
        let size = PageSize(target.pool.page_bytes);
        let resource = kubernetes_resource(target.required * size, size);
        let values = format!("{{ memory: 2Gi, {resource} }}");
        let setting = match target.is_default {
            Some(true) => String::new(),
            _ => format!("# postgresql.conf: {}\n", huge_page_size_setting(size)),
        };
        Ok(format!(
            "# {} for {} of shared memory, {} more than shared_buffers.\n{setting}\
             # memory: set it for processes and page cache; shared memory is not part of it.\n\
             resources:\n  requests: {values}\n  limits: {values}\n",
            huge_pages(target.required, size),
            Bytes(self.bytes),
            Bytes(self.bytes) - Bytes(self.shared_buffers),
        ))
    }
}
