//! Results received in a tensor that exists already.

use crate::{Cause, Error, Key, Result, Tensor, no_grad};
use cresset_dispatch::KeySet;

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
        let refused = |cause: Cause, text: std::fmt::Arguments<'_>| Err(Error::new(cause, op, text));
        let recording = KeySet::AUTOGRAD.here().contains(Key::AUTOGRAD);
        if recording && inputs.iter().any(|input| input.requires_grad()) || self.requires_grad() {
            let text = format_args!("a result in a given tensor has no gradient; do it under no_grad()");
            return refused(Cause::Graph, text);
        }
        if self.layout().may_overlap() {
            let text = format_args!("several elements of the result's {:?} share memory", self.layout());
            return refused(Cause::Argument, text);
        }
        if inputs.iter().any(|input| input.storage().same_as(self.storage())) {
            return refused(Cause::Argument, format_args!("the result shares memory with an input"));
        }
        let result = compute()?;
        let looks = |x: &Tensor| format!("shape {:?} of {} on {}", x.shape(), x.dtype(), x.device());
        let fits =
            (result.shape(), result.dtype(), result.device()) == (self.shape(), self.dtype(), self.device());
        if !fits {
            let text = format_args!("gives {}, which does not fit into {}", looks(&result), looks(self));
            return refused(Cause::Shape, text);
        }
        let _unrecorded = no_grad();
        self.copy_(&result)
    }
}
