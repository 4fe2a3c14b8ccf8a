//! Pins in readers' slots, as the cache's slow side sees them: found, waited for, and their end.

use super::barrier::heavy;
use super::local::{self, as_watcher};
use super::slot::ReaderSlot;
use super::{Reader, Watcher};
use crate::cache::core::ledger::Ledger;
use crate::cache::core::{Core, Key};
use crate::sync::{Arc, agree};

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// This thread's reader of this cache; none while the thread ends.
    #[inline]
    pub(crate) fn reader(&self) -> Option<&'static Reader> {
        local::recent(self.id)
            .map(ReaderSlot::reader)
            .or_else(|| local::reader(self.id, || self.take_reader()))
    }

    fn take_reader(&self) -> &'static Reader {
        let mut ledger = self.ledger();
        if let Some(reader) = ledger.idle_readers.pop() {
            return reader;
        }
        let reader = Reader::take(self.id, as_watcher(&self.me));
        ledger.readers.push(reader);
        reader
    }

    /// Makes the reader's stamps reach every entry there is. By the reader's thread.
    #[cold]
    pub(crate) fn grow_stamps(&self, reader: &Reader) {
        let ledger = self.ledger();
        reader.grow(ledger.entries() as usize);
    }

    /// A moment later than every use so far. Under the lock.
    pub(crate) fn now(&self, ledger: &mut Ledger) -> u64 {
        let uses = ledger.readers.iter().map(|reader| reader.clock());
        let now = uses.fold(ledger.now, u64::max) + 1;
        ledger.now = now;
        self.clock.store(now + 1, crate::sync::Ordering::Relaxed);
        now
    }

    /// Whether a slot pins the entry. The caller holds the lock, and has claimed, retired or
    /// abandoned the entry before, so that no slot comes to pin it from now on. Then also: whoever
    /// pins it tells when the pin is gone, after which the entry is decided about once more.
    pub(crate) fn announced_pins(&self, ledger: &mut Ledger, index: u32) -> bool {
        agree();
        if !ledger.readers.iter().any(|reader| reader.pins_somewhere(index)) {
            return false;
        }
        self.watch_pins(ledger, index)
    }

    /// Has the end of the entry's pins told. Whether there are some.
    #[cold]
    fn watch_pins(&self, ledger: &mut Ledger, index: u32) -> bool {
        let mut watched = Vec::new();
        for reader in ledger.readers.iter().copied() {
            watched.extend(reader.pinning(index).map(|slot| (reader, slot)));
        }
        if watched.is_empty() {
            return false;
        }
        for &(reader, slot) in &watched {
            let waiting = ledger.watches.entry((reader.address(), slot)).or_default();
            if !waiting.contains(&index) {
                waiting.push(index);
            }
            reader.watch(slot);
        }
        heavy();
        // Who let go before that may not have seen the watch.
        let pins = |&(reader, slot): &(&Reader, usize)| reader.pins(slot, index);
        let (still, gone): (Vec<_>, Vec<_>) = watched.into_iter().partition(pins);
        for (reader, slot) in gone {
            stop_waiting(ledger, reader, slot, index);
        }
        !still.is_empty()
    }
}

/// The slot's end is not waited for any more, on this entry's behalf.
fn stop_waiting(ledger: &mut Ledger, reader: &Reader, slot: usize, index: u32) {
    let key = (reader.address(), slot);
    if let Some(waiting) = ledger.watches.get_mut(&key) {
        waiting.retain(|&entry| entry != index);
        if waiting.is_empty() {
            ledger.watches.remove(&key);
            reader.unwatch(slot);
        }
    }
}

impl<K: Key, V: Send + Sync + 'static> Watcher for Core<K, V> {
    fn watched_pin_gone(self: Arc<Self>, reader: &'static Reader, slot: usize) {
        let mut ledger = self.ledger();
        let waiting = ledger.watches.get(&(reader.address(), slot)).cloned().unwrap_or_default();
        let mut held = Vec::new();
        // One slot may be waited for on behalf of several entries: its owner may have taken it
        // again before this thread came here. What it pins now is left alone.
        for index in waiting.into_iter().filter(|&index| !reader.pins(slot, index)) {
            stop_waiting(&mut ledger, reader, slot, index);
            let state = &self.entry(index).grain.state;
            if state.is_resident() {
                state.unpark();
                let last_use = ledger.last_use(index);
                ledger.enqueue(index, last_use);
                self.note_opening(&mut ledger);
            } else if state.hold_left() {
                held.push(index);
            }
        }
        drop(ledger);
        held.into_iter().for_each(|index| self.decide_held(index));
    }

    fn thread_gone(self: Arc<Self>, reader: &'static Reader) {
        self.ledger().idle_readers.push(reader);
    }
}

impl<K, V> Drop for Core<K, V> {
    fn drop(&mut self) {
        let mut ledger = self.ledger.lock();
        ledger.readers.drain(..).for_each(Reader::give_back);
    }
}
