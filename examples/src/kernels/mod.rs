//! The kernels, one a file: signature, launch, reference and tolerance.

pub mod attention;
pub mod conv2d;
pub mod matmul;
pub mod reduction;
pub mod rms_norm;
pub mod saxpy;
pub mod scan;
pub mod softmax;

/// Elements as the references take them.
fn wide<T: crate::Element>(elements: &[T]) -> Vec<f64> {
    elements.iter().map(|element| element.to_f64()).collect()
}
