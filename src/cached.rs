//! Facts that this backend caches until one of its mounts, or a mount of process 1, changes. Lists
//! of mounts can be long, so reading them for each query would be slow.

use std::{
    cell::{OnceCell, RefCell},
    mem::ManuallyDrop,
    sync::Arc,
    time::{Duration, Instant},
};

use host::{
    linux::{
        boot, container,
        error::{Absence, Absent, ReadError, fact},
        mounts::{WATCHED, Watch},
        process::children,
        root::Root,
        steady::Steady,
    },
    server::visibility::{self, Visibility},
};

use crate::{
    error::Error,
    postgres::{self, descriptors::Descriptors},
};

/// The kernel does not report changes that are made in other mount namespaces, and sandboxes might
/// report none.
const LONGEST: Duration = Duration::from_secs(60);

/// Facts that are valid until the watch reports a change.
struct Known {
    since: Instant,
    watch: Watch,
    /// Keeps the files of the watch counted by PostgreSQL.
    _descriptors: Descriptors,
    steady: OnceCell<Arc<Steady>>,
    is_container: OnceCell<Option<bool>>,
    is_etc_kept: OnceCell<Result<bool, Absent>>,
    is_ours: OnceCell<Result<bool, Absent>>,
    visibility: OnceCell<Visibility>,
}

thread_local! {
    // Without a destructor, for which the C library would allocate memory at the first use, and end
    // the process if there is none.
    static KNOWN: ManuallyDrop<RefCell<Option<Known>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// The root of the running system, with the cached facts.
pub(crate) fn root() -> Root {
    let root = Root::system();
    KNOWN.with(|known| {
        let mut known = known.borrow_mut();
        let Some(known) = fresh(&root, &mut known) else {
            return root;
        };
        if known.steady.get().is_none()
            && let Ok(steady) = Steady::read(&root)
        {
            let _ = known.steady.set(Arc::new(steady));
        }
        match known.steady.get() {
            Some(steady) => root.with_steady(Arc::clone(steady)),
            None => root,
        }
    })
}

/// Like [`container::is_container`], cached.
pub(crate) fn is_container(root: &Root) -> Result<Option<bool>, Error> {
    known(
        root,
        |known| &known.is_container,
        Option::is_some,
        || container::is_container(root),
    )
}

/// Like [`boot::is_etc_kept`], cached.
pub(crate) fn is_etc_kept(root: &Root) -> Result<Result<bool, Absent>, Error> {
    let is_lasting = |found: &Result<bool, Absent>| match found {
        Ok(_) => true,
        Err(absent) => absent.why == Absence::OfAnotherRoot,
    };
    known(
        root,
        |known| &known.is_etc_kept,
        is_lasting,
        || boot::is_etc_kept(root),
    )
}

/// Like [`children::is_ours`] for the parent of this backend, cached. The result depends on the
/// mount of `/proc`.
pub(crate) fn is_ours(root: &Root, parent: u32) -> Result<Result<bool, Absent>, Error> {
    let read = || fact(children::is_ours(root, parent));
    if !postgres::processes::has_parent() {
        return Ok(read()?);
    }
    known(root, |known| &known.is_ours, Result::is_ok, read)
}

/// Like [`visibility::read`], cached. The result depends on the options of `/proc`.
pub(crate) fn visibility(root: &Root) -> Result<Visibility, Error> {
    known(
        root,
        |known| &known.visibility,
        |found| *found != Visibility::Hidden,
        || visibility::read(root),
    )
}

/// Returns the cached value, or reads it. A value that might be due to a passing failure is not
/// cached.
fn known<T: Clone>(
    root: &Root,
    of: fn(&Known) -> &OnceCell<T>,
    is_lasting: impl FnOnce(&T) -> bool,
    read: impl FnOnce() -> Result<T, ReadError>,
) -> Result<T, Error> {
    KNOWN.with(|known| {
        let mut known = known.borrow_mut();
        let cell = fresh(root, &mut known).map(of);
        if let Some(value) = cell.and_then(OnceCell::get) {
            return Ok(value.clone());
        }
        let value = read()?;
        if let Some(cell) = cell.filter(|_| is_lasting(&value)) {
            let _ = cell.set(value.clone());
        }
        Ok(value)
    })
}

/// Returns the cache, emptied if it is no longer valid. `None`: the lists of mounts cannot be
/// watched here.
fn fresh<'k>(root: &Root, known: &'k mut Option<Known>) -> Option<&'k Known> {
    let is_valid = |known: &Known| known.since.elapsed() < LONGEST && !known.watch.has_changed();
    if !known.as_ref().is_some_and(is_valid) {
        // Closes the files of the old watch first.
        *known = None;
        *known = start(root);
    }
    known.as_ref()
}

/// Starts an empty cache.
fn start(root: &Root) -> Option<Known> {
    Some(Known {
        since: Instant::now(),
        _descriptors: Descriptors::acquire(WATCHED)?,
        watch: Watch::start(root).ok()?,
        steady: OnceCell::new(),
        is_container: OnceCell::new(),
        is_etc_kept: OnceCell::new(),
        is_ours: OnceCell::new(),
        visibility: OnceCell::new(),
    })
}
