//! Maxima of what windows see, with their places in a mask that only its own gradient can read.
//!
//! The mask of the hardware is undocumented, only its size is known. Here it holds, for each window, the place
//! of its maximum within the window, as two bytes.

use super::cast::{Temporary, expect_dtype};
use super::numbers::{numbers as values, store};
use super::pooling::{area, numbers, pooled, slide};
use super::shape::expect;
use super::windows::Numbers;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::pooling::{self, Windows};
use cresset_kernels::{DType, View, ViewMut};

/// What slides, checked.
struct Sliding {
    windows: Windows,
    numbers: Numbers,
    /// Height and width.
    image: [usize; 2],
    /// How many windows there are, along both.
    count: [usize; 2],
}

impl Sliding {
    fn new(
        x: &Tensor,
        kernel: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil: bool,
    ) -> Result<Sliding> {
        let numbers = numbers(2, kernel, stride, padding, dilation)?;
        let sizes = area(x, 2)?;
        let windows = slide(sizes, &numbers, ceil, false)?;
        let count = [windows.spans[1].len(), windows.spans[2].len()];
        Ok(Sliding { windows, numbers, image: [sizes[0], sizes[1]], count })
    }

    /// The place within window `window` of the element `at` of the image.
    fn place(&self, window: usize, at: usize) -> u16 {
        let [kernel, stride, padding, dilation] = &self.numbers;
        let (window, at) =
            ([window / self.count[1], window % self.count[1]], [at / self.image[1], at % self.image[1]]);
        let along = |dim: usize| (at[dim] + padding[dim] - window[dim] * stride[dim]) / dilation[dim];
        (along(0) * kernel[1] + along(1)) as u16
    }

    /// The element of the image at a place within a window.
    fn element(&self, window: usize, place: u16) -> usize {
        let [kernel, stride, padding, dilation] = &self.numbers;
        let (window, place) = (
            [window / self.count[1], window % self.count[1]],
            [place as usize / kernel[1], place as usize % kernel[1]],
        );
        let along = |dim: usize| window[dim] * stride[dim] + place[dim] * dilation[dim] - padding[dim];
        along(0) * self.image[1] + along(1)
    }

    fn windows_of_plane(&self) -> usize {
        self.count[0] * self.count[1]
    }
}

fn expect_mask(mask: &Tensor, windows: usize) -> Result {
    expect_dtype("mask", mask, &[DType::I8])?;
    if mask.layout().len() < 2 * windows {
        fail!(code::NN_PARAM_INVALID, "a mask of {} bytes for {windows} windows", mask.layout().len());
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn max_pool2d_with_mask(
    x: Tensor,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil: bool,
    out: Tensor,
    mask: Tensor,
) -> Planned {
    let sliding = Sliding::new(&x, &kernel, &stride, &padding, &dilation, ceil)?;
    expect("out", &out, &pooled(&x, &sliding.windows, 2))?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_mask(&mask, out.layout().len())?;
    let plan = Plan::new(c"MaxPoolWithArgmaxV1", [x], [out, mask], move |[x], [out, mask]| {
        let indices = Temporary::new(DType::I64, out.shape());
        indices.write(|indices| pooling::maximum(x, &sliding.windows, out, indices));
        let places = indices.read(super::numbers::integers);
        let place =
            |(at, index): (usize, &i64)| sliding.place(at % sliding.windows_of_plane(), *index as usize);
        let bytes = places.iter().enumerate().flat_map(|given| place(given).to_le_bytes());
        write(bytes.map(|byte| byte as i8).collect(), mask);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

fn write(mut bytes: Vec<i8>, mask: ViewMut<'_>) {
    bytes.resize(mask.layout().len(), 0);
    store(&bytes, mask);
}

fn read(mask: View<'_>, windows: usize) -> Vec<u16> {
    let bytes: Vec<u8> = mask.array::<i8>().iter().take(2 * windows).map(|byte| *byte as u8).collect();
    bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect()
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn max_pool2d_with_mask_backward(
    grad: Tensor,
    x: Tensor,
    mask: Tensor,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil: bool,
    out: Tensor,
) -> Planned {
    let sliding = Sliding::new(&x, &kernel, &stride, &padding, &dilation, ceil)?;
    expect("grad", &grad, &pooled(&x, &sliding.windows, 2))?;
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    expect_mask(&mask, grad.layout().len())?;
    let plan = Plan::new(c"MaxPoolGradWithArgmaxV1", [grad, mask], [out], move |[grad, mask], [out]| {
        let (count, size) = (sliding.windows_of_plane(), sliding.image[0] * sliding.image[1]);
        let mut gradient = vec![0.0; out.layout().len()];
        let (grads, places) = (values(grad), read(mask, grad.layout().len()));
        for (at, (grad, place)) in grads.into_iter().zip(places).enumerate() {
            gradient[at / count.max(1) * size + sliding.element(at % count, place)] += grad;
        }
        store(&gradient, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}
