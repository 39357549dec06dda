//! Gradients of normalizations that a device computes by one kernel.

use super::frame::given;
use crate::autograd::is_grad_enabled;
use crate::op::Table;
use crate::{Backward, Error, Grads, Op, Result, Tensor};
use cresset_dispatch::site;

/// What the gradients of a normalization are made of.
#[derive(Clone, Copy)]
pub struct Normalized<'a> {
    /// The gradient of the output.
    pub grad: &'a Tensor,
    /// What was normalized.
    pub x: &'a Tensor,
    /// What it was multiplied by afterwards.
    pub weight: Option<&'a Tensor>,
    /// The mean of each group; none where it plays no part.
    pub mean: Option<&'a Tensor>,
    /// What the elements of each group were multiplied by.
    pub scale: Option<&'a Tensor>,
}

/// Fills the gradients that are wanted of input, weight and bias.
pub type GradientFn<O> = for<'a> fn(&O, Normalized<'a>, &[Option<Tensor>; 3]) -> Result<()>;

/// A normalization whose gradients a device may compute at once.
pub trait Normalization: Op {
    /// How many of input, weight and bias there are.
    const PARTS: usize;

    /// Kernels for the gradients, plugged in by devices.
    fn gradient_table() -> &'static Table<GradientFn<Self>>;

    /// The gradients by the device's kernel; none if it has none, or if they need derivatives themselves.
    /// `saved` are input, weight, mean and scale.
    #[doc(hidden)]
    fn device_gradients(&self, ctx: &Backward<'_>, saved: [Option<&Tensor>; 4]) -> Result<Option<Grads>> {
        let [x, weight, mean, scale] = saved;
        let Some(kernel) = Self::gradient_table().get(ctx.grad().device().key) else { return Ok(None) };
        if is_grad_enabled() || given(x).numel() == 0 {
            return Ok(None);
        }
        let mut room = [None, None, None];
        for (at, room) in room.iter_mut().enumerate().take(Self::PARTS).filter(|(at, _)| ctx.needs(*at)) {
            *room = Some(Tensor::uninit(ctx.shape(at), ctx.dtype(at), ctx.device(at))?);
        }
        let from = Normalized { grad: ctx.grad(), x: given(x), weight, mean, scale };
        let _site = site::enter(Self::BACKWARD);
        kernel(self, from, &room).map_err(|error: Error| error.in_op(Self::NAME))?;
        Ok(Some(room.into_iter().take(Self::PARTS).collect()))
    }
}

macro_rules! normalizations {
    ($($op:ident: $parts:literal;)*) => {$(
        impl Normalization for super::$op {
            const PARTS: usize = $parts;

            fn gradient_table() -> &'static Table<GradientFn<super::$op>> {
                static TABLE: Table<GradientFn<super::$op>> = Table::new();
                &TABLE
            }
        }
    )*};
}

normalizations! {
    NativeLayerNorm: 3;
    NativeBatchNorm: 3;
    NativeGroupNorm: 3;
    FusedRmsNorm: 2;
}
