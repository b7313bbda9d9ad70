//! What a call holds, and gives back however it ends.

use std::{cell::RefCell, mem::ManuallyDrop};

use super::scratch::Scratch;
use crate::postgres::child::Child;

/// What has to go when a call ends, however it ends; in this order.
#[derive(Default)]
pub(super) struct Held {
    pub(super) program: Option<Child>,
    pub(super) reader: Option<Child>,
    pub(super) scratch: Option<Scratch>,
}

thread_local! {
    // Without a destructor, which the C library would have to make room for at the first use, and
    // where there is none it ends the process.
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

/// Tidies up when a call returns, or unwinds from an error.
pub(super) struct Tidy;

impl Drop for Tidy {
    fn drop(&mut self) {
        tidy();
    }
}
