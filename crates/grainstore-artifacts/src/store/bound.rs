//! Which artifacts go when the store takes too much: a decision without I/O.
//!
//! What a store takes is summed by age, in a table of fixed size: so the decision takes the same
//! memory for a hundred entries as for a hundred thousand. From the table follows one age; what was
//! not used for longer goes. Ages are told apart to a sixty-fourth of themselves, which is finer than
//! the marks of use are.

use std::time::{Duration, SystemTime};

use crate::folder::{MARK_FOR, distance};

/// Two to this power are the steps in which an age is counted before it doubles.
const FINENESS: u32 = 6;
const STEPS: u64 = 1 << FINENESS;
/// A step for each millisecond of the first ones, then [`STEPS`] for each doubling up to `u64`.
const BUCKETS: usize = ((64 - FINENESS + 1) as usize) << FINENESS;

/// How much is how old.
#[derive(Debug)]
pub(crate) struct Ages {
    bytes: Box<[u64]>,
    total: u64,
}

/// What is to happen to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays: it was used later than what goes.
    Recent,
    /// It stays: as old as what goes, but enough goes without it.
    Spared,
    /// It goes: it was not used for longest.
    Oldest,
    /// It stays, and its mark is renewed: that lies in the future, since the clock was set back, and
    /// would keep it for ever.
    Misdated,
}

/// The line between what stays and what goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    now: SystemTime,
    /// What is older than this bucket goes.
    bucket: usize,
    /// How much of this bucket goes.
    of_bucket: u64,
}

impl Default for Ages {
    fn default() -> Self {
        Self { bytes: vec![0; BUCKETS].into(), total: 0 }
    }
}

impl Ages {
    /// Counts an entry.
    pub(crate) fn add(&mut self, now: SystemTime, used: SystemTime, disk: u64) {
        self.bytes[bucket(now, used)] += disk;
        self.total += disk;
    }

    /// Where to cut so that at most `limit` bytes stay.
    pub(crate) fn cut(&self, now: SystemTime, limit: u64) -> Cut {
        let mut excess = self.total.saturating_sub(limit);
        let mut bucket = BUCKETS;
        while excess > 0 && bucket > 0 {
            let bytes = self.bytes[bucket - 1];
            bucket -= 1;
            if bytes >= excess {
                return Cut { now, bucket, of_bucket: excess };
            }
            excess -= bytes;
        }
        Cut { now, bucket, of_bucket: 0 }
    }
}

impl Cut {
    /// What is to happen to this entry. Of those on the line it takes the first that come.
    pub(crate) fn verdict(&mut self, used: SystemTime, disk: u64) -> Verdict {
        if is_misdated(self.now, used) {
            return Verdict::Misdated;
        }
        match bucket(self.now, used) {
            bucket if bucket > self.bucket => Verdict::Oldest,
            bucket if bucket < self.bucket => Verdict::Recent,
            _ if self.of_bucket == 0 => Verdict::Spared,
            _ => {
                self.of_bucket = self.of_bucket.saturating_sub(disk);
                Verdict::Oldest
            }
        }
    }
}

/// A mark that is newer than any that an orderly clock could have made.
fn is_misdated(now: SystemTime, used: SystemTime) -> bool {
    used > now && distance(used, now) > MARK_FOR
}

