//! The element types that the kernels are compiled for: what `T` is in a variant's defines.

use bytemuck::Pod;

/// An element type. References are computed in `f64`, which holds every value of each exactly.
pub trait Element: Pod + Default + PartialEq + Send + Sync {
    /// Its name in C and in OpenCL C.
    const NAME: &'static str;
    /// The distance between one and the next value; zero where arithmetic is exact.
    const EPSILON: f64;
    /// The values that test inputs are drawn from: from minus this to this.
    const REACH: f64;
    /// A value that no kernel of the tests computes; far above the others, so that it does not pass
    /// unseen through a sum or a maximum either.
    const MARK: Self;

    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;

    /// The same value, wider.
    fn to_f64(self) -> f64;
}

impl Element for f32 {
    const NAME: &'static str = "float";
    const EPSILON: f64 = f32::EPSILON as f64;
    const REACH: f64 = 1.0;
    const MARK: Self = 77_777.0;

    fn from_f64(value: f64) -> Self {
        value as Self
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    const NAME: &'static str = "double";
    const EPSILON: f64 = f64::EPSILON;
    const REACH: f64 = 1.0;
    const MARK: Self = 77_777.0;

    fn from_f64(value: f64) -> Self {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }
}

impl Element for i32 {
    const NAME: &'static str = "int";
    const EPSILON: f64 = 0.0;
    /// Small enough that no sum of the tests overflows.
    const REACH: f64 = 1000.0;
    const MARK: Self = 77_777;

    fn from_f64(value: f64) -> Self {
        value as Self
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}
