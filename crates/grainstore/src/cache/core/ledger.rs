//! All that is kept under the cache's one lock: places, the order of use, and who is covered by
//! which drain. A hit takes this lock never.
//!
//! A place belongs to a build, then to its value, then to the value's release until that returns.
//! So `resident + building + retired` is what is taken, and never more than the capacity.

use std::task::Waker;

use super::drains::Coverage;
use super::flight::Flight;
use super::order::{Order, Turn};
use super::readers::Reader;
use super::waits::{Node, Nodes};
use crate::cache::statistics::Statistics;
use crate::hashing::{HashMap, HashSet};
use crate::sync::Arc;
use crate::{DeviceId, Error};

/// What the ledger knows of an entry.
#[derive(Default)]
pub(crate) struct Record {
    /// When it was last used, as far as the order of use knows.
    pub(crate) stamp: u64,
    /// Whether it is in the order of use under that stamp.
    pub(crate) ordered: bool,
    /// The build that the entry is for, until it ends.
    flight: Option<Arc<Flight>>,
    /// Whether anybody but its leader has got at it.
    shared: bool,
    /// Whether that build has its place.
    pub(crate) placed: bool,
    /// Its value, if it ever comes, is to be forgotten: its doomed build was abandoned.
    pub(crate) forsaken: bool,
}

/// What a flight was when it ended.
#[derive(Clone, Copy)]
pub(crate) struct Flown {
    /// Somebody else has joined it, or doomed it.
    pub(crate) shared: bool,
    /// Its build was abandoned.
    pub(crate) forsaken: bool,
}

/// The ledger of one cache.
pub(crate) struct Ledger {
    pub(crate) capacity: Option<usize>,
    pub(crate) resident: usize,
    pub(crate) building: usize,
    pub(crate) retired: usize,
    records: Vec<Record>,
    spare_flight: Option<Arc<Flight>>,
    nodes: Nodes,
    free: Vec<u32>,
    next_serial: u64,
    /// Resident entries by their last known use, but for the parked ones.
    order: Order,
    /// Entries (being built, resident, retired) by device.
    by_device: HashMap<DeviceId, HashSet<u32>>,
    /// Retired entries that nobody pins, but that could not be released when it was tried.
    pub(crate) limbo: HashSet<u32>,
    /// Which drains wait for which entry.
    pub(crate) drains: HashMap<u32, Coverage>,
    /// Entries that are held to be asked about, or that are decided about with others, from their
    /// claim to the decision; and whom to wait for who waits for that.
    pub(crate) asks: Vec<(u32, Node)>,
    /// Abandoned entries that are still pinned or being built.
    pub(crate) forsaken: usize,
    /// Weight of what is live and counts, in all.
    weight: u64,
    /// And of each entry that has one.
    weights: HashMap<u32, u64>,
    /// Tasks that wait for room.
    pub(crate) room_wakers: Vec<Waker>,
    /// How many threads sleep until a place may have become free.
    pub(crate) sleepers: usize,
    /// Counts decisions about held entries, and openings; sleepers compare it.
    pub(crate) changes: u64,
    /// Counts what may have made room: a place or a pin given back, a poke.
    pub(crate) openings: u64,
    /// Every thread's reader of this cache.
    pub(crate) readers: Vec<&'static Reader>,
    /// Those whose thread has ended, for the next thread.
    pub(crate) idle_readers: Vec<&'static Reader>,
    /// On whose behalf a reader's slot is watched, by the reader's address and the slot's number.
    pub(crate) watches: HashMap<(usize, usize), Vec<u32>>,
    /// The time of the latest install.
    pub(crate) now: u64,
    /// Values whose release has begun.
    pub(crate) releasing: usize,
    /// All handles are gone: what is released now is released without asking.
    pub(crate) closed: bool,
    pub(crate) statistics: Statistics,
}

impl Ledger {
    pub(crate) fn new(capacity: Option<usize>) -> Self {
        Self {
            capacity,
            resident: 0,
            building: 0,
            retired: 0,
            records: Vec::new(),
            spare_flight: None,
            nodes: Nodes::default(),
            free: Vec::new(),
            next_serial: 1,
            order: Order::default(),
            by_device: HashMap::default(),
            limbo: HashSet::default(),
            drains: HashMap::default(),
            asks: Vec::new(),
            forsaken: 0,
            weight: 0,
            weights: HashMap::default(),
            room_wakers: Vec::new(),
            sleepers: 0,
            changes: 0,
            openings: 0,
            readers: Vec::new(),
            idle_readers: Vec::new(),
            watches: HashMap::default(),
            now: 0,
            releasing: 0,
            closed: false,
            statistics: Statistics::default(),
        }
    }

