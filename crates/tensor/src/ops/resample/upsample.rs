//! The operators that make images of another size, one per method and number of dimensions.

use super::{Method, shown};
use crate::op::kernel_table;
use crate::ops::{check_float, sizes};
use crate::{Backward, Cause, DType, Device, Error, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;
use cresset_kernels::resample::{self, Line};
use smallvec::SmallVec;

/// To which sizes the last dimensions are brought.
#[derive(Clone, Debug)]
pub struct Resizing {
    /// The sizes.
    pub to: Dims,
    /// Whether the first and the last element lie on those of the input; their outer edges do if not.
    pub align_corners: bool,
    /// How many elements become of one, where that is not just the quotient of the sizes.
    pub scales: Option<SmallVec<[f64; 3]>>,
}

impl Resizing {
    /// Checks that an input of shape `from` can be resized, and gives the shape it will have.
    fn on(&self, op: &'static str, from: &[usize], rank: usize) -> Result<Dims> {
        let named = self.to.len() == rank && self.scales.as_ref().is_none_or(|scales| scales.len() == rank);
        let empty = from.iter().skip(1).chain(&self.to).any(|&size| size == 0);
        if from.len() != rank + 2 || !named || empty {
            let text = format_args!(
                "expects [samples, channels] and {rank} dimensions to resize, none of them empty, not {from:?} to {:?}",
                &self.to[..]
            );
            return Err(Error::new(Cause::Shape, op, text));
        }
        Ok(from[..2].iter().chain(&self.to).copied().collect())
    }

    fn lines(&self, method: Method, from: &[usize], dtype: DType) -> Vec<Line> {
        let line = |dim: usize| {
            let scale = self.scales.as_ref().map(|scales| scales[dim]);
            Line::new(method, from[dim + 2], self.to[dim], self.align_corners, scale, dtype)
        };
        (0..self.to.len()).map(line).collect()
    }

    /// What the function is told: sizes, or factors that sizes follow from.
    pub(super) fn visit_told(&self, has_corners: bool, visit: &mut dyn FnMut(Argument<'_>)) {
        let to = sizes(&self.to);
        visit(if self.scales.is_some() { Argument::None } else { Argument::Ints(&to) });
        if has_corners {
            visit(Argument::Bool(self.align_corners));
        }
        visit(self.scales.as_ref().map_or(Argument::None, |scales| Argument::Floats(scales)));
    }

    fn arguments(&self, method: Method, from: Option<&[usize]>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Ints(&sizes(&self.to)));
        from.into_iter().for_each(|from| visit(Argument::Ints(&sizes(from))));
        if matches!(method, Method::Linear | Method::Cubic) {
            visit(Argument::Bool(self.align_corners));
        }
        for dim in 0..self.to.len() {
            visit(self.scales.as_ref().map_or(Argument::None, |scales| Argument::Float(scales[dim])));
        }
    }
}

macro_rules! upsamplings {
    ($($(#[$doc:meta])* $op:ident, $back:ident over $rank:literal by $method:ident: $name:literal, $node:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op(pub Resizing);

        impl Op for $op {
            const NAME: &'static str = concat!("aten::", $name);
            const BACKWARD: &'static str = concat!($node, "0");
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; {
                    let from = Dims::from_slice(ctx.shape(0));
                    $back { resizing: self.0.clone(), from }.call([ctx.grad()])?
                })
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                self.0.arguments(Method::$method, None, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
                check_float(Self::NAME, x)?;
                Ok(Spec { shape: self.0.on(Self::NAME, x.shape(), $rank)?, dtype: x.dtype() })
            }

            fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let spec = self.infer([x])?;
                let fill = |out: &Tensor| self.fill([x], out, Device::CPU);
                shown::forward(&self.0, Method::$method, x, spec, fill).map(Some)
            }

            fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                // Images that are none may become any size: nothing is to be computed for them.
                if out.numel() == 0 {
                    return Ok(());
                }
                let (reading, mut writing) = (x.read(), out.write());
                let lines = self.0.lines(Method::$method, x.shape(), x.dtype());
                resample::resize(x.elements(&reading), &lines, out.elements_mut(&mut writing));
                Ok(())
            }
        }

        #[doc = concat!("The gradient of [`", stringify!($op), "`].")]
        #[derive(Clone, Debug)]
        pub struct $back {
            /// What was done.
            pub resizing: Resizing,
            /// The shape of what it was done to.
            pub from: Dims,
        }

        impl Op for $back {
            const NAME: &'static str = concat!("aten::", $name, "_backward");
            const BACKWARD: &'static str = concat!($node, "Backward0");
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; $op(self.resizing.clone()).call([ctx.grad()])?)
            }

            fn arguments(&self, [grad]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(grad.argument()));
                self.resizing.arguments(Method::$method, Some(&self.from), visit);
            }
        }

        impl Kernel for $back {
            kernel_table!($back);

            fn infer(&self, [grad]: [&Tensor; 1]) -> Result<Spec> {
                check_float(Self::NAME, grad)?;
                let expected = self.resizing.on(Self::NAME, &self.from, $rank)?;
                if grad.shape() != &expected[..] {
                    let text = format_args!("gradient of shape {:?} for {:?}", grad.shape(), &expected[..]);
                    return Err(Error::new(Cause::Shape, Self::NAME, text));
                }
                Ok(Spec::new(&self.from, grad.dtype()))
            }

            fn shown(&self, [grad]: [&Tensor; 1]) -> Result<Option<Tensor>> {
                let spec = self.infer([grad])?;
                shown::backward(grad, spec, |out| self.fill([grad], out, Device::CPU)).map(Some)
            }

            fn cpu(&self, [grad]: [&Tensor; 1], out: &Tensor) -> Result<()> {
                if out.numel() == 0 {
                    return Ok(());
                }
                let (reading, mut writing) = (grad.read(), out.write());
                let lines = self.resizing.lines(Method::$method, &self.from, grad.dtype());
                resample::resize_backward(grad.elements(&reading), &lines, out.elements_mut(&mut writing));
                Ok(())
            }
        }
    )*};
}

