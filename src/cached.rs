//! Facts that this backend caches until one of its mounts, or a mount of process 1, changes. Lists
//! of mounts can be long, so reading them for each query would be slow.

use std::{
    cell::{OnceCell, RefCell},
    sync::Arc,
};

use hugeinfo::linux::{
    boot, container,
    error::{Absent, ReadError, fact},
    mounts::{WATCHED, Watch},
    process::children,
    root::Root,
    steady::Steady,
};

use crate::{error::Error, postgres::descriptors::Descriptors};

/// Facts that are valid until the watch reports a change.
struct Known {
    watch: Watch,
    steady: OnceCell<Arc<Steady>>,
    /// Keeps the files of the watch counted by PostgreSQL.
    _descriptors: Descriptors,
    is_container: OnceCell<Option<bool>>,
    is_etc_kept: OnceCell<Result<bool, Absent>>,
    is_ours: OnceCell<Result<bool, Absent>>,
}

thread_local! {
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// The root of the running system, with the cached facts.
pub(crate) fn root() -> Root {
    let root = Root::system();
    let steady = known(
        &root,
        |known| &known.steady,
        || Ok(Arc::new(Steady::read(&root)?)),
    );
    match steady {
        Ok(steady) => root.with_steady(steady),
        Err(_) => root,
    }
}

/// Like [`container::is_container`], cached.
pub(crate) fn is_container(root: &Root) -> Result<Option<bool>, Error> {
    known(
        root,
        |known| &known.is_container,
        || container::is_container(root),
    )
}

/// Like [`boot::is_etc_kept`], cached.
pub(crate) fn is_etc_kept(root: &Root) -> Result<Result<bool, Absent>, Error> {
    known(root, |known| &known.is_etc_kept, || boot::is_etc_kept(root))
}

/// Like [`children::is_ours`] for the parent of this backend, cached. The result depends on the
/// mount of `/proc`.
pub(crate) fn is_ours(root: &Root, parent: u32) -> Result<Result<bool, Absent>, Error> {
    let read = || fact(children::is_ours(root, parent));
    known(root, |known| &known.is_ours, read)
}

fn known<T: Clone>(
    root: &Root,
    of: fn(&Known) -> &OnceCell<T>,
    read: impl FnOnce() -> Result<T, ReadError>,
) -> Result<T, Error> {
    KNOWN.with_borrow_mut(|known| {
        if known.as_ref().is_none_or(|known| known.watch.has_changed()) {
            // Closes the files of the old watch first.
            *known = None;
            *known = start(root);
        }
        let Some(known) = known else {
            return Ok(read()?);
        };
        let cell = of(known);
        if let Some(value) = cell.get() {
            return Ok(value.clone());
        }
        let value = read()?;
        Ok(cell.get_or_init(|| value).clone())
    })
}

/// Starts an empty cache. `None`: the lists of mounts cannot be watched here.
fn start(root: &Root) -> Option<Known> {
    Some(Known {
        _descriptors: Descriptors::acquire(WATCHED)?,
        watch: Watch::start(root).ok()?,
        steady: OnceCell::new(),
        is_container: OnceCell::new(),
        is_etc_kept: OnceCell::new(),
        is_ours: OnceCell::new(),
    })
}
