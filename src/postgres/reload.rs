//! Detects changes of configuration files since the server read them.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use host::server::change_time;
use pgrx::pg_sys;

use super::{places, setting_source, settings};

/// PostgreSQL's epoch 2000-01-01, after 1970-01-01.
const POSTGRES_EPOCH: Duration = Duration::from_secs(946_684_800);

/// True if a setting that affects the size of shared memory or its pages is pending a restart, or
/// might be, because files have changed after the last reload. Does not notice a file that had no
/// settings before, unless it is new and in `conf.d` or in the directory of a file with settings.
pub(crate) fn something_may_wait() -> bool {
    settings::wait_for_restart() || changed_since_reload()
}

fn changed_since_reload() -> bool {
    // SAFETY: set when the files are read, only by this process.
    let read = unsafe { pg_sys::PgReloadTime };
    let Ok(read) = u64::try_from(read) else {
        return true;
    };
    let read = POSTGRES_EPOCH + Duration::from_micros(read);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    if now.is_ok_and(|now| now < read) {
        // The clock was set back since.
        return true;
    }
    let is_newer = |file: &Path| change_time::of_path(file).is_some_and(|changed| changed > read);
    let config_file = places::config_file();
    let mut files = setting_source::files();
    // Directories in which other files also change.
    let busy = [places::data_directory(), directory(&config_file)];
    let included: Vec<_> = files
        .iter()
        .map(|file| directory(file))
        .filter(|directory| !busy.contains(directory))
        .chain([directory(&config_file).join("conf.d")])
        .collect();
    files.extend([config_file, places::auto_conf()]);
    files.iter().chain(&included).any(|path| is_newer(path))
}

fn directory(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}
