//! When files were last changed.
//!
//! The change time (ctime) also shows that an older file was moved or linked to a path, and nobody
//! can set it back. Modification times miss both.

use std::{os::fd::AsFd, path::Path, time::Duration};

use rustix::fs::{FileType, Stat, fstat, lstat, stat};

/// Time since 1970 when an open file was last changed. `None`: unknown.
pub fn of(file: &impl AsFd) -> Option<Duration> {
    time(&fstat(file).ok()?)
}

/// Like [`of`], for a path: when the file, or a link in the last part of the path, was changed.
pub fn of_path(path: &Path) -> Option<Duration> {
    let found = lstat(path).ok()?;
    let changed = time(&found);
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => changed.max(time(&stat(path).ok()?)),
        _ => changed,
    }
}

fn time(stat: &Stat) -> Option<Duration> {
    let seconds = u64::try_from(stat.st_ctime).ok()?;
    let nanoseconds = u32::try_from(stat.st_ctime_nsec).ok()?;
    Some(Duration::new(seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        time::{SystemTime, UNIX_EPOCH},
    };

    use super::*;

    #[test]
    fn older_files_and_new_links_count_as_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (old, link) = (directory.path().join("old"), directory.path().join("link"));
        let file = File::create(&old).expect("created");
        let hour = Duration::from_secs(3600);
        file.set_modified(SystemTime::now() - hour).expect("set");
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("after 1970");
        for found in [of(&file), of_path(&old)] {
            assert!(
                found.is_some_and(|found| found + hour / 2 > now),
                "{found:?}"
            );
        }
        symlink("old", &link).expect("a link");
        let changed = |path: &Path| of_path(path).expect("a time");
        assert!(changed(&link) >= changed(&old));
        assert_eq!(Some(changed(&link)), time(&lstat(&link).expect("a link")));
        fs::remove_file(&old).expect("removed");
        assert_eq!(of_path(&link), None);
    }
}