upsamplings! {
    /// Lines of another length, of elements taken whole.
    UpsampleNearest1d, UpsampleNearest1dBackward over 1 by Nearest: "upsample_nearest1d", "UpsampleNearest1DBackward";
    /// Planes of another size, of elements taken whole.
    UpsampleNearest2d, UpsampleNearest2dBackward over 2 by Nearest: "upsample_nearest2d", "UpsampleNearest2DBackward";
    /// Volumes of another size, of elements taken whole.
    UpsampleNearest3d, UpsampleNearest3dBackward over 3 by Nearest: "upsample_nearest3d", "UpsampleNearest3DBackward";
    /// Lines of another length, of the elements whose middles are nearest.
    UpsampleNearestExact1d, UpsampleNearestExact1dBackward over 1 by NearestExact: "_upsample_nearest_exact1d",
        "UpsampleNearestExact1DBackward";
    /// Planes of another size, of the elements whose middles are nearest.
    UpsampleNearestExact2d, UpsampleNearestExact2dBackward over 2 by NearestExact: "_upsample_nearest_exact2d",
        "UpsampleNearestExact2DBackward";
    /// Volumes of another size, of the elements whose middles are nearest.
    UpsampleNearestExact3d, UpsampleNearestExact3dBackward over 3 by NearestExact: "_upsample_nearest_exact3d",
        "UpsampleNearestExact3DBackward";
    /// Lines of another length, straight between elements.
    UpsampleLinear1d, UpsampleLinear1dBackward over 1 by Linear: "upsample_linear1d", "UpsampleLinear1DBackward";
    /// Planes of another size, straight between elements.
    UpsampleBilinear2d, UpsampleBilinear2dBackward over 2 by Linear: "upsample_bilinear2d", "UpsampleBilinear2DBackward";
    /// Volumes of another size, straight between elements.
    UpsampleTrilinear3d, UpsampleTrilinear3dBackward over 3 by Linear: "upsample_trilinear3d",
        "UpsampleTrilinear3DBackward";
    /// Planes of another size, cubic between elements.
    UpsampleBicubic2d, UpsampleBicubic2dBackward over 2 by Cubic: "upsample_bicubic2d", "UpsampleBicubic2DBackward";
}
