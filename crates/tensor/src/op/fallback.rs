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
    let error = wanted(K::NAME, device, error)?;
    let _span = composite("cresset::host_fallback", inputs, |_| {});
    let mut moved = Moved::new();
    let mut to_host = |x: &Tensor| to_host(&mut moved, x);
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
    bring_back(&from, &to, &moved)
}

/// Each tensor beside its copy on the host.
type Moved = Vec<(Tensor, Tensor)>;

/// The error as the operator tells it, if the device's backend wants the host to compute instead.
fn wanted(op: &'static str, device: Device, error: Error) -> Result<Error> {
    let error = error.in_op(op);
    if backend::of(device)?.falls_back(op) { Ok(error) } else { Err(error) }
}

fn to_host(moved: &mut Moved, x: &Tensor) -> Result<Option<Tensor>> {
    let host = x.contiguous()?.moved(Device::CPU, false)?;
    moved.push((x.clone(), host.clone()));
    Ok(Some(host))
}

fn bring_back(from: &[Tensor], to: &[Tensor], moved: &Moved) -> Result<()> {
    to.iter().zip(from).try_for_each(|(to, from)| to.fill_from(from, false))?;
    // What the kernel changed of its inputs is changed where they are.
    let mut changed = moved.iter().filter(|(_, host)| host.storage().version() > 0);
    changed.try_for_each(|(x, host)| x.copy_(&host.to(x.device())?))
}
