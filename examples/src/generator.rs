//! Inputs that are the same in every run: a small generator of pseudo-random numbers.

use crate::Element;

/// `SplitMix64`: a counter and a mixing step. Its seed says which sequence.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u64,
}

impl Generator {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number at least zero and below one.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An index below `end`, which must not be zero.
    pub fn below(&mut self, end: usize) -> usize {
        (self.fraction() * end as f64) as usize
    }

    /// That many elements between minus and plus [`Element::REACH`].
    pub fn elements<T: Element>(&mut self, count: usize) -> Vec<T> {
        (0..count).map(|_| T::from_f64((2.0 * self.fraction() - 1.0) * T::REACH)).collect()
    }
}
