//! Gradients of normalizations that a device computes by one kernel.

use super::frame::given;
use crate::autograd::is_grad_enabled;
use crate::op::Table;
use crate::{Backward, Device, Error, Op, Result, Spec, Tensor};
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

impl<'a> Normalized<'a> {
    /// From the gradient of an output, and what was kept of input, weight, mean and scale.
    pub(super) fn new(grad: &'a Tensor, [x, weight, mean, scale]: [Option<&'a Tensor>; 4]) -> Normalized<'a> {
        Normalized { grad, x: given(x), weight, mean, scale }
    }
}

/// Which gradients of input, weight and bias are wanted, and what they look like.
pub(super) type Wanted = [Option<Spec>; 3];

/// The gradients of input, weight and bias.
pub(super) type Gradients = [Option<Tensor>; 3];

/// What those who asked for gradients want.
pub(super) fn wanted(ctx: &Backward<'_>) -> Wanted {
    [0, 1, 2].map(|at| ctx.needs(at).then(|| Spec::new(ctx.shape(at), ctx.dtype(at))))
}

/// Which of the gradients are wanted, as observers are told.
pub(super) fn mask(wanted: &Wanted) -> [bool; 3] {
    wanted.each_ref().map(Option::is_some)
}

/// Memory for the gradients that are wanted.
pub(super) fn room(wanted: &Wanted, device: Device) -> Result<Gradients> {
    let mut room = [None, None, None];
    for (room, spec) in room.iter_mut().zip(wanted) {
        *room = spec.as_ref().map(|spec| Tensor::uninit(&spec.shape, spec.dtype, device)).transpose()?;
    }
    Ok(room)
}

/// Fills the gradients that are wanted of input, weight and bias.
pub type GradientFn<O> = for<'a> fn(&O, Normalized<'a>, &[Option<Tensor>; 3]) -> Result<()>;

/// A normalization whose gradients a device may compute at once.
pub trait Normalization: Op {
    /// Kernels for the gradients, plugged in by devices.
    fn gradient_table() -> &'static Table<GradientFn<Self>>;

    /// The gradients by the device's kernel; none if it has none, or if they need derivatives themselves.
    #[doc(hidden)]
    fn device_gradients(&self, from: Normalized<'_>, wanted: &Wanted) -> Result<Option<Gradients>> {
        let Some(kernel) = Self::gradient_table().get(from.grad.device().key) else { return Ok(None) };
        if is_grad_enabled() || from.x.numel() == 0 {
            return Ok(None);
        }
        let room = room(wanted, from.x.device())?;
        let _site = site::enter(Self::BACKWARD);
        kernel(self, from, &room).map_err(|error: Error| error.in_op(Self::NAME))?;
        Ok(Some(room))
    }
}

macro_rules! normalizations {
    ($($op:ident;)*) => {$(
        impl Normalization for super::$op {
            fn gradient_table() -> &'static Table<GradientFn<super::$op>> {
                static TABLE: Table<GradientFn<super::$op>> = Table::new();
                &TABLE
            }
        }
    )*};
}

normalizations! {
    NativeLayerNorm;
    NativeBatchNorm;
    NativeGroupNorm;
    FusedRmsNorm;
}
