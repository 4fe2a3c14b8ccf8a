//! This thread's readers, one for each cache that it uses.

use std::cell::{Cell, RefCell};

use super::slot::ReaderSlot;
use super::{Reader, Watcher};
use crate::sync::{Weak, per_thread};

/// The id of no cache.
const NO_CACHE: u64 = u64::MAX;
const NOTHING: (u64, ReaderSlot) = (NO_CACHE, ReaderSlot::NOWHERE);

/// How many caches a thread can go between without a search, if their ids differ in the lowest bits.
const WAYS: usize = 4;

per_thread! {
    /// The slots used last, by the lowest bits of their cache's id. Without a destructor, so that a
    /// look at it is one load.
    static RECENT: [Cell<(u64, ReaderSlot)>; WAYS] = [const { Cell::new(NOTHING) }; WAYS];
    static ALL: RefCell<Readers> = RefCell::new(Readers(Vec::new()));
}

/// Every reader of a thread, with the id of the cache it was taken for.
struct Readers(Vec<(u64, &'static Reader)>);

impl Drop for Readers {
    /// The thread ends: its readers go back to the caches that are still there.
    fn drop(&mut self) {
        // Gone already in a model.
        let _ = RECENT.try_with(|recent| recent.iter().for_each(|way| way.set(NOTHING)));
        for (cache, reader) in self.0.drain(..) {
            let watcher = {
                let watcher = reader.own.watcher.lock();
                watcher.clone().filter(|_| reader.is_for(cache))
            };
            if let Some(watcher) = watcher.and_then(|watcher| watcher.upgrade()) {
                watcher.thread_gone(reader);
            }
        }
    }
}

/// The slot that this thread used last for the cache, if that was of late: a good place for its next
/// pin.
#[inline(always)]
pub(crate) fn recent(cache: u64) -> Option<ReaderSlot> {
    let (id, slot) = RECENT.with(|recent| recent[cache as usize % WAYS].get());
    if id == cache { Some(slot) } else { None }
}

/// From now on this is the slot that the thread used last for the cache.
pub(crate) fn set_recent(cache: u64, slot: ReaderSlot) {
    RECENT.with(|recent| recent[cache as usize % WAYS].set((cache, slot)));
}

/// The reader that this thread has for the cache. An error while the thread ends.
fn search(cache: u64) -> Result<Option<&'static Reader>, Ending> {
    let found = ALL.try_with(|all| {
        all.borrow().0.iter().find(|(id, _)| *id == cache).map(|&(_, reader)| reader)
    });
    found.map_err(|_| Ending)
}

struct Ending;

/// The reader that this thread has for the cache, if it has one.
pub(crate) fn known(cache: u64) -> Option<&'static Reader> {
    match recent(cache) {
        Some(slot) => Some(slot.reader()),
        None => search(cache).ok().flatten(),
    }
}

/// This thread's reader for the cache; a new one from `take` if it has none. None while the thread
/// ends.
#[cold]
pub(crate) fn reader(
    cache: u64,
    take: impl FnOnce() -> &'static Reader,
) -> Option<&'static Reader> {
    let reader = search(cache).ok()?.unwrap_or_else(|| {
        let reader = take();
        let _ = ALL.try_with(|all| {
            let readers = &mut all.borrow_mut().0;
            // Caches that are gone have taken their readers back.
            readers.retain(|(id, reader)| reader.is_for(*id));
            readers.push((cache, reader));
        });
        reader
    });
    set_recent(cache, ReaderSlot::new(reader, 0));
    Some(reader)
}

/// A watcher's weak reference with its type left out.
pub(crate) fn as_watcher<W: Watcher + 'static>(watcher: &Weak<W>) -> Weak<dyn Watcher> {
    let weak: Weak<W> = watcher.clone();
    weak
}
