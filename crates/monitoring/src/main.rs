//! Makes the files in `monitoring/` from the `.toml` files there: `scripts/cargo run
//! -p hugeinfo-monitoring`, without arguments.
//!
//! A format is a template in `templates/`, and a line in [`outputs::OUTPUTS`].

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

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring")
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = directory();
    let list = List::read()?;
    for (name, make) in outputs::OUTPUTS {
        let path = directory.join(name);
        let parent = path.parent().ok_or("a file without a directory")?;
        fs::create_dir_all(parent)?;
        fs::write(&path, make(&list)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn what_is_committed_is_what_is_made() {
        let list = List::read().unwrap();
        for (name, make) in outputs::OUTPUTS {
            let committed = fs::read_to_string(directory().join(name)).unwrap_or_default();
            assert!(
                committed == make(&list).unwrap(),
                "monitoring/{name} is not up to date: scripts/cargo run -p hugeinfo-monitoring"
            );
        }
    }
}
