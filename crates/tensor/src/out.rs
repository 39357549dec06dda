//! Results received in a tensor that exists already.

use crate::autograd::{check_inference, results};
use crate::op::{InFlight, Inputs, Kernel, Op, device_of};
use crate::{Cause, DType, Device, Error, Key, Result, Tensor, no_grad};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe::{self, Span};

impl Tensor {
    /// Writes what `compute` gives into this tensor, on behalf of operator `op` on `inputs`.
    ///
    /// ```
    /// # use cresset_tensor::{Result, Tensor};
    /// let (x, out) = (Tensor::new([1.0f32, 2.0])?, Tensor::zeros([2], ())?);
    /// out.receive("aten::exp", &[&x], || x.exp())?;
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the result is of another shape, element type or device than this tensor, if some of its
    /// elements share memory, with each other or with an input, or if gradients would be needed:
    /// what a call writes elsewhere has no place in a graph. The tensor is unchanged then.
    pub fn receive(
        &self,
        op: &'static str,
        inputs: &[&Tensor],
        compute: impl FnOnce() -> Result<Tensor>,
    ) -> Result<()> {
        self.check_free(op, inputs)?;
        let result = compute()?;
        self.check_fits(op, result.shape(), result.dtype(), result.device())?;
        let _unrecorded = no_grad();
        self.copy_(&result)
    }

    /// Refuses to be overwritten by a call on `inputs`.
    fn check_free(&self, op: &'static str, inputs: impl Inputs) -> Result<()> {
        let refused = |cause: Cause, text: std::fmt::Arguments<'_>| Err(Error::new(cause, op, text));
        let (mut recorded, mut shared) = (false, false);
        inputs.each(|given| {
            if let Some(tensor) = given.tensor() {
                recorded |= tensor.requires_grad();
                shared |= tensor.storage().same_as(self.storage());
            }
        });
        let recording = KeySet::AUTOGRAD.here().contains(Key::AUTOGRAD);
        if recording && recorded || self.requires_grad() {
            let text = format_args!("a result in a given tensor has no gradient; do it under no_grad()");
            return refused(Cause::Graph, text);
        }
        if self.layout().may_overlap() {
            let text = format_args!("several elements of the result's {:?} share memory", self.layout());
            return refused(Cause::Argument, text);
        }
        if shared {
            return refused(Cause::Argument, format_args!("the result shares memory with an input"));
        }
        check_inference(op, self)
    }

    /// Refuses a result that looks different from this tensor.
    fn check_fits(&self, op: &'static str, shape: &[usize], dtype: DType, device: Device) -> Result<()> {
        if (shape, dtype, device) == (self.shape(), self.dtype(), self.device()) {
            return Ok(());
        }
        let text = format_args!(
            "gives shape {shape:?} of {dtype} on {device}, which does not fit into shape {:?} of {} on {}",
            self.shape(),
            self.dtype(),
            self.device()
        );
        Err(Error::new(Cause::Shape, op, text))
    }
}

/// An operator whose result can be received where it is computed.
pub trait CallOut: Kernel + Op<Output = Tensor> {
    /// Calls the operator and writes its result into `out`, without memory in between if the elements
    /// of `out` lie one after the other.
    ///
    /// ```
    /// # use cresset_tensor::{CallOut, Result, Tensor, ops::Mul};
    /// let (x, out) = (Tensor::new([1.0f32, 2.0])?, Tensor::zeros([2], ())?);
    /// Mul.call_out((&x, 3.0.into()), &out)?;
    /// assert_eq!(out.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::receive`].
    fn call_out(self, inputs: Self::Inputs<'_>, out: &Tensor) -> Result<()> {
        let span = observe::span(&InFlight { op: &self, inputs, name: Self::NAME });
        let span = span.map(Span::failing_on_fault);
        out.check_free(Self::NAME, inputs)?;
        let (spec, device) = (self.infer(inputs)?, device_of(Self::NAME, inputs)?);
        out.check_fits(Self::NAME, &spec.shape, spec.dtype, device)?;
        let looked = if results::are_looked_at() { results::look(&self, Self::NAME, inputs)? } else { None };
        if out.layout().is_contiguous() && out.layout().offset() == 0 {
            self.fill(inputs, out, device)?;
            out.storage().changed(Self::NAME);
        } else {
            let _unrecorded = no_grad();
            out.copy_(&self.launch(inputs)?)?;
        }
        if let Some(looked) = looked {
            looked.check(|visit| visit(out))?;
        }
        if let Some(span) = span.filter(Span::wants_results) {
            span.gave(&[out.argument()]);
        }
        Ok(())
    }
}

impl<K: Kernel + Op<Output = Tensor>> CallOut for K {}
