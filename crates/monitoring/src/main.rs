//! Generates the files for monitoring tools from the lists in `monitoring/`.
//!
//! `hugeinfo-monitoring DIRECTORY` writes all files. `hugeinfo-monitoring DIRECTORY PREFIX` writes
//! rules and dashboards for an exporter that adds PREFIX to the names of metrics.
//!
//! A format is a template in `templates/`, and a line in [`outputs`].

mod dashboards;
mod list;
mod outputs;
mod rules;
mod template;
mod zabbix;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use list::List;

/// Files that are also in the repository, so that they can be copied without a build.
const COMMITTED: [&str; 4] = [
    "postgres_exporter.yml",
    "prometheus/rules.yml",
    "grafana/server.json",
    "grafana/fleet.json",
];

fn in_repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../monitoring")
        .join(name)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments
        .next()
        .ok_or("usage: hugeinfo-monitoring DIRECTORY [PREFIX]")?;
    let list = List::read()?;
    let files = match arguments.next() {
        None => outputs::all(&list)?,
        Some(exporter) => outputs::with_prefix(&list, &exporter)?,
    };
    for (name, text) in files {
        let path = Path::new(&directory).join(&name);
        fs::create_dir_all(path.parent().ok_or("a file without a directory")?)?;
        fs::write(path, &text)?;
        if COMMITTED.contains(&name.as_str()) {
            fs::write(in_repository(&name), text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn committed_files_are_current() {
        let files = outputs::all(&List::read().unwrap()).unwrap();
        for name in COMMITTED {
            let committed = fs::read_to_string(in_repository(name)).unwrap_or_default();
            assert!(
                committed == files[name],
                "monitoring/{name} is not up to date: make monitoring"
            );
        }
    }
}
