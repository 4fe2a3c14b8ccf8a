//! The order of use: resident entries by the time of their last known use, the coldest first.
//!
//! Nearly every entry comes in with the latest time of all, since an install is a use, and nearly
//! every one leaves at the cold end. So there is a line to which such entries are appended; only an
//! entry that comes in with an earlier time than the line's end, because it was used after its turn
//! had been noted, goes into a tree beside it. Both are sorted, and the order is what they make
//! together: exact, and without a search where there is nothing to sort.

use std::collections::{BTreeSet, VecDeque};

/// The time of an entry's last known use, and the entry.
pub(crate) type Turn = (u64, u32);

/// No entry: what is left in the line of one that was taken out of its middle. It has the greatest
/// number, so that it sorts where it stood or behind others of the same time.
const NONE: u32 = u32::MAX;

/// So many empty turns are never worth a compaction.
const FEW: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Sorted by time. Its first turn is never an empty one.
    line: VecDeque<Turn>,
    /// Empty turns in the line.
    empty: usize,
    tree: BTreeSet<Turn>,
}

impl Order {
    /// An entry that is not in the order comes in.
    pub(crate) fn insert(&mut self, turn: Turn) {
        if self.line.back().is_some_and(|&last| last > turn) {
            self.tree.insert(turn);
            return;
        }
        if self.line.len() == self.line.capacity() {
            // In smaller steps than its own: a cache may hold very many entries.
            self.line.reserve_exact(self.line.len() / 4 + FEW);
        }
        self.line.push_back(turn);
    }

    /// An entry that is in the order leaves it.
    pub(crate) fn remove(&mut self, turn: Turn) {
        if self.line.front() == Some(&turn) {
            self.line.pop_front();
            self.drop_empty_front();
        } else if !self.tree.remove(&turn) {
            self.empty_turn(turn);
        }
    }

    /// Out of the middle of the line.
    fn empty_turn(&mut self, turn: Turn) {
        // Behind an empty turn of the same time there may be others of it, so only the time is a
        // guide, and within it there is a walk: few threads use two entries at one time.
        let start = self.line.partition_point(|&(time, _)| time < turn.0);
        let same_time = self.line.range(start..).take_while(|&&(time, _)| time == turn.0);
        let Some(at) = same_time.map(|&(_, entry)| entry).position(|entry| entry == turn.1) else {
            debug_assert!(false, "what leaves the order is in it");
            return;
        };
        self.line[start + at].1 = NONE;
        self.empty += 1;
        // A walk from a front that stays meets all of them, so they are kept few.
        if self.empty > self.line.len() / 4 + FEW {
            self.line.retain(|&(_, entry)| entry != NONE);
            self.empty = 0;
        }
    }

    fn drop_empty_front(&mut self) {
        while self.line.front().is_some_and(|&(_, entry)| entry == NONE) {
            self.line.pop_front();
            self.empty -= 1;
        }
    }

    /// The coldest entry behind this turn, which need not be in the order any more.
    pub(crate) fn next(&self, after: Option<Turn>) -> Option<Turn> {
        use std::ops::Bound::{Excluded, Unbounded};
        let Some(after) = after else {
            let (line, tree) = (self.line.front().copied(), self.tree.first().copied());
            return line.into_iter().chain(tree).min();
        };
        let start = self.line.partition_point(|&(time, _)| time < after.0);
        let behind = |&&turn: &&Turn| turn.1 != NONE && turn > after;
        let line = self.line.range(start..).find(behind);
        let tree = self.tree.range((Excluded(after), Unbounded)).next();
        line.into_iter().chain(tree).min().copied()
    }

    /// How many entries are in the order.
    pub(crate) fn len(&self) -> usize {
        self.line.len() - self.empty + self.tree.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reproducible sequence of numbers.
    fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        }
    }

    fn whole(order: &Order) -> Vec<Turn> {
        let mut turns = Vec::new();
        while let Some(turn) = order.next(turns.last().copied()) {
            turns.push(turn);
        }
        turns
    }

    #[test]
    fn it_agrees_with_a_sorted_set() {
        let mut number = numbers(7);
        let (mut order, mut model) = (Order::default(), BTreeSet::new());
        let (mut time, mut entry) = (0, 0);
        for round in 0..4_000 {
            // Spells of growing and of shrinking, so that it is long and empty by turns.
            let grows = round / 500 % 2 == 0;
            if model.is_empty() || number(10) < if grows { 7 } else { 3 } {
                // Times repeat, as those of several threads do; some are of long ago.
                time += number(3);
                entry += 1;
                let turn = (if number(4) == 0 { number(time + 1) } else { time }, entry);
                order.insert(turn);
                model.insert(turn);
            } else {
                let at = if number(2) == 0 { 0 } else { number(model.len() as u64) };
                let turn = *model.iter().nth(at as usize).unwrap();
                order.remove(turn);
                model.remove(&turn);
            }
            assert_eq!(order.len(), model.len());
            assert_eq!(order.next(None), model.first().copied());
            if round % 50 == 0 {
                assert_eq!(whole(&order), model.iter().copied().collect::<Vec<_>>());
                let gone = (number(time + 1), entry / 2);
                let behind = model.range((gone.0, gone.1 + 1)..).next().copied();
                assert_eq!(order.next(Some(gone)), behind);
            }
        }
    }

    #[test]
    fn what_leaves_the_middle_makes_no_room_for_ever() {
        let mut order = Order::default();
        order.insert((0, 0));
        for time in 1..10_000 {
            order.insert((time, 1));
            order.remove((time, 1));
            assert!(order.line.len() < 100, "{} turns for one entry", order.line.len());
        }
        assert_eq!((order.len(), order.next(None)), (1, Some((0, 0))));
    }

    #[test]
    fn a_few_that_leave_the_middle_of_many_move_nothing() {
        let mut order = Order::default();
        (0..1_000).for_each(|time| order.insert((time, 7)));
        (500..600).for_each(|time| order.remove((time, 7)));
        assert_eq!((order.line.len(), order.empty, order.len()), (1_000, 100, 900));
    }

    #[test]
    fn its_room_grows_with_what_is_in_it_in_small_steps() {
        let (mut order, mut rooms) = (Order::default(), BTreeSet::new());
        for time in 0..10_000 {
            order.insert((time, 7));
            let room = order.line.capacity();
            assert!(room <= order.len() * 5 / 4 + FEW, "room for {room}: {}", order.len());
            rooms.insert(room);
        }
        assert!(rooms.len() < 50, "{} steps", rooms.len());
    }

    #[test]
    fn what_comes_in_with_the_latest_time_is_not_sorted() {
        let mut order = Order::default();
        for time in 0..1_000 {
            order.insert((time, time as u32));
        }
        for time in 0..1_000 {
            assert_eq!(order.next(None), Some((time, time as u32)));
            order.remove((time, time as u32));
            order.insert((time + 1_000, time as u32));
        }
        assert!(order.tree.is_empty());
        assert_eq!((order.line.len(), order.empty), (1_000, 0));
    }
}
