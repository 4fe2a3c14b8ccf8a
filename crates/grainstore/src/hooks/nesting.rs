//! Which hooks this thread is clearing around just now.

use std::cell::RefCell;

use crate::sync::{Arc, per_thread};

per_thread! {
    /// The addresses of those hooks. They can't be reused: whoever is clearing holds the hooks.
    static CLEARING: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

/// Proof that this call is the outermost one on its thread for its hooks, until it is dropped.
pub(super) struct Entered {
    address: usize,
}

impl Entered {
    /// Enters, unless this thread is inside already. `identity` is what all clones of the hooks
    /// share.
    pub(super) fn outermost<T>(identity: &Arc<T>) -> Option<Self> {
        let address = Arc::as_ptr(identity).addr();
        // A thread that is ending has no list any more: then each call is taken for the outermost,
        // which notifies once too often rather than not at all.
        let nested = CLEARING
            .try_with(|clearing| {
                let mut clearing = clearing.borrow_mut();
                let nested = clearing.contains(&address);
                if !nested {
                    clearing.push(address);
                }
                nested
            })
            .unwrap_or(false);
        // Made only if it is the outermost: its drop is what leaves.
        if nested { None } else { Some(Self { address }) }
    }
}

impl Drop for Entered {
    /// Also runs when a panic passes, so that the thread's next clear notifies again.
    fn drop(&mut self) {
        let _ = CLEARING.try_with(|clearing| {
            clearing.borrow_mut().retain(|address| *address != self.address);
        });
    }
}
