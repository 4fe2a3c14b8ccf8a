//! Choices that are the same for the same seed.

/// A generator of one thread: SplitMix64.
pub(super) struct Random(u64);

impl Random {
    /// The generator of one thread in one round.
    pub(super) fn new(seed: u64, round: u64, thread: u64) -> Self {
        let mut random = Self(seed);
        for number in [round, thread] {
            random = Self(random.next() ^ number);
        }
        random
    }

    /// A number below this one, which is not zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        // The bias is of no matter with bounds this small.
        (self.next() % bound as u64) as usize
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_choose_alike_and_threads_do_not() {
        let choices = |seed, round, thread| {
            let mut random = Random::new(seed, round, thread);
            [(); 20].map(|()| random.below(100))
        };
        assert_eq!(choices(1, 2, 3), choices(1, 2, 3));
        assert_ne!(choices(1, 2, 3), choices(1, 2, 4));
        assert_ne!(choices(1, 2, 3), choices(1, 3, 3));
        assert_ne!(choices(1, 2, 3), choices(2, 2, 3));
    }
}
