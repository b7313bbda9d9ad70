//! The directory below which all kernel files are read.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use crate::error::ReadError;

/// Most of the kernel's files are shorter, and come with one read.
const FIRST_READ: usize = 4096;

/// `/` on a real system, a captured tree in a test.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// The running system.
    pub fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A tree that stands for a system.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// `path`, absolute or not, taken from this root.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub(crate) fn open(&self, path: impl AsRef<Path>) -> Result<File, ReadError> {
        let path = self.path(path);
        File::open(&path).map_err(|e| ReadError::from_io(path, e))
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
        let path = path.as_ref();
        let mut bytes = Vec::with_capacity(FIRST_READ);
        // Through `take`, since `File` itself would first ask for a size, which the kernel's files don't have.
        self.open(path)?
            .take(u64::MAX)
            .read_to_end(&mut bytes)
            .map_err(|e| ReadError::from_io(self.path(path), e))?;
        Ok(bytes)
    }

    /// The names in a directory; those that are not UTF-8 are none of the kernel's.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
        let path = self.path(path);
        let names = fs::read_dir(&path).and_then(|entries| {
            entries
                .map(|entry| entry.map(|e| e.file_name().into_string().ok()))
                .filter_map(Result::transpose)
                .collect()
        });
        names.map_err(|e| ReadError::from_io(path, e))
    }
}
