//! What this backend knows from its mounts and those of process 1. The lists can be long, so they
//! are read only again after a mount has changed.

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

struct Known {
    watch: Watch,
    steady: OnceCell<Arc<Steady>>,
    /// Accounts for the files of the watch.
    _descriptors: Descriptors,
    is_container: OnceCell<Option<bool>>,
    is_etc_kept: OnceCell<Result<bool, Absent>>,
    is_ours: OnceCell<Result<bool, Absent>>,
}

thread_local! {
    static KNOWN: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// The root of the running system, with the facts that stay the same.
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

/// [`container::is_container`].
pub(crate) fn is_container(root: &Root) -> Result<Option<bool>, Error> {
    known(
        root,
        |known| &known.is_container,
        || container::is_container(root),
    )
}

/// [`boot::is_etc_kept`].
pub(crate) fn is_etc_kept(root: &Root) -> Result<Result<bool, Absent>, Error> {
    known(root, |known| &known.is_etc_kept, || boot::is_etc_kept(root))
}

/// [`children::is_ours`] for the parent of this backend. It depends on the mount of `/proc`.
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

/// `None`: the lists cannot be watched here.
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
