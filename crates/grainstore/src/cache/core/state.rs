//! The state word of one entry: where the entry stands, who holds it, and how many pins it has.
//!
//! Every race about an entry is decided here, by one compare-and-swap on one word:
//!
//! ```text
//!  63..61 phase   VACANT -> BUILDING -> RESIDENT -> RETIRED -> RELEASING -> VACANT
//!  60     CLAIM   its holder means to evict it; a pin takes this bit away, and so wins
//!  59     HOLD    somebody decides about this entry; only the holder may start its release
//!  58     PARKED  found pinned by a search for a victim and taken out of the order of use;
//!                 the last unpin puts it back
//!  57..0  pins
//! ```
//!
//! In VACANT, BUILDING and RELEASING the word has one owner, who stores to it. In RESIDENT, RETIRED
//! and ABANDONED it has many, who compare and swap.

use crate::sync::{AtomicU64, Ordering};

const PHASE: u64 = 0b111 << 61;
const VACANT: u64 = 0;
const BUILDING: u64 = 1 << 61;
const RESIDENT: u64 = 2 << 61;
const RETIRED: u64 = 3 << 61;
const RELEASING: u64 = 4 << 61;
/// As RETIRED, but the value is to be forgotten at its last unpin, and its place is free already.
const ABANDONED: u64 = 5 << 61;

/// Beside the phase, so that a hit looks at both by one comparison.
const CLAIM: u64 = 1 << 60;
const HOLD: u64 = 1 << 59;
const PARKED: u64 = 1 << 58;
/// So many that no program can take them all, not even by forgetting pins in a loop.
const PINS: u64 = PARKED - 1;

/// The word itself.
#[derive(Debug)]
pub(crate) struct State(AtomicU64);

/// What a search for a victim found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The caller now holds the entry, and no pin has been taken yet.
    Claimed,
    /// It is pinned; it has been parked, and the last unpin will put it back.
    Parked,
    /// Another thread holds it and will decide about it soon.
    Held,
    /// It is not resident.
    Gone,
}

/// What giving up a pin meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpin {
    /// Nothing is to be done.
    Nothing,
    /// It was the last pin of a parked, retired or abandoned value: the caller holds the entry and
    /// must decide about it.
    Held,
}

/// What letting go of a hold found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetGo {
    /// The hold is gone.
    Free,
    /// Nobody pins the entry, and it was parked or retired meanwhile: the caller still holds it,
    /// and must decide about it.
    StillHeld,
}

impl State {
    pub(crate) fn vacant() -> Self {
        Self(AtomicU64::new(VACANT))
    }

