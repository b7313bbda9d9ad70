//! `hugeinfo plan`: the number of huge pages for planned settings.

use std::fmt::Write;

use clap::{Args, ValueEnum};
use hugeinfo::{
    advice::{diagnosis, render},
    linux::{hugepages, meminfo, pages, root::Root},
    model::{forecast::Forecast, machine::Machine, other_host},
    server::facts::{HugePages, Server, SharedMemoryType},
    units::{Bytes, PageSize},
};
use serde_json::json;

use crate::{Host, error::Error, postgres::Planned};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs, with the names of the columns of `hugeinfo_plan`.
    Json,
    /// A line for a file in /etc/sysctl.d.
    Sysctl,
    /// Assignments for a shell.
    Env,
}

/// The options of `plan`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    #[command(flatten)]
    host: Host,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn run(options: &Options) -> Result<String, Error> {
    let planned = Planned::prepare(&options.server)?;
    let bytes = planned.segment_bytes(&[])?;
    let result = Planning {
        version: planned.version()?,
        machine: machine(&options.host, bytes)?,
        bytes,
    };
    Ok(match options.format {
        Format::Text => result.text(),
        Format::Json => format!("{:#}\n", result.json()),
        Format::Sysctl => result.sysctl()?,
        Format::Env => result.env()?,
    })
}

/// The host with empty pools, on which a server with a segment of this size is to start.
pub(crate) fn machine(host: &Host, segment_bytes: u64) -> Result<Machine, Error> {
    let root = Root::system();
    let here = meminfo::read(&root).ok();
    let base = pages::base_page_bytes();
    let (default, sizes) = match host.page_size {
        Some(size) if !size.0.is_power_of_two() || size.0 <= base => {
            return Err(Error::new(
                "--page-size: a huge page size was expected, such as 2MB or 1GB",
            ));
        }
        Some(size) => (Some(size.0), vec![size.0]),
        None => {
            let sizes = hugepages::page_sizes(&root).unwrap_or_default();
            (
                here.as_ref().and_then(|here| here.default_huge_page_bytes),
                sizes,
            )
        }
    };
    if sizes.is_empty() {
        return Err(Error::with_hint(
            "the kernel of this host has no huge pages, or hides them",
            "--page-size names the page size of another host",
        ));
    }
    let next = Server {
        huge_pages: HugePages::Try,
        shared_memory_type: SharedMemoryType::Mmap,
        huge_page_size_bytes: None,
        shared_memory_bytes: segment_bytes,
    };
    let ram = host.host_ram.map(|ram| ram.0);
    let ram = ram.or_else(|| here.and_then(|here| here.total_bytes));
    Ok(other_host::machine(next, base, ram, default, &sizes))
}

struct Planning {
    version: String,
    machine: Machine,
    bytes: u64,
}

impl Planning {
    fn forecasts(&self) -> Vec<Forecast> {
        Forecast::of_each_pool(&self.machine).unwrap_or_default()
    }

    /// The pool that the settings select.
    fn target(&self) -> Result<Forecast, Error> {
        Forecast::of_target(&self.machine).ok_or_else(|| {
            Error::with_hint("the default huge page size is unknown", "Use --page-size")
        })
    }

    fn how_to_set(&self, forecast: &Forecast) -> Option<String> {
        let size = PageSize(forecast.pool.page_bytes);
        render::remedy(&self.machine, &diagnosis::how_to_set(&self.machine, size))
    }

    fn text(&self) -> String {
        let mut text = format!(
            "PostgreSQL {}: {} of shared memory ({} bytes){}\n",
            self.version,
            Bytes(self.bytes),
            self.bytes,
            match self.machine.ram() {
                Some(ram) if ram > Bytes(0) => {
                    let percent = u128::from(self.bytes) * 100 / u128::from(ram.0);
                    format!(", {percent} % of {ram} of RAM")
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
                "\n{} pages of {size}{default}; {} unused at the end",
                forecast.required.0, forecast.tail_waste
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
        let rows: Vec<_> = self
            .forecasts()
            .iter()
            .map(|forecast| {
                json!({
                    "page_size_bytes": forecast.pool.page_bytes,
                    "is_default": forecast.is_default,
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

    fn sysctl(&self) -> Result<String, Error> {
        Ok(format!("vm.nr_hugepages = {}\n", self.target()?.required.0))
    }

    fn env(&self) -> Result<String, Error> {
        let target = self.target()?;
        Ok(format!(
            "HUGEINFO_SEGMENT_BYTES={}\nHUGEINFO_PAGE_SIZE_BYTES={}\nHUGEINFO_REQUIRED_PAGES={}\n",
            self.bytes, target.pool.page_bytes, target.required.0
        ))
    }
}
