//! Numbers in the place of NaN and infinity.

use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, DType, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Float, elementwise, functions, with_dtype};

/// `x`, or another number where it is none or infinite.
#[derive(Clone, Copy, Debug, Default)]
pub struct NanToNum {
    /// In the place of NaN; 0 if not given.
    pub nan: Option<f64>,
    /// In the place of infinity; the largest number of the element type if not given.
    pub posinf: Option<f64>,
    /// In the place of negative infinity; the smallest number of the element type if not given.
    pub neginf: Option<f64>,
}

impl NanToNum {
    fn function(self, dtype: DType) -> functions::NanToNum {
        let largest = with_dtype!(dtype, [floats] T => largest::<T>(), else 0.0);
        functions::NanToNum {
            nan: self.nan.unwrap_or(0.0),
            posinf: self.posinf.unwrap_or(largest),
            neginf: self.neginf.unwrap_or(-largest),
        }
    }
}

fn largest<T: Float>() -> f64 {
    T::max_value().wide()
}

impl Op for NanToNum {
    const NAME: &'static str = "aten::nan_to_num";
    const BACKWARD: &'static str = "NanToNumBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().mul(&ctx.saved(0).isfinite()?)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        for number in [self.nan, self.posinf, self.neginf] {
            visit(number.map_or(Argument::None, Argument::Float));
        }
    }
}

impl Kernel for NanToNum {
    const ELEMENTWISE: bool = true;
    kernel_table!(NanToNum);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let f = self.function(x.dtype());
        cpu::map(x, x.dtype(), out, |x, out| {
            if x.dtype().is_float() { elementwise::unary(f, x, out) } else { elementwise::copy(x, out) }
        })
    }
}

impl InPlace for NanToNum {
    const IN_PLACE: &'static str = "aten::nan_to_num_";
    kernel_table!(in place NanToNum);

    fn cpu_in_place(&self, [x]: [&Tensor; 1]) -> Result<()> {
        if !x.dtype().is_float() {
            return Ok(());
        }
        cpu::change(x, [], |x, []| elementwise::unary_in_place(self.function(x.dtype()), x))
    }
}

impl Tensor {
    /// `x`, or where it is NaN or infinite the number given for that: 0 and the largest numbers there
    /// are, if none is given.
    pub fn nan_to_num(&self, nan: Option<f64>, posinf: Option<f64>, neginf: Option<f64>) -> Result<Tensor> {
        NanToNum { nan, posinf, neginf }.call([self])
    }

    /// [`nan_to_num`](Tensor::nan_to_num) in place.
    pub fn nan_to_num_(&self, nan: Option<f64>, posinf: Option<f64>, neginf: Option<f64>) -> Result<()> {
        NanToNum { nan, posinf, neginf }.call_in_place([self])
    }
}
