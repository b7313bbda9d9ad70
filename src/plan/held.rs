//! Resources of a call, which are released however the call ends.

use std::{cell::RefCell, mem::ManuallyDrop};

use super::scratch::Scratch;
use crate::postgres::child::Child;

/// Resources, in the order in which they are released.
#[derive(Default)]
pub(super) struct Held {
    pub(super) program: Option<Child>,
    pub(super) reader: Option<Child>,
    pub(super) scratch: Option<Scratch>,
}

thread_local! {
    // Without a destructor, for which the C library would allocate memory at the first use, and end
    // the process if there is none.
    pub(super) static HELD: ManuallyDrop<RefCell<Held>> = const {
        ManuallyDrop::new(RefCell::new(Held {
            program: None,
            reader: None,
            scratch: None,
        }))
    };
}

/// Ends the child, if there is one, and removes the scratch directory.
pub(super) fn tidy() {
    drop(HELD.with(|held| held.take()));
}

/// Cleans up when a call returns, or unwinds from an error.
pub(super) struct Tidy;

impl Drop for Tidy {
    fn drop(&mut self) {
        tidy();
    }
}