    fn update(&self, mut step: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64> {
        // Sequentially consistent, because pins in readers' slots are decided by it.
        self.0.fetch_update(Ordering::SeqCst, Ordering::Acquire, &mut step)
    }

    /// VACANT to BUILDING. The caller owns the entry.
    pub(crate) fn start_build(&self) {
        self.0.store(BUILDING, Ordering::Release);
    }

    /// BUILDING to RESIDENT, pinned that often. Publishes the value.
    pub(crate) fn install(&self, pins: u32) {
        self.0.store(RESIDENT | u64::from(pins), Ordering::Release);
    }

    /// BUILDING to RETIRED: a value that nobody gets. The caller holds the entry.
    pub(crate) fn install_retired(&self) {
        self.0.store(RETIRED | HOLD, Ordering::Release);
    }

    /// BUILDING to RETIRED, pinned that often: a value that is not kept.
    pub(crate) fn install_unretained(&self, pins: u32) {
        self.0.store(RETIRED | u64::from(pins), Ordering::Release);
    }

    /// BUILDING to ABANDONED. The caller holds the entry.
    pub(crate) fn install_abandoned(&self) {
        self.0.store(ABANDONED | HOLD, Ordering::Release);
    }

    /// To VACANT, from a phase in which the caller owns the entry.
    pub(crate) fn vacate(&self) {
        self.0.store(VACANT, Ordering::Release);
    }

    /// Takes a pin if the entry is resident, and with it any claim. True on success.
    pub(crate) fn pin(&self) -> bool {
        self.update(|word| (word & PHASE == RESIDENT).then(|| (word & !CLAIM) + 1)).is_ok()
    }

    /// As [`pin`](Self::pin), but leaves the claim: for the look-up that `idle` makes of the value
    /// it is asked about.
    pub(crate) fn pin_beside_claim(&self) -> bool {
        self.update(|word| (word & PHASE == RESIDENT).then_some(word + 1)).is_ok()
    }

    /// Whether a pin that was announced before this call stands: the entry is resident and not
    /// claimed.
    #[inline]
    pub(crate) fn allows_announced_pin(&self) -> bool {
        self.0.load(Ordering::SeqCst) & (PHASE | CLAIM) == RESIDENT
    }

    /// One more pin for somebody who has one; takes any claim with it.
    pub(crate) fn pin_again(&self) {
        let _ = self.update(|word| Some((word & !CLAIM) + 1));
    }

    /// Gives up a pin.
    pub(crate) fn unpin(&self) -> Unpin {
        let step = |word: u64| {
            debug_assert!(word & PINS > 0, "an unpin without a pin");
            let rest = word - 1;
            Some(if last_matters(rest) { (rest | HOLD) & !PARKED } else { rest })
        };
        match self.update(step) {
            Ok(word) if last_matters(word - 1) => Unpin::Held,
            _ => Unpin::Nothing,
        }
    }

    /// Claims a resident entry for eviction, or parks it if it is pinned.
    pub(crate) fn claim(&self) -> Claim {
        let mut found = Claim::Gone;
        let _ = self.update(|word| {
            found = match word & PHASE {
                RESIDENT if word & PINS > 0 => Claim::Parked,
                RESIDENT if word & HOLD != 0 => Claim::Held,
                RESIDENT => Claim::Claimed,
                _ => Claim::Gone,
            };
            match found {
                Claim::Claimed => Some(word | HOLD | CLAIM),
                Claim::Parked => Some(word | PARKED),
                Claim::Held | Claim::Gone => None,
            }
        });
        found
    }

    /// RESIDENT to RELEASING, if the claim still stands and nobody pins the entry. The caller, who
    /// held it, then owns it.
    pub(crate) fn confirm(&self) -> bool {
        let claimed = RESIDENT | HOLD | CLAIM;
        self.0.compare_exchange(claimed, RELEASING, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }

    /// RELEASING back to what [`confirm`](Self::confirm) found: the caller still holds the entry.
    pub(crate) fn revoke(&self) {
        self.0.store(RESIDENT | HOLD | CLAIM, Ordering::Release);
    }

    /// RESIDENT to RETIRED. With no pin and no holder the caller holds the entry: true.
    pub(crate) fn retire(&self) -> bool {
        let step = |word: u64| {
            debug_assert_eq!(word & PHASE, RESIDENT);
            let hold = if word & PINS == 0 { HOLD } else { word & HOLD };
            Some(RETIRED | hold | (word & PINS))
        };
        matches!(self.update(step), Ok(word) if word & (PINS | HOLD) == 0)
    }

    /// Takes hold of a retired entry that nobody pins or holds.
    pub(crate) fn hold_retired(&self) -> bool {
        self.0
            .compare_exchange(RETIRED, RETIRED | HOLD, Ordering::SeqCst, Ordering::Acquire)
            .is_ok()
    }

    /// Whether the state word counts any pin.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.load(Ordering::SeqCst) & PINS > 0
    }

    /// RESIDENT and claimed to parked, by the holder, because a slot pins the entry.
    pub(crate) fn park_held(&self) {
        let _ = self.update(|word| Some((word & !(HOLD | CLAIM)) | PARKED));
    }

    /// The entry is going back into the order of use.
    pub(crate) fn unpark(&self) {
        self.0.fetch_and(!PARKED, Ordering::SeqCst);
    }

    /// Takes hold of a retired or abandoned entry that the word counts no pin of, and nobody holds.
    pub(crate) fn hold_left(&self) -> bool {
        let free = |word: u64| {
            let left = matches!(word & PHASE, RETIRED | ABANDONED);
            (left && word & (PINS | HOLD) == 0).then_some(word | HOLD)
        };
        self.update(free).is_ok()
    }

    /// Ends a hold on a retired or abandoned entry whose pins are yet to go: somebody else will
    /// decide about it. With `counted`, only if the word counts a pin: else false.
    pub(crate) fn leave_to_pins(&self, counted: bool) -> bool {
        self.update(|word| (!counted || word & PINS > 0).then_some(word & !HOLD)).is_ok()
    }

    /// RETIRED to RELEASING, by the holder of an entry that nobody pins. The caller then owns it.
    /// False if it was abandoned meanwhile: then the caller still holds it.
    pub(crate) fn start_release(&self) -> bool {
        let held = RETIRED | HOLD;
        self.0.compare_exchange(held, RELEASING, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }

    /// Ends a hold on an entry that was resident when it began.
    pub(crate) fn let_go(&self) -> LetGo {
        let step = |word: u64| {
            let drop = if needs_decision(word) { CLAIM | PARKED } else { CLAIM | HOLD };
            Some(word & !drop)
        };
        match self.update(step) {
            Ok(word) if needs_decision(word) => LetGo::StillHeld,
            _ => LetGo::Free,
        }
    }

    /// Ends a hold on a retired entry that is not released now. False if it was abandoned
    /// meanwhile: then the caller still holds it.
    pub(crate) fn let_go_retired(&self) -> bool {
        self.update(|word| (word & PHASE == RETIRED).then_some(word & !HOLD)).is_ok()
    }

    /// RETIRED to ABANDONED. `None` if it is not retired, or not any more. With no pin and no holder
    /// the caller holds the entry: true.
    pub(crate) fn abandon(&self) -> Option<bool> {
        let step = |word: u64| {
            (word & PHASE == RETIRED).then(|| {
                let hold = if word & PINS == 0 { HOLD } else { word & HOLD };
                ABANDONED | hold | (word & PINS)
            })
        };
        self.update(step).ok().map(|word| word & (PINS | HOLD) == 0)
    }

    pub(crate) fn is_resident(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == RESIDENT
    }

    pub(crate) fn is_building(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == BUILDING
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == ABANDONED
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLAIM != 0
    }
}

/// Whether nobody pins the entry of this word, and somebody has to decide about it: it is parked,
/// retired or abandoned.
fn needs_decision(word: u64) -> bool {
    let waits = word & PARKED != 0 || matches!(word & PHASE, RETIRED | ABANDONED);
    word & PINS == 0 && waits
}

/// Whether the unpin that left this word has to decide, because nobody else holds the entry.
fn last_matters(rest: u64) -> bool {
    needs_decision(rest) && rest & HOLD == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMED: u64 = RESIDENT | HOLD | CLAIM;
    const PHASES: [u64; 6] = [VACANT, BUILDING, RESIDENT, RETIRED, RELEASING, ABANDONED];

    /// From that word the step gives that answer, and leaves that word.
    #[track_caller]
    fn leads<A: PartialEq + std::fmt::Debug>(
        step: impl Fn(&State) -> A,
        steps: impl IntoIterator<Item = (u64, A, u64)>,
    ) {
        for (from, answer, to) in steps {
            let state = State(AtomicU64::new(from));
            assert_eq!(step(&state), answer, "from {from:#x}");
            let word = state.0.load(Ordering::SeqCst);
            assert_eq!(word, to, "from {from:#x} to {word:#x} instead of {to:#x}");
        }
    }

    /// The word of every phase but these, which the step answers so, and leaves alone.
    fn elsewhere<A: Copy>(phases: &[u64], answer: A) -> Vec<(u64, A, u64)> {
        let others = PHASES.into_iter().filter(|phase| !phases.contains(phase));
        others.map(|phase| (phase, answer, phase)).collect()
    }

    #[test]
    fn phases_flags_and_pins_have_bits_of_their_own() {
        let flags = HOLD | CLAIM | PARKED;
        assert_eq!((PHASE & flags, PHASE & PINS, flags & PINS), (0, 0, 0));
        assert_eq!(PHASE | flags | PINS, u64::MAX);
        assert_eq!(flags.count_ones(), 3);
        let different: std::collections::HashSet<_> = PHASES.into();
        assert!(different.len() == PHASES.len() && PHASES.iter().all(|phase| phase & !PHASE == 0));
    }

    #[test]
    fn a_build_is_installed_in_the_phase_that_became_of_it() {
        let state = State::vacant();
        let word = || state.0.load(Ordering::SeqCst);
        state.start_build();
        assert!(word() == BUILDING && state.is_building());
        state.install(3);
        assert!(word() == RESIDENT | 3 && state.is_resident() && !state.is_building());
        state.install_unretained(2);
        assert!(word() == RETIRED | 2 && state.is_counted() && !state.is_resident());
        state.install_retired();
        assert!(word() == RETIRED | HOLD && !state.is_counted() && !state.is_abandoned());
        state.install_abandoned();
        assert!(word() == ABANDONED | HOLD && state.is_abandoned() && !state.is_claimed());
        state.revoke();
        assert!(word() == CLAIMED && state.is_claimed());
        state.vacate();
        assert_eq!(word(), VACANT);
    }

    #[test]
    fn a_pin_takes_the_claim_away_and_what_idle_looks_up_does_not() {
        leads(State::pin, elsewhere(&[RESIDENT], false));
        leads(State::pin, [(CLAIMED | 4, true, RESIDENT | HOLD | 5)]);
        leads(State::pin, [(RESIDENT | PARKED | 1, true, RESIDENT | PARKED | 2)]);
        leads(State::pin_beside_claim, elsewhere(&[RESIDENT], false));
        leads(State::pin_beside_claim, [(CLAIMED | 4, true, CLAIMED | 5)]);
        leads(State::pin_again, [(CLAIMED | 4, (), RESIDENT | HOLD | 5)]);
        leads(State::pin_again, [(RETIRED | HOLD | 1, (), RETIRED | HOLD | 2)]);
    }

    #[test]
    fn a_pin_in_a_slot_stands_where_the_entry_is_resident_and_not_claimed() {
        leads(State::allows_announced_pin, elsewhere(&[RESIDENT], false));
        let others = RESIDENT | HOLD | PARKED | 7;
        leads(State::allows_announced_pin, [(RESIDENT, true, RESIDENT), (others, true, others)]);
        leads(State::allows_announced_pin, [(CLAIMED, false, CLAIMED)]);
    }

    #[test]
    fn the_last_unpin_of_what_waits_for_it_holds_the_entry() {
        use super::Unpin::{Held, Nothing};
        leads(
            State::unpin,
            [(RESIDENT | 2, Nothing, RESIDENT | 1), (RESIDENT | 1, Nothing, RESIDENT)],
        );
        leads(State::unpin, [(RESIDENT | PARKED | 2, Nothing, RESIDENT | PARKED | 1)]);
        leads(State::unpin, [(RESIDENT | PARKED | 1, Held, RESIDENT | HOLD)]);
        leads(
            State::unpin,
            [(RETIRED | 1, Held, RETIRED | HOLD), (RETIRED | 2, Nothing, RETIRED | 1)],
        );
        leads(State::unpin, [(ABANDONED | 1, Held, ABANDONED | HOLD)]);
        // Somebody else decides already.
        leads(State::unpin, [(RETIRED | HOLD | 1, Nothing, RETIRED | HOLD)]);
    }

    #[test]
    fn a_claim_holds_what_is_free_and_parks_what_is_pinned() {
        leads(State::claim, elsewhere(&[RESIDENT], Claim::Gone));
        leads(State::claim, [(RESIDENT, Claim::Claimed, CLAIMED)]);
        leads(State::claim, [(RESIDENT | 2, Claim::Parked, RESIDENT | PARKED | 2)]);
        leads(State::claim, [(RESIDENT | PARKED | 2, Claim::Parked, RESIDENT | PARKED | 2)]);
        leads(State::claim, [(RESIDENT | HOLD, Claim::Held, RESIDENT | HOLD)]);
        leads(State::park_held, [(CLAIMED | 1, (), RESIDENT | PARKED | 1)]);
        leads(State::unpark, [(RESIDENT | PARKED | 1, (), RESIDENT | 1), (RESIDENT, (), RESIDENT)]);
    }

    #[test]
    fn only_a_claim_that_still_stands_is_confirmed() {
        leads(State::confirm, elsewhere(&[], false));
        leads(State::confirm, [(CLAIMED, true, RELEASING), (CLAIMED | 1, false, CLAIMED | 1)]);
        leads(State::confirm, [(RESIDENT | HOLD, false, RESIDENT | HOLD)]);
    }

    #[test]
    fn what_is_retired_free_is_held_by_who_retires_it() {
        leads(
            State::retire,
            [(RESIDENT, true, RETIRED | HOLD), (RESIDENT | 2, false, RETIRED | 2)],
        );
        leads(State::retire, [(CLAIMED, false, RETIRED | HOLD)]);
        let parked = RESIDENT | HOLD | PARKED | 1;
        leads(State::retire, [(parked, false, RETIRED | HOLD | 1)]);
        leads(State::abandon, elsewhere(&[RETIRED], None));
        leads(State::abandon, [(RETIRED, Some(true), ABANDONED | HOLD)]);
        leads(State::abandon, [(RETIRED | 2, Some(false), ABANDONED | 2)]);
        leads(State::abandon, [(RETIRED | HOLD, Some(false), ABANDONED | HOLD)]);
        leads(State::abandon, [(RETIRED | HOLD | 2, Some(false), ABANDONED | HOLD | 2)]);
    }

    #[test]
    fn one_holds_what_nobody_pins_or_holds_and_lets_go_of_it() {
        leads(State::hold_retired, elsewhere(&[RETIRED], false));
        leads(
            State::hold_retired,
            [(RETIRED, true, RETIRED | HOLD), (RETIRED | 1, false, RETIRED | 1)],
        );
        leads(State::hold_left, elsewhere(&[RETIRED, ABANDONED], false));
        for phase in [RETIRED, ABANDONED] {
            leads(State::hold_left, [(phase, true, phase | HOLD), (phase | 1, false, phase | 1)]);
            leads(State::hold_left, [(phase | HOLD, false, phase | HOLD)]);
        }
        let leave = |counted| move |state: &State| state.leave_to_pins(counted);
        leads(leave(false), [(RETIRED | HOLD, true, RETIRED)]);
        leads(leave(true), [(RETIRED | HOLD, false, RETIRED | HOLD)]);
        leads(leave(true), [(RETIRED | HOLD | 1, true, RETIRED | 1)]);
        leads(State::let_go_retired, [(RETIRED | HOLD, true, RETIRED)]);
        leads(State::let_go_retired, [(ABANDONED | HOLD, false, ABANDONED | HOLD)]);
        leads(State::start_release, [(RETIRED | HOLD, true, RELEASING)]);
        leads(State::start_release, [(ABANDONED | HOLD, false, ABANDONED | HOLD)]);
    }

    #[test]
    fn who_lets_go_decides_about_what_was_parked_or_retired_meanwhile() {
        use LetGo::{Free, StillHeld};
        leads(State::let_go, [(CLAIMED, Free, RESIDENT), (CLAIMED | 1, Free, RESIDENT | 1)]);
        leads(State::let_go, [(RESIDENT | HOLD | PARKED, StillHeld, RESIDENT | HOLD)]);
        let pinned = RESIDENT | HOLD | PARKED | 1;
        leads(State::let_go, [(pinned, Free, RESIDENT | PARKED | 1)]);
        leads(State::let_go, [(RETIRED | HOLD, StillHeld, RETIRED | HOLD)]);
        leads(State::let_go, [(ABANDONED | HOLD, StillHeld, ABANDONED | HOLD)]);
        leads(State::let_go, [(RETIRED | HOLD | 1, Free, RETIRED | 1)]);
    }
}
