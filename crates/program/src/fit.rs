//! `hugeinfo fit`: the largest `shared_buffers` for a given memory.

use advice::model::{
    limits::CgroupLimits,
    machine::{Machine, ServerState},
    memory,
};
use clap::Args;
use host::units::{Bytes, PageSize, Pages, huge_page_size_setting, huge_pages};
use serde_json::json;

use crate::{
    Done, Host,
    error::Error,
    machine,
    next_start::{LargestBuffers, NextStart},
    plan,
    planned::{Detail, normalized},
    size::Size,
    status::Format,
};

/// The options of `fit`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: crate::Server,
    #[command(flatten)]
    host: Host,
    #[command(flatten)]
    capacity: Capacity,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Capacity {
    /// The number of huge pages.
    #[arg(long, value_name = "N")]
    pages: Option<u64>,
    /// The total size of the huge pages, such as 1254Mi.
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Size>,
    /// The percentage of RAM for huge pages. Leave memory for everything else.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=100))]
    percent_of_ram: Option<u64>,
    /// The limit of this pod, from its cgroups or the downward API.
    #[arg(long)]
    pod: bool,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    if let Some(given) = options
        .server
        .settings
        .iter()
        .find(|setting| normalized(setting).starts_with("shared_buffers="))
    {
        return Err(Error::new(format!(
            "-c {given}: fit computes shared_buffers"
        )));
    }
    let start = NextStart::read(&options.server, Detail::All)?;
    let next = start.settings()?.server.clone();
    plan::note_differences(&next);
    let machine = match options.capacity.pod {
        true => machine::stopped(&start, ServerState::NotCreated)?,
        false => plan::machine(&options.host, next)?,
    };
    let size = PageSize(plan::target(&machine)?.pool.page_bytes);
    let capacity = capacity(&options.capacity, &machine, size)?;
    let mut server = options.server.at(options.server.directory());
    // --page-size can have changed it. 0 is the default of the kernel.
    let requested = machine.next_start().huge_page_size_bytes.unwrap_or(0);
    let setting = format!("huge_page_size={}kB", requested / 1024);
    server.settings.push(setting);
    let largest = LargestBuffers::read(&server, Pages(capacity), size)?;
    let found = largest.fit.map_err(|too_few| {
        Error::with_hint(
            format!(
                "{} {} too few: the minimum of shared_buffers needs {}",
                huge_pages(Pages(capacity), size),
                Pages(capacity).verb("is", "are"),
                too_few.required
            ),
            "The minimum depends on the other settings, such as max_connections",
        )
    })?;
    let pool = found.required * size;
    if memory::missing_for_pools(&machine, pool).is_some_and(|missing| missing > Bytes(0)) {
        eprintln!(
            "NOTICE:  {pool} of huge pages leave too little memory for other programs on a host \
             with {} of RAM",
            machine.ram().unwrap_or_default()
        );
    }
    let buffers = Bytes(found.blocks.saturating_mul(largest.block_bytes));
    let setting = format!("{}kB", buffers.0 / 1024);
    let text = match options.format {
        Format::Json => {
            let json = json!({
                "schema": 1,
                "postgresql": start.version,
                "shared_buffers": setting,
                "shared_buffers_bytes": buffers.0,
                "page_size_bytes": size.0,
                "available_pages": capacity,
                "required_pages": found.required.0,
                "segment_bytes": found.segment_bytes,
                "tail_waste_bytes": found.tail_waste.0,
            });
            format!("{json:#}\n")
        }
        Format::Text => {
            let size_setting = plan::requested_size(&machine).map(huge_page_size_setting);
            format!(
                "shared_buffers = {setting}\n{}# {} of {}; {} unused at the end\n",
                size_setting.map_or(String::new(), |setting| setting + "\n"),
                found.required,
                huge_pages(Pages(capacity), size),
                found.tail_waste
            )
        }
    };
    Ok(text.into())
}

/// The pages that the segment can have.
fn capacity(capacity: &Capacity, machine: &Machine, size: PageSize) -> Result<u64, Error> {
    if let Some(pages) = capacity.pages {
        return Ok(pages);
    }
    if let Some(bytes) = capacity.bytes {
        return Ok(bytes.0 / size.0);
    }
    if capacity.pod {
        let limits =
            CgroupLimits::of(machine, size).map_err(|absent| Error::new(absent.to_string()))?;
        let limits = [limits.fault_limit, limits.reservation_limit];
        let limit = limits.into_iter().flatten().min();
        return limit.map(|bytes| bytes / size.0).ok_or_else(|| {
            Error::with_hint(
                format!("no visible limit on {size} pages applies here"),
                "A container does not see the limit of its pod: set the variables of the downward API (docs/kubernetes.md)",
            )
        });
    }
    let percent = capacity.percent_of_ram.unwrap_or_default();
    let ram = machine.ram();
    let ram =
        ram.ok_or_else(|| Error::with_hint("the RAM of this host is unknown", "Use --host-ram"))?;
    let pages = ram.percent(percent).whole_pages(size);
    let missing = memory::missing_for_pools(machine, pages * size).unwrap_or_default();
    if missing > Bytes(0) {
        let most = (pages * size - missing).0.saturating_mul(100) / ram.0.max(1);
        return Err(Error::with_hint(
            format!("{percent}% of {ram} leaves too little memory for other programs"),
            format!("Use --percent-of-ram {most} or less"),
        ));
    }
    Ok(pages.0)
}
