//! The cache against a plain sequential reference: the same operations on both, everything that can
//! be seen compared after each, the exact order of use among it.

mod reference;
mod system;

use proptest::prelude::*;
use reference::Op;
use system::System;

fn identity() -> impl Strategy<Value = (u64, usize)> {
    (0..6_u64, prop_oneof![4 => Just(0_usize), 2 => Just(1), 1 => Just(2), 1 => Just(3)])
}

fn op() -> impl Strategy<Value = Op> {
    let place = any::<prop::sample::Index>();
    prop_oneof![
        12 => (identity(), any::<bool>()).prop_map(|(id, keep)| Op::Build { id, keep }),
        3 => (identity(), any::<bool>()).prop_map(|(id, keep)| Op::BuildBySlot { id, keep }),
        2 => identity().prop_map(|id| Op::Fail { id, panic: false }),
        1 => identity().prop_map(|id| Op::Fail { id, panic: true }),
        2 => (identity(), identity()).prop_map(|(id, inner)| Op::Nested { id, inner }),
        2 => (identity(), 0..3_usize).prop_map(|(id, by)| Op::Doomed { id, by }),
        6 => (identity(), any::<bool>()).prop_map(|(id, keep)| Op::Get { id, keep }),
        2 => (identity(), any::<bool>()).prop_map(|(id, keep)| Op::GetBySlot { id, keep }),
        2 => place.clone().prop_map(Op::ClonePin),
        6 => place.clone().prop_map(Op::DropPin),
        3 => identity().prop_map(Op::Remove),
        2 => (1..3_usize).prop_map(Op::EvictDevice),
        1 => Just(Op::Clear),
        4 => (0..6_u64, any::<bool>()).prop_map(|(key, busy)| Op::SetBusy { key, busy }),
        2 => Just(Op::Reap),
        2 => Just(Op::AskRoom),
        2 => place.clone().prop_map(Op::Wait),
        1 => place.clone().prop_map(Op::Abandon),
        1 => place.prop_map(Op::DropDrain),
    ]
}

fn run(capacity: Option<usize>, borrows: bool, ops: &[Op]) {
    let mut system = System::new(capacity, borrows);
    for (step, op) in ops.iter().enumerate() {
        system.apply(op, &format!("step {step}, {op:?}"));
    }
    system.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bounded_cache_does_what_the_reference_does(
        capacity in 1..5_usize,
        borrows in any::<bool>(),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        run(Some(capacity), borrows, &ops);
    }

    #[test]
    fn an_unbounded_cache_does_what_the_reference_does(
        borrows in any::<bool>(),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        run(None, borrows, &ops);
    }
}
