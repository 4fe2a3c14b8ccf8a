//! Tensors of any shape and strides: nothing panics or overflows, and what is said of small ones is
//! what counting every element says.
#![no_main]

use std::collections::HashSet;

use grainstore::{ElementType, KeyError, PlanKey, TensorDesc};
use libfuzzer_sys::fuzz_target;

/// So many elements are counted one by one.
const FEW: u64 = 4096;

/// The offset of each element.
fn offsets(shape: &[u64], strides: &[i64]) -> Vec<i128> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let mut offsets = vec![0];
    for (&size, &stride) in shape.iter().zip(strides) {
        let steps = (0..size).map(|index| i128::from(index) * i128::from(stride));
        let steps: Vec<i128> = steps.collect();
        offsets = offsets.iter().flat_map(|at| steps.iter().map(move |step| at + step)).collect();
    }
    offsets
}

fuzz_target!(|input: (bool, Vec<(u64, i64)>)| {
    let (small, dimensions) = input;
    let dimensions = dimensions.into_iter().take(8);
    let (shape, strides): (Vec<u64>, Vec<i64>) = dimensions
        .map(|(size, stride)| if small { (size % 6, stride % 40) } else { (size, stride) })
        .unzip();
    if let Ok(contiguous) = TensorDesc::contiguous(ElementType::F16, &shape) {
        assert_eq!(Some(contiguous.bytes()), contiguous.elements().checked_mul(2));
        assert!(PlanKey::builder().output(contiguous).build().is_ok());
    }
    let Ok(desc) = TensorDesc::strided(ElementType::F16, &shape, &strides, "any") else { return };
    let elements: u64 = if shape.contains(&0) { 0 } else { shape.iter().product() };
    assert_eq!(desc.elements(), elements);
    let bytes = desc.bytes();
    let plan = PlanKey::builder().output(desc).build();
    if elements > FEW {
        return;
    }
    let offsets = offsets(&shape, &strides);
    let distinct: HashSet<i128> = offsets.iter().copied().collect();
    let span = match (offsets.iter().min(), offsets.iter().max()) {
        (Some(first), Some(last)) => last - first + 1,
        _ => 0,
    };
    assert_eq!(i128::from(bytes), span * 2);
    match plan {
        Ok(_) => assert_eq!(distinct.len(), offsets.len(), "an overlap was not seen"),
        Err(KeyError::Overlap { .. }) => assert!(distinct.len() < offsets.len()),
        Err(KeyError::OverlapUndecided { .. }) => {}
        Err(other) => panic!("{other}"),
    }
});
