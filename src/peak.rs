//! How fast a device is at its best, measured in a moment.

use crate::profiler::{Peak, Profiler, Trace};
use crate::{Device, Tensor};

/// Rows and columns of the matrices that are multiplied.
const SIDE: usize = 512;
/// Elements of the vector that is copied: more than caches hold.
const ELEMENTS: usize = 1 << 24;
/// The best of so many runs counts.
const RUNS: usize = 12;

/// The best speeds of `device`, for [`HtmlReport::peak`](crate::profiler::HtmlReport::peak): of a
/// product of large matrices, and of a copy of more than caches hold. Takes a fraction of a
/// second, in which the machine should do nothing else.
///
/// # Errors
/// The device cannot run either of them, or the profiler cannot start.
pub fn peak(device: Device) -> std::result::Result<Peak, Box<dyn std::error::Error + Send + Sync>> {
    let square = Tensor::ones([SIDE, SIDE], device)?;
    let long = Tensor::ones([ELEMENTS], device)?;
    let mut profiler = Profiler::builder().all_threads(false).with_flops(true).start()?;
    for _ in 0..RUNS {
        square.matmul(&square)?;
        long.mul(2.0)?;
    }
    profiler.stop()?;
    let trace = profiler.into_trace()?;
    let product = (2 * SIDE * SIDE * SIDE) as f64 / shortest(&trace, "aten::mm");
    let copied = (2 * ELEMENTS * size_of::<f32>()) as f64 / shortest(&trace, "aten::mul");
    let source = format!(
        "a product of {SIDE} × {SIDE} matrices and a scaled copy of {} MiB, in single precision",
        (ELEMENTS * size_of::<f32>()) >> 20
    );
    Ok(Peak { flops: product, bandwidth: copied, source })
}

/// Seconds of the quickest call: of its kernels on a device, of the call itself on the host.
fn shortest(trace: &Trace, name: &str) -> f64 {
    let calls = trace.events().filter(|event| event.name() == name);
    let nanos = calls.map(|call| if call.device().is_cpu() { call.duration() } else { call.device_time() });
    nanos.filter(|&nanos| nanos > 0).min().map_or(f64::NAN, |nanos| nanos as f64 * 1e-9)
}