    /// An entry that is free, or the next that never was used, and the serial number of its new
    /// life.
    pub(crate) fn take_entry(&mut self) -> (u32, u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            if self.records.len() == self.records.capacity() {
                // In smaller steps than a vector's own: a cache may hold very many entries.
                self.records.reserve_exact(self.records.len() / 4 + 16);
            }
            self.records.push(Record::default());
            (self.records.len() - 1) as u32
        });
        let serial = self.next_serial;
        self.next_serial += 1;
        (index, serial)
    }

    /// Back to the free list.
    pub(crate) fn give_entry(&mut self, index: u32) {
        self.lift_weight(index);
        self.free.push(index);
    }

    /// The entry's weight counts no more.
    pub(crate) fn lift_weight(&mut self, index: u32) {
        if !self.weights.is_empty() {
            self.weight -= self.weights.remove(&index).unwrap_or_default();
        }
    }

    pub(crate) fn put_weight(&mut self, index: u32, weight: u64) {
        self.weight += weight;
        self.weights.insert(index, weight);
    }

    /// The weight of all but these entries.
    pub(crate) fn weight_without(&self, entries: &[u32]) -> u64 {
        let of = |entry| self.weights.get(entry).copied().unwrap_or_default();
        self.weight - entries.iter().map(of).sum::<u64>()
    }

    pub(crate) fn record(&mut self, index: u32) -> &mut Record {
        &mut self.records[index as usize]
    }

    /// Every entry there has been, vacant ones too.
    pub(crate) fn entries(&self) -> u32 {
        self.records.len() as u32
    }

    /// Values that are alive, and builds that may become one.
    pub(crate) fn occupied(&self) -> usize {
        self.resident + self.building + self.retired
    }

    pub(crate) fn has_place(&self) -> bool {
        self.capacity.is_none_or(|capacity| self.occupied() < capacity)
    }

    /// A flight for the entry.
    pub(crate) fn begin_flight(&mut self, index: u32) -> Arc<Flight> {
        let node = self.nodes.next();
        let mut flight = self.spare_flight.take().unwrap_or_default();
        match Arc::get_mut(&mut flight) {
            Some(spare) => *spare = Flight::new(node),
            // Somebody still looks at what came of it.
            None => flight = Arc::new(Flight::new(node)),
        }
        let record = self.record(index);
        record.flight = Some(flight.clone());
        record.shared = false;
        flight
    }

    /// The flight of the entry, if it has one, for somebody who does not lead it.
    pub(crate) fn share_flight(&mut self, index: u32) -> Option<Arc<Flight>> {
        let record = self.record(index);
        record.shared = true;
        record.flight.clone()
    }

    /// Whether this is the entry's flight.
    pub(crate) fn is_flight_of(&mut self, index: u32, flight: &Arc<Flight>) -> bool {
        let current = self.record(index).flight.as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, flight))
    }

    /// The entry's flight ends, and with it the hold of its build on a place.
    pub(crate) fn end_flight(&mut self, index: u32) -> Flown {
        let record = self.record(index);
        record.flight = None;
        let placed = std::mem::take(&mut record.placed);
        let forsaken = std::mem::take(&mut record.forsaken);
        let shared = record.shared;
        self.building -= usize::from(placed);
        Flown { shared, forsaken }
    }

    /// As [`end_flight`](Self::end_flight), for one that has a value: it may serve another build.
    /// One that failed has the user's error in it.
    pub(crate) fn land_flight(&mut self, index: u32) -> Flown {
        self.spare_flight = self.record(index).flight.take();
        self.end_flight(index)
    }

    /// The entry's build takes a free place.
    pub(crate) fn place(&mut self, index: u32) {
        self.record(index).placed = true;
        self.building += 1;
        self.statistics.misses += 1;
    }

    /// Puts a resident entry into the order of use.
    pub(crate) fn enqueue(&mut self, index: u32, stamp: u64) {
        let record = self.record(index);
        if !record.ordered {
            record.ordered = true;
            record.stamp = stamp;
            self.order.insert((stamp, index));
        }
    }

    /// Notes a use that no reader noted.
    pub(crate) fn use_at(&mut self, index: u32, time: u64) {
        let ordered = self.record(index).ordered;
        self.dequeue(index);
        self.record(index).stamp = time;
        if ordered {
            self.enqueue(index, time);
        }
    }

    /// When the entry was last used, by whatever thread.
    pub(crate) fn last_use(&self, index: u32) -> u64 {
        let stamps = self.readers.iter().map(|reader| reader.stamp(index));
        stamps.fold(self.records[index as usize].stamp, u64::max)
    }

    /// Takes an entry out of the order of use, if it is there.
    pub(crate) fn dequeue(&mut self, index: u32) {
        let record = self.record(index);
        if record.ordered {
            record.ordered = false;
            let turn = (record.stamp, index);
            self.order.remove(turn);
        }
    }

    /// The least recently used entry behind this turn of the order.
    pub(crate) fn next_in_order(&self, after: Option<Turn>) -> Option<Turn> {
        self.order.next(after)
    }

    /// The question about an entry, as a node of the graph of waits.
    pub(crate) fn ask(&mut self, index: u32) -> Node {
        let known = self.asks.iter().find(|&&(asked, _)| asked == index);
        if let Some(&(_, node)) = known {
            return node;
        }
        let node = self.nodes.next();
        self.asks.push((index, node));
        node
    }

    /// It is answered, but not decided: that is up to this build.
    pub(crate) fn leave_ask_to(&mut self, index: u32, build: Node) {
        self.asks.retain(|&(asked, _)| asked != index);
        self.asks.push((index, build));
    }

    pub(crate) fn ordered(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn add_to_devices(&mut self, index: u32, devices: &[DeviceId]) {
        for &device in devices {
            self.by_device.entry(device).or_default().insert(index);
        }
    }

    pub(crate) fn remove_from_devices(&mut self, index: u32, devices: &[DeviceId]) {
        for device in devices {
            if let Some(members) = self.by_device.get_mut(device) {
                members.remove(&index);
                if members.is_empty() {
                    self.by_device.remove(device);
                }
            }
        }
    }

    pub(crate) fn on_device(&self, device: &DeviceId) -> Vec<u32> {
        self.by_device
            .get(device)
            .map(|members| members.iter().copied().collect())
            .unwrap_or_default()
    }

    /// What a request gets that found no place. Called when every value in the order of use was
    /// asked and said busy, so that the others are pinned.
    pub(crate) fn busy(&self) -> Error {
        Error::Busy {
            capacity: self.capacity.unwrap_or(usize::MAX),
            pinned: self.resident - self.ordered(),
            busy: self.ordered(),
            building: self.building,
            retired: self.retired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_entries(count: u32) -> Ledger {
        let mut ledger = Ledger::new(None);
        for index in 0..count {
            assert_eq!(ledger.take_entry(), (index, u64::from(index) + 1));
        }
        ledger
    }

    #[test]
    fn room_for_entries_grows_in_small_steps() {
        let (mut ledger, mut rooms) = (Ledger::new(None), HashSet::default());
        for entries in 1..10_000 {
            ledger.take_entry();
            let room = ledger.records.capacity();
            assert!(room <= entries * 5 / 4 + 16, "room for {room}: {entries}");
            rooms.insert(room);
        }
        assert!(rooms.len() < 50, "{} steps", rooms.len());
    }

    #[test]
    fn a_use_moves_what_is_in_the_order_and_is_noted_of_the_rest() {
        let mut ledger = with_entries(3);
        ledger.enqueue(0, 1);
        ledger.enqueue(1, 2);
        ledger.use_at(0, 3);
        ledger.use_at(2, 9);
        assert_eq!(ledger.next_in_order(None), Some((2, 1)));
        assert_eq!(ledger.next_in_order(Some((2, 1))), Some((3, 0)));
        assert_eq!((ledger.ordered(), ledger.last_use(2)), (2, 9));
    }

    #[test]
    fn a_question_is_one_node_until_it_is_left_to_a_build() {
        let mut ledger = with_entries(2);
        let (asked, other, build) = (ledger.ask(0), ledger.ask(1), ledger.nodes.next());
        assert_eq!(ledger.ask(0), asked);
        assert_ne!(asked, other);
        ledger.leave_ask_to(0, build);
        assert_eq!((ledger.ask(0), ledger.ask(1)), (build, other));
    }

    #[test]
    fn a_flight_is_its_entrys_until_it_ends() {
        let mut ledger = with_entries(2);
        let flights = [ledger.begin_flight(0), ledger.begin_flight(1)];
        assert!(ledger.is_flight_of(0, &flights[0]) && ledger.is_flight_of(1, &flights[1]));
        assert!(!ledger.is_flight_of(0, &flights[1]));
        assert!(!ledger.end_flight(0).shared);
        assert!(!ledger.is_flight_of(0, &flights[0]));
        assert!(ledger.share_flight(1).is_some() && ledger.end_flight(1).shared);
    }
}