/// What lies in the future is as new as what was used now.
fn bucket(now: SystemTime, used: SystemTime) -> usize {
    let age = now.duration_since(used).unwrap_or(Duration::ZERO);
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    if age < STEPS {
        return age as usize;
    }
    // The highest seven bits of the age: how long it is, and the six that follow the first.
    let length = 63 - age.leading_zeros();
    let doublings = length - FINENESS;
    let step = (age >> doublings) & (STEPS - 1);
    (((doublings + 1) as u64) << FINENESS | step) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: u64 = 3600;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    fn ago(seconds: u64) -> SystemTime {
        now() - Duration::from_secs(seconds)
    }

    /// The verdicts on these entries, given as age in seconds and size.
    fn judged(entries: &[(u64, u64)], limit: u64) -> Vec<Verdict> {
        let mut ages = Ages::default();
        for (age, disk) in entries {
            ages.add(now(), ago(*age), *disk);
        }
        let mut cut = ages.cut(now(), limit);
        entries.iter().map(|(age, disk)| cut.verdict(ago(*age), *disk)).collect()
    }

    #[test]
    fn a3_what_was_not_used_for_longest_goes_and_no_more_than_must() {
        use Verdict::{Oldest, Recent};
        let entries = [(5, 10), (500, 10), (50, 10), (50_000, 10), (5_000, 10)];
        assert_eq!(judged(&entries, 50), [Recent; 5]);
        assert_eq!(judged(&entries, 49)[3], Oldest);
        assert_eq!(judged(&entries, 40), [Recent, Recent, Recent, Oldest, Recent]);
        assert_eq!(judged(&entries, 39), [Recent, Recent, Recent, Oldest, Oldest]);
        assert_eq!(judged(&entries, 15), [Recent, Oldest, Oldest, Oldest, Oldest]);
        assert_eq!(judged(&entries, 0), [Oldest; 5]);
    }

    #[test]
    fn a3_of_what_is_equally_old_only_as_much_goes_as_must() {
        use Verdict::{Oldest, Spared};
        assert_eq!(judged(&[(HOUR, 10); 4], 25), [Oldest, Oldest, Spared, Spared]);
    }

    #[test]
    fn a3_a_mark_from_the_future_is_renewed_and_spares_nothing_else() {
        let mut ages = Ages::default();
        let ahead = now() + Duration::from_secs(2 * HOUR);
        for used in [ahead, ago(60), ago(120)] {
            ages.add(now(), used, 10);
        }
        let mut cut = ages.cut(now(), 20);
        let verdicts = [ahead, ago(60), ago(120)].map(|used| cut.verdict(used, 10));
        assert_eq!(verdicts, [Verdict::Misdated, Verdict::Recent, Verdict::Oldest]);
        // One that was marked after `now` was read is no such thing.
        assert_eq!(cut.verdict(now() + Duration::from_secs(1), 10), Verdict::Recent);
    }

    #[test]
    fn a3_ages_are_told_apart_to_a_sixty_fourth_of_themselves() {
        let at = |millis: u64| bucket(now(), now() - Duration::from_millis(millis));
        let mut last = 0;
        for millis in 0..1 << 20 {
            let bucket = at(millis);
            assert!(bucket == last || bucket == last + 1, "{millis}");
            assert_ne!(at(millis + millis / STEPS + 1), bucket, "{millis}");
            last = bucket;
        }
        let oldest = bucket(
            SystemTime::UNIX_EPOCH + Duration::from_millis(u64::MAX),
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(oldest, BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn a3_what_stays_fits_and_nothing_goes_before_what_is_much_older(
            entries in proptest::collection::vec((0..1_000_000_u64, 1..100_u64), 0..60),
            limit in 0..3000_u64,
        ) {
            let verdicts = judged(&entries, limit);
            let gone = |verdict: &Verdict| *verdict == Verdict::Oldest;
            let kept = entries.iter().zip(&verdicts).filter(|(_, verdict)| !gone(verdict));
            let kept: Vec<_> = kept.map(|(entry, _)| *entry).collect();
            let total: u64 = kept.iter().map(|(_, disk)| disk).sum();
            prop_assert!(total <= limit);
            let oldest_kept = kept.iter().map(|(age, _)| *age).max().unwrap_or(0);
            for ((age, disk), verdict) in entries.iter().zip(&verdicts) {
                if gone(verdict) {
                    prop_assert!(age + age / 32 + 1 >= oldest_kept);
                    // With it, and all that is newer, it would not have fitted.
                    let newer = |other: &&(u64, u64)| other.0 <= age + age / 32 + 1;
                    let with: u64 = entries.iter().filter(newer).map(|(_, disk)| disk).sum();
                    prop_assert!(with.max(*disk) > limit);
                }
            }
        }
    }
}
