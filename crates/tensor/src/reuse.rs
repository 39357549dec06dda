//! Results written over an operand that nobody else has: `a * b + c` needs the memory of one result, and
//! gradients that meet grow where they are.

use crate::op::InPlace;
use crate::{DType, Inputs, Key, Op, Operand, Result, Scalar, Tensor, cpu};
use cresset_dispatch::{key, memory, observe};
use cresset_kernels::{View, ViewMut, elementwise, functions};

/// Smaller results lie in the tensor itself, and a new one is as cheap.
const PAYS: usize = 1024;

/// Calls `op`. If `a` is spent, its memory becomes the result's, elements and all else as in a new one.
pub(crate) fn over<O>(op: O, mut a: Tensor, b: Operand<'_>) -> Result<Tensor>
where
    for<'a> O: InPlace + Op<Inputs<'a> = (&'a Tensor, Operand<'a>)>,
{
    if is_spent(&mut a, b) {
        op.write((&a, b))?;
        return Ok(a);
    }
    op.call((&a, b))
}

impl Tensor {
    /// Adds `other` to this tensor, whose memory nobody else sees.
    pub(crate) fn grow(&self, other: &Tensor) -> Result<()> {
        let sum = functions::Add { alpha: Scalar::Int(1) };
        let run = |target: ViewMut<'_>, other: View<'_>| elementwise::binary_in_place(sum, target, other);
        if !observe::is_watched() && cpu::change_alike(self, other, run) {
            return Ok(());
        }
        self.add_(other)
    }
}

/// Whether nobody can tell if the result of `a` and `b` is written over `a`: it is the only handle of
/// memory that is as the result's would be, nothing is recorded and nobody watches.
fn is_spent(a: &mut Tensor, b: Operand<'_>) -> bool {
    a.storage().len() >= PAYS
        && a.device().key == Key::CPU
        && is_result(a, b)
        && !observe::is_watched()
        && !memory::is_heard()
        && !(&*a, b).keys().here().contains(Key::AUTOGRAD)
        && a.is_inference() == key::excluded().contains(Key::CHANGES)
        && a.is_alone()
}

/// Whether the result has the type and the layout of `a`, and `b` needs no conversion.
fn is_result(a: &Tensor, b: Operand<'_>) -> bool {
    let fits = match b {
        Operand::Tensor(b) => b.dtype() == a.dtype() && b.layout().broadcast_to(a.shape()).is_some(),
        Operand::Scalar(b) => !matches!(b, Scalar::Bool(_)),
    };
    fits && matches!(a.dtype(), DType::F32 | DType::F64) && a.is_contiguous()
}
