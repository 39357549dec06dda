//! Operators that a device has no kernel for, computed by the host where that is wanted.

use crate::{Device, Error, Inputs as _, Kernel, Output as _, Result, Tensor, backend, composite};

/// Fills `output` with what the host's kernel gives, if the device's backend wants that.
///
/// # Errors
/// `error` if it does not.
#[cold]
pub(super) fn fill<K: Kernel>(
    op: &K,
    inputs: K::Inputs<'_>,
    output: &K::Output,
    device: Device,
    error: Error,
) -> Result<()> {
    let error = error.in_op(K::NAME);
    if !backend::of(device)?.falls_back(K::NAME) {
        return Err(error);
    }
    let _span = composite("cresset::host_fallback", inputs, |_| {});
    // Each tensor beside its copy on the host.
    let mut moved: Vec<(Tensor, Tensor)> = Vec::new();
    let mut to_host = |x: &Tensor| {
        let host = x.contiguous()?.moved(Device::CPU, false)?;
        moved.push((x.clone(), host.clone()));
        Ok(Some(host))
    };
    let host = inputs.swapped(&mut to_host, |inputs| {
        // Some inputs can be changed only where they are.
        if inputs.device().is_some_and(|device| !device.is_cpu()) {
            return Ok(None);
        }
        let output = op.computed(inputs)?;
        op.changed(inputs);
        Ok(Some(output))
    })?;
    let Some(host) = host else { return Err(error) };
    let (mut from, mut to) = (Vec::new(), Vec::new());
    host.each(|tensor| from.push(tensor.clone()));
    output.each(|tensor| to.push(tensor.clone()));
    to.iter().zip(&from).try_for_each(|(to, from)| to.fill_from(from, false))?;
    // What the kernel changed of its inputs is changed where they are.
    let changed = moved.iter().filter(|(_, host)| host.storage().version() > 0);
    changed.into_iter().try_for_each(|(x, host)| x.copy_(&host.to(x.device())?))
}
