//! A launch on the host: a call through a native pointer.

use grainstore::DeviceId;
use grainstore_host::HostBackend;
use grainstore_runtime::{Backend, BackendError};

use super::examine::{COUNT, FACTOR, Launch};

type Saxpy = unsafe extern "C" fn(i32, f32, *const f32, *mut f32);

impl Launch for HostBackend {
    const SOURCE: &'static str = "\
void saxpy(int n, float a, const float *x, float *y) {
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
";

    fn launch(
        &self,
        _: &DeviceId,
        module: &<Self as Backend>::Module,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError> {
        // SAFETY: the module was compiled from `SOURCE`, where `saxpy` has this signature; it reads
        // and writes as many numbers as both arrays hold, and is called while the module is there.
        unsafe {
            let saxpy = module.get::<Saxpy>("saxpy")?;
            saxpy(COUNT as i32, FACTOR, x.as_ptr(), y.as_mut_ptr());
        }
        Ok(())
    }
}
