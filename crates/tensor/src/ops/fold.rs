//! What windows of an image see as columns, and columns added up into an image.

use super::sliding::{PerDim, per_dim, three, windows};
use super::{check_float, sizes};
use crate::op::kernel_table;
use crate::{Backward, Cause, Device, Error, Grads, Kernel, Op, Result, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, Window, convolution};

/// Windows over the last two dimensions of an image.
#[derive(Clone, Debug)]
pub struct Unfolding {
    /// How many places a window has.
    pub kernel: PerDim,
    /// From one place of a window to the next.
    pub dilation: PerDim,
    /// How far the first window begins before the image.
    pub padding: PerDim,
    /// From one window to the next.
    pub stride: PerDim,
}

impl Unfolding {
    /// Windows at every place of the image.
    pub fn new(kernel: impl AsRef<[isize]>) -> Unfolding {
        let [one, zero] = [1, 0].map(|number| PerDim::from_elem(number, 1));
        Unfolding {
            kernel: PerDim::from_slice(kernel.as_ref()),
            dilation: one.clone(),
            padding: zero,
            stride: one,
        }
    }

    fn on(&self, op: &'static str, image: [usize; 2]) -> Result<Window> {
        let numbers = |name, given: &[isize], least| per_dim(op, name, given, 2, least);
        let (kernel, stride) =
            (numbers("kernel size", &self.kernel, 1)?, numbers("stride", &self.stride, 1)?);
        let (padding, dilation) =
            (numbers("padding", &self.padding, 0)?, numbers("dilation", &self.dilation, 1)?);
        let mut output = Dims::new();
        for dim in 0..2 {
            let count = windows(image[dim], [kernel[dim], stride[dim], padding[dim], dilation[dim]], false);
            let Some(count) = count.filter(|&count| count > 0) else {
                let text = format_args!("no window of {:?} fits on an image of {image:?}", &kernel[..]);
                return Err(Error::new(Cause::Shape, op, text));
            };
            output.push(count);
        }
        Ok(Window {
            input: three(&image, 1),
            kernel: three(&kernel, 1),
            stride: three(&stride, 1),
            padding: three(&padding, 0),
            dilation: three(&dilation, 1),
            output: three(&output, 1),
        })
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        for numbers in [&self.kernel, &self.dilation, &self.padding, &self.stride] {
            let both = match &numbers[..] {
                [one] => [*one, *one].to_vec(),
                all => all.to_vec(),
            };
            visit(Argument::Ints(&both.iter().map(|&number| number as i64).collect::<Vec<_>>()));
        }
    }
}

/// Columns of what windows see: `[.., channels, rows, columns]` to `[.., channels * places, windows]`.
#[derive(Clone, Debug)]
pub struct Im2col(pub Unfolding);

impl Op for Im2col {
    const NAME: &'static str = "aten::im2col";
    const BACKWARD: &'static str = "Im2ColBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let shape = ctx.shape(0);
            let image = [shape[shape.len() - 2], shape[shape.len() - 1]];
            Col2im { windows: self.0.clone(), image }.call([ctx.grad()])?
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        self.0.arguments(visit);
    }
}

impl Im2col {
    fn window(&self, x: &Tensor) -> Result<Window> {
        match x.shape() {
            &[channels, rows, columns] | &[_, channels, rows, columns]
                if ![channels, rows, columns].contains(&0) =>
            {
                self.0.on(Self::NAME, [rows, columns])
            }
            shape => {
                let text = format_args!(
                    "expects 3 or 4 dimensions, none of size 0 but the batch, not shape {shape:?}"
                );
                Err(Error::new(Cause::Shape, Self::NAME, text))
            }
        }
    }
}

impl Kernel for Im2col {
    kernel_table!(Im2col);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_float(Self::NAME, x)?;
        let window = self.window(x)?;
        let (before, channels) = (&x.shape()[..x.dim() - 3], x.shape()[x.dim() - 3]);
        let last = [channels.saturating_mul(window.places()), window.count()];
        Ok(Spec::new(before.iter().chain(&last).copied().collect::<Dims>(), x.dtype()))
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let spec = self.infer([x])?;
        folded(x, 3, &spec.shape, |out| self.fill([x], out, Device::CPU)).map(Some)
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let (reading, mut writing) = (x.read(), out.write());
        convolution::im2col(x.elements(&reading), &self.window(x)?, out.elements_mut(&mut writing));
        Ok(())
    }
}

/// The opposite: columns of windows added up where they look.
#[derive(Clone, Debug)]
pub struct Col2im {
    /// The windows.
    pub windows: Unfolding,
    /// Rows and columns of the image.
    pub image: [usize; 2],
}

impl Op for Col2im {
    const NAME: &'static str = "aten::col2im";
    const BACKWARD: &'static str = "Col2ImBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; Im2col(self.windows.clone()).call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&self.image)));
        self.windows.arguments(visit);
    }
}

impl Kernel for Col2im {
    kernel_table!(Col2im);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_float(Self::NAME, x)?;
        let window = self.windows.on(Self::NAME, self.image)?;
        let (&[depth, count] | &[_, depth, count]) = x.shape() else {
            let text = format_args!("expects 2 or 3 dimensions, not shape {:?}", x.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        if depth == 0 || !depth.is_multiple_of(window.places()) || count != window.count() {
            let text = format_args!(
                "expects columns of a multiple of {} by {} windows, not shape {:?}",
                window.places(),
                window.count(),
                x.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        let last = [depth / window.places(), self.image[0], self.image[1]];
        Ok(Spec::new(x.shape()[..x.dim() - 2].iter().chain(&last).copied().collect::<Dims>(), x.dtype()))
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let spec = self.infer([x])?;
        folded(x, 2, &spec.shape, |out| self.fill([x], out, Device::CPU)).map(Some)
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let window = self.windows.on(Self::NAME, self.image)?;
        let (reading, mut writing) = (x.read(), out.write());
        convolution::col2im(x.elements(&reading), &window, out.elements_mut(&mut writing));
        Ok(())
    }
}

/// What `fill` computes of `x`, by the calls of torch's kernels: the output begins like the input and is
/// resized, then goes through the samples, of which each has `rank` dimensions.
fn folded(
    x: &Tensor,
    rank: usize,
    shape: &[usize],
    fill: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    let out = shown::empty_like_plain(x)?;
    let plain = x.contiguous()?;
    let single = plain.dim() == rank;
    let raised = |shape: &[usize]| -> Dims { std::iter::once(1).chain(shape.iter().copied()).collect() };
    let batch = if single { plain.view(raised(plain.shape()))? } else { plain.clone() };
    let out = shown::resize(out, &if single { raised(shape) } else { shape.into() })?;
    for sample in 0..batch.shape()[0] as isize {
        batch.select(0, sample)?;
        out.select(0, sample)?;
    }
    let out = if single { shown::resize(out, shape)? } else { out };
    fill(&out)?;
    Ok(out)
}

impl Tensor {
    /// What windows over the last two dimensions see, a column for each:
    /// `[.., channels * places, windows]`. This is torch's `nn.functional.unfold`.
    pub fn im2col(&self, windows: &Unfolding) -> Result<Tensor> {
        Im2col(windows.clone()).call([self])
    }

    /// Columns as [`im2col`](Tensor::im2col) gives them, added up into an image of `image` rows and
    /// columns. This is torch's `nn.functional.fold`.
    pub fn col2im(&self, image: [usize; 2], windows: &Unfolding) -> Result<Tensor> {
        Col2im { windows: windows.clone(), image }.call([self])
    }
}
