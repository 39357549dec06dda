//! Sums of three operands, as optimizers write them.

use super::{broadcast, scalar_argument};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::promote::common_type;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, elementwise, functions};

fn shape(op: &'static str, tensors: &[&Tensor]) -> Result<Dims> {
    tensors[1..]
        .iter()
        .try_fold(Dims::from_slice(tensors[0].shape()), |shape, tensor| broadcast(op, &shape, tensor.shape()))
}

fn meet(op: &'static str, tensors: [&Tensor; 3]) -> Result<Spec> {
    Ok(Spec { shape: shape(op, &tensors)?, dtype: common_type(tensors.map(Operand::Tensor)) })
}

/// Refuses truths, and factors that integers would cut.
fn infer_product(op: &'static str, tensors: [&Tensor; 3], value: Scalar) -> Result<Spec> {
    let spec = meet(op, tensors)?;
    let fits = match value {
        Scalar::Float(_) => spec.dtype.is_float(),
        Scalar::Int(_) | Scalar::Bool(_) => spec.dtype != DType::Bool,
    };
    if fits {
        return Ok(spec);
    }
    let text = format_args!("a result of {} cannot take the factor {value}", spec.dtype);
    Err(Error::new(Cause::DType, op, text))
}

/// Refuses quotients of integers.
fn infer_quotient(op: &'static str, tensors: [&Tensor; 3], _value: Scalar) -> Result<Spec> {
    let spec = meet(op, tensors)?;
    let [_, b, c] = tensors;
    if spec.dtype.is_float() && (b.dtype().is_float() || c.dtype().is_float()) {
        return Ok(spec);
    }
    let text = format_args!(
        "does not divide {} by {}; convert with to_dtype() to a float first",
        b.dtype(),
        c.dtype()
    );
    Err(Error::new(Cause::DType, op, text))
}

/// Writes `a` into `out`, so that an in-place kernel can go on from there.
fn start(a: &Tensor, out: &Tensor) -> Result<()> {
    cpu::map(a, out.dtype(), out, elementwise::copy)
}

macro_rules! ternary {
    ($($(#[$doc:meta])* $op:ident, $method:ident / $method_:ident: $name:literal, $in_place:literal, $backward:literal,
        $infer:ident, $kernel:ident, |$ctx:ident, $value:ident| $derivative:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// The factor.
            pub value: Scalar,
        }

        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const SAVES: Saves = Saves::InputsFrom(1);
            type Inputs<'a> = [&'a Tensor; 3];
            type Output = Tensor;

            fn backward(&self, $ctx: &Backward<'_>) -> Result<Grads> {
                let $value = self.value;
                $derivative
            }

            fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
                inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
                visit(scalar_argument(self.value));
            }
        }

        impl Kernel for $op {
            const ELEMENTWISE: bool = true;
            kernel_table!($op);

            fn infer(&self, inputs: [&Tensor; 3]) -> Result<Spec> {
                $infer(Self::NAME, inputs, self.value)
            }

            fn cpu(&self, [a, b, c]: [&Tensor; 3], out: &Tensor) -> Result<()> {
                start(a, out)?;
                let f = functions::$op { value: self.value };
                cpu::change(out, [Operand::Tensor(b), Operand::Tensor(c)], |a, [b, c]| {
                    elementwise::$kernel(f, a, b, c);
                })
            }
        }

        impl InPlace for $op {
            const IN_PLACE: &'static str = $in_place;
            const NEEDS_OVERWRITTEN: bool = false;
            kernel_table!(in place $op);

            fn cpu_in_place(&self, inputs: [&Tensor; 3]) -> Result<()> {
                let [a, b, c] = inputs;
                if self.infer(inputs)?.dtype != a.dtype() {
                    return self.write_copy(inputs);
                }
                let f = functions::$op { value: self.value };
                cpu::change(a, [Operand::Tensor(b), Operand::Tensor(c)], |a, [b, c]| {
                    elementwise::$kernel(f, a, b, c);
                })
            }
        }

        impl Tensor {
            $(#[$doc])*
            pub fn $method(&self, b: &Tensor, c: &Tensor, value: impl Into<Scalar>) -> Result<Tensor> {
                $op { value: value.into() }.call([self, b, c])
            }

            #[doc = concat!("As [`", stringify!($method), "`](Tensor::", stringify!($method), "), in place.")]
            pub fn $method_(&self, b: &Tensor, c: &Tensor, value: impl Into<Scalar>) -> Result<()> {
                $op { value: value.into() }.call_in_place([self, b, c])
            }
        }
    )*};
}

ternary! {
    /// `self + value * b * c`
    Addcmul, addcmul / addcmul_: "aten::addcmul", "aten::addcmul_", "AddcmulBackward0",
        infer_product, ternary_in_place, |ctx, value| grads!(ctx;
            ctx.grad().clone(),
            ctx.grad().mul(&ctx.saved(2).mul(value)?)?,
            ctx.grad().mul(&ctx.saved(1).mul(value)?)?,
        );
    /// `self + value * b / c`
    Addcdiv, addcdiv / addcdiv_: "aten::addcdiv", "aten::addcdiv_", "AddcdivBackward0",
        infer_quotient, float_ternary_in_place, |ctx, value| {
            let (b, c) = (ctx.saved(1), ctx.saved(2));
            grads!(ctx;
                ctx.grad().clone(),
                {
                    let share = c.filled_like(value)?;
                    share.div_(c)?;
                    ctx.grad().mul(&share)?
                },
                {
                    let square = c.mul(c)?;
                    let slope = b.mul(value)?.div(&square)?;
                    ctx.grad().neg()?.mul(&slope)?
                },
            )
        };
}

/// `a + weight * (b - a)`
#[derive(Clone, Debug)]
pub struct Lerp {
    /// How far to go from `a` to `b`.
    pub weight: Scalar,
}

/// `a + weight * (b - a)`, with a weight for each element.
#[derive(Clone, Debug)]
pub struct LerpTensor;

/// Refuses anything but floats of one type; a weight without dimensions may be of another.
fn infer_lerp(op: &'static str, tensors: &[&Tensor]) -> Result<Spec> {
    let dtype = tensors[0].dtype();
    let fits = |(i, tensor): (usize, &&Tensor)| {
        tensor.dtype() == dtype || i == 2 && tensor.dim() == 0 && tensor.dtype().is_float()
    };
    if dtype.is_float() && tensors.iter().enumerate().all(fits) {
        return Ok(Spec { shape: shape(op, tensors)?, dtype });
    }
    let dtypes: Vec<DType> = tensors.iter().map(|tensor| tensor.dtype()).collect();
    Err(Error::new(Cause::DType, op, format_args!("expects floats of one dtype, not {dtypes:?}")))
}

impl Op for Lerp {
    const NAME: &'static str = "aten::lerp";
    const BACKWARD: &'static str = "LerpBackward0";
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let weight = self.weight.as_f64();
        grads!(ctx; 1 => ctx.grad().mul(weight)?, 0 => ctx.grad().mul(1.0 - weight)?)
    }

    fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(scalar_argument(self.weight));
    }
}

impl Kernel for Lerp {
    const ELEMENTWISE: bool = true;
    kernel_table!(Lerp);

    fn infer(&self, inputs: [&Tensor; 2]) -> Result<Spec> {
        infer_lerp(Self::NAME, &inputs)
    }

    fn cpu(&self, [a, b]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        start(a, out)?;
        self.cpu_in_place([out, b])
    }
}

impl InPlace for Lerp {
    const IN_PLACE: &'static str = "aten::lerp_";
    kernel_table!(in place Lerp);

    fn cpu_in_place(&self, [a, b]: [&Tensor; 2]) -> Result<()> {
        let f = functions::LerpBy { share: self.weight.as_f64() };
        cpu::change(a, [Operand::Tensor(b)], |a, [b]| elementwise::float_binary_in_place(f, a, b))
    }
}

impl Op for LerpTensor {
    const NAME: &'static str = "aten::lerp";
    const BACKWARD: &'static str = "LerpBackward1";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let weight = ctx.saved(2);
        grads!(ctx;
            1 => ctx.grad().mul(weight)?,
            0 => {
                let rest = weight.filled_like(1)?;
                rest.sub_(weight)?;
                ctx.grad().mul(&rest)?
            },
            2 => ctx.grad().mul(&ctx.saved(1).sub(ctx.saved(0))?)?,
        )
    }
}

impl Kernel for LerpTensor {
    const ELEMENTWISE: bool = true;
    kernel_table!(LerpTensor);

    fn infer(&self, inputs: [&Tensor; 3]) -> Result<Spec> {
        infer_lerp(Self::NAME, &inputs)
    }

    fn cpu(&self, [a, b, weight]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        start(a, out)?;
        self.cpu_in_place([out, b, weight])
    }
}

impl InPlace for LerpTensor {
    const IN_PLACE: &'static str = "aten::lerp_";
    const NEEDS_OVERWRITTEN: bool = false;
    kernel_table!(in place LerpTensor);

    fn cpu_in_place(&self, [a, b, weight]: [&Tensor; 3]) -> Result<()> {
        cpu::change(a, [Operand::Tensor(b), Operand::Tensor(weight)], |a, [b, weight]| {
            elementwise::float_ternary_in_place(functions::Lerp, a, b, weight);
        })
    }
}

impl Tensor {
    /// The place between this and `end` that `weight` says: 0 is here, 1 is there.
    pub fn lerp<'a>(&'a self, end: &'a Tensor, weight: impl Into<Operand<'a>>) -> Result<Tensor> {
        match weight.into() {
            Operand::Tensor(weight) => LerpTensor.call([self, end, weight]),
            Operand::Scalar(weight) => Lerp { weight }.call([self, end]),
        }
    }

    /// As [`lerp`](Tensor::lerp), in place.
    pub fn lerp_<'a>(&'a self, end: &'a Tensor, weight: impl Into<Operand<'a>>) -> Result<()> {
        match weight.into() {
            Operand::Tensor(weight) => LerpTensor.call_in_place([self, end, weight]),
            Operand::Scalar(weight) => Lerp { weight }.call_in_place([self, end]),
        }
    }
}
