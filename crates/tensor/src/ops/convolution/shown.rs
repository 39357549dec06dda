//! Convolutions with the calls that torch makes on the host: it has a library for some, and ways of its own
//! for others, which unfold what windows see.

use super::{Convolution, ConvolutionBackward, MkldnnConvolution, Operands, library};
use crate::ops::sizes;
use crate::{DType, Device, Kernel as _, Layout, Op as _, Result, Tensor, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Who computes a convolution.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Library,
    Plain,
    Dilated,
    Transposed,
}

const ROW_MAJOR: Argument<'static> = Argument::Int(0);

/// Torch's choice, by type and size.
fn way(op: &Convolution, x: &Tensor, weight: &Tensor) -> Way {
    if suits_library(op, x, weight) {
        return Way::Library;
    }
    match (op.transposed, op.is_dilated()) {
        (true, _) => Way::Transposed,
        (false, true) => Way::Dilated,
        (false, false) => Way::Plain,
    }
}

fn suits_library(op: &Convolution, x: &Tensor, weight: &Tensor) -> bool {
    let reaches_on = (0..op.rank()).any(|dim| op.output_padding[dim] >= op.stride[dim]);
    if x.dtype() != DType::F32 || (op.transposed && reaches_on) {
        return false;
    }
    let last = &weight.shape()[weight.dim() - 2..];
    let steps = op.stride.iter().any(|&stride| stride != 1) || op.is_dilated();
    let samples = x.shape()[0];
    let worth_it = steps || samples >= 16 || last != [1, 1] || shown::THREADS > 1;
    let large = samples > 1 || x.shape()[..4].iter().product::<usize>() > 20480;
    worth_it && (op.groups > 1 || last.iter().all(|&size| size > 3) || large)
}

impl Convolution {
    fn is_dilated(&self) -> bool {
        self.dilation.iter().any(|&dilation| dilation != 1)
    }

    /// The same over images of one row.
    fn of_rows(&self) -> Convolution {
        let beside = |first: usize, numbers: &Dims| Dims::from_slice(&[first, numbers[0]]);
        Convolution {
            stride: beside(1, &self.stride),
            padding: beside(0, &self.padding),
            dilation: beside(1, &self.dilation),
            output_padding: beside(0, &self.output_padding),
            ..self.clone()
        }
    }

    /// The convolution of one group.
    fn of_group(&self) -> Convolution {
        Convolution { groups: 1, ..self.clone() }
    }

    fn out_shape(&self, x: &Tensor, weight: &Tensor) -> Result<Dims> {
        Ok(self.infer(MkldnnConvolution::NAME, ([x, weight], None))?.shape)
    }
}

/// The output of a convolution.
pub(super) fn forward(op: &Convolution, ([x, weight], bias): Operands<'_>) -> Result<Tensor> {
    if op.rank() == 1 {
        let (x, weight) = (x.contiguous()?.unsqueeze(2)?, weight.unsqueeze(2)?);
        return forward_images(&op.of_rows(), ([&x, &weight], bias))?.squeeze_dim(2);
    }
    forward_images(op, ([x, weight], bias))
}

fn forward_images(op: &Convolution, ([x, weight], bias): Operands<'_>) -> Result<Tensor> {
    let way = way(op, x, weight);
    if way == Way::Library {
        return by_library(op, ([&x.contiguous()?, &weight.contiguous()?], bias));
    }
    show_question(op, way)?;
    if op.groups == 1 {
        let (x, weight) = (x.contiguous()?, weight.contiguous()?);
        return by_hand(way, op, ([&x, &weight], bias));
    }
    let each = op.of_group();
    let mut outputs = Vec::new();
    for group in 0..op.groups {
        let x = part(x, 1, op.groups, group)?;
        let weight = part(weight, 0, op.groups, group)?;
        let bias = bias.map(|bias| part(bias, 0, op.groups, group)).transpose()?;
        outputs.push(by_hand(way, &each, ([&x, &weight], bias.as_ref()))?);
    }
    Tensor::cat(&outputs.iter().collect::<Vec<_>>(), 1)
}

/// Torch asks for another library first, where it may be of use.
fn show_question(op: &Convolution, way: Way) -> Result<()> {
    if op.rank() == 2 && way == Way::Plain {
        shown::within("aten::_nnpack_available", shown::NOTHING, &[], shown::quiet_nothing)?;
    }
    Ok(())
}

/// The channels of one group, row-major.
fn part(x: &Tensor, dim: usize, groups: usize, group: usize) -> Result<Tensor> {
    let size = x.shape()[dim] / groups;
    x.narrow(dim as isize, (group * size) as isize, size)?.contiguous()
}

/// Memory as the library's tensors are given it.
fn library_memory(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let out = shown::empty(shape, dtype)?;
    let (shape, strides) = (sizes(shape), sizes(out.strides()));
    let more = [Argument::Ints(&shape), Argument::Ints(&strides), Argument::None];
    shown::within("aten::as_strided_", [&out], &more, || Ok(out.clone()))?;
    shown::resized(&out, out.shape(), ROW_MAJOR)?;
    Ok(out)
}

/// As [`library_memory`], where the library writes channels last: torch copies them to memory in which they
/// come first.
fn turned_memory(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let flat = shown::empty(shape, dtype)?;
    let order: Dims = std::iter::once(0).chain(2..shape.len()).chain([1]).collect();
    let layout = Layout::ordered(shape, &order).expect("as many elements as there is memory for");
    let (sizes_told, strides) = (sizes(shape), sizes(layout.strides()));
    let more = [Argument::Ints(&sizes_told), Argument::Ints(&strides), Argument::None];
    let turned = shown::within("aten::as_strided_", [&flat], &more, || Ok(flat.with_layout(layout)))?;
    let out = turned.contiguous()?;
    shown::resized(&out, out.shape(), ROW_MAJOR)?;
    Ok(out)
}

fn by_library(op: &Convolution, inputs: Operands<'_>) -> Result<Tensor> {
    let ([x, weight], bias) = inputs;
    let compute = || {
        shown::empty_output(x.dtype())?;
        let shape = op.out_shape(x, weight)?;
        let out = match library::is_channels_last(op, x, weight, &shape) {
            true => turned_memory(&shape, x.dtype())?,
            false => library_memory(&shape, x.dtype())?,
        };
        library::forward(op, x, weight, &out, bias.is_some())?;
        MkldnnConvolution(op.clone()).fill(inputs, &out, Device::CPU)?;
        Ok(out)
    };
    if op.transposed {
        return compute();
    }
    let lists = [&op.padding, &op.stride, &op.dilation].map(|numbers| sizes(numbers));
    let [padding, stride, dilation] = lists.each_ref().map(|list| Argument::Ints(list));
    let more = [padding, stride, dilation, Argument::Int(op.groups as i64)];
    shown::within(MkldnnConvolution::NAME, inputs, &more, compute)
}

/// What is seen by windows: how many elements each has, and how many there are.
fn unfolded(weight: &Tensor, out: &[usize]) -> [usize; 2] {
    [weight.shape()[1..].iter().product(), out[2..].iter().product()]
}

fn optional(tensor: Option<&Tensor>) -> Argument<'_> {
    tensor.map_or(Argument::None, |tensor| Argument::Tensor(tensor.argument()))
}

fn by_hand(way: Way, op: &Convolution, inputs: Operands<'_>) -> Result<Tensor> {
    match way {
        Way::Dilated => dilated(op, inputs),
        Way::Transposed => transposed(op, inputs),
        _ => plain(op, inputs),
    }
}

fn plain(op: &Convolution, inputs: Operands<'_>) -> Result<Tensor> {
    let ([x, weight], bias) = inputs;
    let images = op.rank() == 2;
    let lists = [&weight.shape()[2..], &op.stride, &op.padding].map(sizes);
    let [kernel, stride, padding] = lists.each_ref().map(|list| Argument::Ints(list));
    let more = [kernel, optional(bias), stride, padding];
    let names = match images {
        true => ["aten::thnn_conv2d", "aten::_slow_conv2d_forward"],
        false => ["aten::slow_conv3d", "aten::slow_conv3d_forward"],
    };
    let order = if images { ROW_MAJOR } else { Argument::None };
    shown::within(names[0], [x, weight], &more, || {
        shown::within(names[1], [x, weight], &more, || {
            let (empty, shape) = (shown::empty_output(x.dtype())?, op.out_shape(x, weight)?);
            let [window, count] = unfolded(weight, &shape);
            weight.view([weight.shape()[0], window])?;
            let _unfolded = unfold(op, x, weight, [window, count])?;
            let out = shown::grown(&empty, &shape, order)?;
            if let Some(bias) = bias {
                out.copy_(&per_channel(bias, op.rank())?)?;
            }
            MkldnnConvolution(op.clone()).fill(inputs, &out, Device::CPU)?;
            Ok(out)
        })
    })
}

/// Memory for what windows see, or the input itself where each sees one element.
fn unfold(op: &Convolution, x: &Tensor, weight: &Tensor, [window, count]: [usize; 2]) -> Result<Tensor> {
    let ones = |numbers: &[usize]| numbers.iter().all(|&number| number == 1);
    let alone = op.rank() == 2 && ones(&weight.shape()[2..]) && ones(&op.stride);
    if alone && op.padding.iter().all(|&padding| padding == 0) {
        let seen = x.view([x.shape()[0], window, count])?;
        return shown::within("aten::detach", [&seen], &[], || Ok(seen.clone()));
    }
    shown::empty(&[x.shape()[0], window, count], x.dtype())
}

/// A bias as images broadcast with it.
fn per_channel(bias: &Tensor, rank: usize) -> Result<Tensor> {
    let mut shape = vec![-1isize];
    shape.resize(rank + 1, 1);
    bias.reshape(&shape[..])
}

fn dilated(op: &Convolution, inputs: Operands<'_>) -> Result<Tensor> {
    let ([x, weight], bias) = inputs;
    let lists = [&weight.shape()[2..], &op.stride, &op.padding, &op.dilation].map(sizes);
    let [kernel, stride, padding, dilation] = lists.each_ref().map(|list| Argument::Ints(list));
    let name = if op.rank() == 2 { "aten::slow_conv_dilated2d" } else { "aten::slow_conv_dilated3d" };
    shown::within(name, [x, weight], &[kernel, optional(bias), stride, padding, dilation], || {
        let shape = op.out_shape(x, weight)?;
        let out = shown::empty_in(&shape, x.dtype(), shown::CONTIGUOUS)?;
        let _unfolded =
            shown::grown(&shown::empty_output(x.dtype())?, &unfolded(weight, &shape), Argument::None)?;
        if bias.is_none() {
            out.zero_()?;
        }
        for sample in 0..x.shape()[0] as isize {
            x.select(0, sample)?;
            let out = out.select(0, sample)?;
            for channel in bias.map_or(0..0, |bias| 0..bias.numel() as isize) {
                let plane = out.select(0, channel)?;
                let value = bias.map(|bias| bias.select(0, channel)).transpose()?;
                if let Some(value) = value {
                    shown::within("aten::fill_", [&plane, &value], &[], || {
                        plane.copy_(&value).map(|()| plane.clone())
                    })?;
                }
            }
        }
        MkldnnConvolution(op.clone()).fill(inputs, &out, Device::CPU)?;
        Ok(out)
    })
}

fn transposed(op: &Convolution, inputs: Operands<'_>) -> Result<Tensor> {
    let ([x, weight], bias) = inputs;
    let lists = [&weight.shape()[2..], &op.stride, &op.padding, &op.output_padding, &op.dilation].map(sizes);
    let [kernel, stride, padding, more_padding, dilation] = lists.each_ref().map(|list| Argument::Ints(list));
    let name = if op.rank() == 2 { "aten::slow_conv_transpose2d" } else { "aten::slow_conv_transpose3d" };
    let more = [kernel, optional(bias), stride, padding, more_padding, dilation];
    shown::within(name, [x, weight], &more, || {
        if op.rank() == 3 {
            return transposed_volume(op, inputs);
        }
        let out = Tensor::uninit(&op.out_shape(x, weight)?, x.dtype(), Device::CPU)?;
        let [window, count] = unfolded(weight, x.shape());
        let from = shown::empty_output(x.dtype())?;
        let spread = shown::grown(&from, &[x.shape()[0], window, count], Argument::None)?;
        spread.zero_()?;
        for sample in 0..x.shape()[0] as isize {
            [x, &out, &spread].into_iter().try_for_each(|x| x.select(0, sample).map(drop))?;
        }
        MkldnnConvolution(op.clone()).fill(inputs, &out, Device::CPU)?;
        if let Some(bias) = bias {
            let bias = per_channel(bias, op.rank())?;
            shown::within("aten::add_", [&out, &bias], &[Argument::Int(1)], || Ok(out.clone()))?;
        }
        Ok(out)
    })
}

/// Volumes are spread one by one, and a bias is added as a product with ones.
fn transposed_volume(op: &Convolution, inputs: Operands<'_>) -> Result<Tensor> {
    let ([x, weight], bias) = inputs;
    let shape = op.out_shape(x, weight)?;
    let out = shown::resize(shown::empty_like_plain(x)?, &shape)?;
    let _columns = shown::empty(&unfolded(weight, x.shape()), x.dtype())?;
    let _ones = bias.map(|_| Tensor::ones(&shape[2..], x.dtype())).transpose()?;
    for sample in 0..x.shape()[0] as isize {
        [x, &out].into_iter().try_for_each(|x| x.select(0, sample).map(drop))?;
    }
    MkldnnConvolution(op.clone()).fill(inputs, &out, Device::CPU)?;
    Ok(out)
}

/// The gradients of a convolution that are wanted.
pub(super) fn backward(
    op: &ConvolutionBackward,
    [grad, x, weight]: [&Tensor; 3],
) -> Result<[Option<Tensor>; 3]> {
    if op.convolution.rank() > 1 {
        return backward_images(&op.convolution, op.wanted, [grad, x, weight]);
    }
    let (grad, x, weight) = (grad.unsqueeze(2)?, x.unsqueeze(2)?, weight.unsqueeze(2)?);
    let [to_x, to_weight, to_bias] =
        backward_images(&op.convolution.of_rows(), op.wanted, [&grad, &x, &weight])?;
    let flat = |grad: Option<Tensor>| grad.map(|grad| grad.squeeze_dim(2)).transpose();
    Ok([flat(to_x)?, flat(to_weight)?, to_bias])
}

type Wanted = [Option<Tensor>; 3];

fn backward_images(op: &Convolution, wanted: [bool; 3], [grad, x, weight]: [&Tensor; 3]) -> Result<Wanted> {
    let way = way(op, x, weight);
    if way == Way::Library {
        return backward_by_library(
            op,
            wanted,
            [&grad.contiguous()?, &x.contiguous()?, &weight.contiguous()?],
        );
    }
    show_question(op, way)?;
    if op.groups == 1 {
        return backward_by_hand(way, op, wanted, [grad, &x.contiguous()?, &weight.contiguous()?]);
    }
    let each = op.of_group();
    let mut parts: [Vec<Tensor>; 3] = Default::default();
    for group in 0..op.groups {
        let tensors =
            [(grad, 1), (x, 1), (weight, 0)].map(|(tensor, dim)| part(tensor, dim, op.groups, group));
        let [grad, x, weight] = tensors;
        let (grad, x, weight) = (grad?, x?, weight?);
        let grads = backward_by_hand(way, &each, wanted, [&grad, &x, &weight])?;
        parts.iter_mut().zip(grads).for_each(|(parts, grad)| parts.extend(grad));
    }
    let mut joined = [None, None, None];
    for (at, parts) in parts.iter().enumerate().filter(|(_, parts)| !parts.is_empty()) {
        joined[at] = Some(Tensor::cat(&parts.iter().collect::<Vec<_>>(), isize::from(at == 0))?);
    }
    Ok(joined)
}

fn backward_by_library(op: &Convolution, wanted: [bool; 3], tensors: [&Tensor; 3]) -> Result<Wanted> {
    let [grad, x, weight] = tensors;
    if wanted[0] {
        shown::empty_output(x.dtype())?;
    }
    let make = |wanted: bool, shape: &[usize]| wanted.then(|| library_memory(shape, x.dtype())).transpose();
    let to_x = match wanted[0] && library::is_gradient_channels_last(op, tensors) {
        true => Some(turned_memory(x.shape(), x.dtype())?),
        false => make(wanted[0], x.shape())?,
    };
    let to_bias = make(wanted[2], &grad.shape()[1..2])?;
    let to_weight = make(wanted[1], weight.shape())?;
    library::backward(op, tensors, wanted)?;
    let room = [to_x, to_weight, to_bias];
    fill(op, tensors, &room)?;
    Ok(room)
}

fn fill(op: &Convolution, tensors: [&Tensor; 3], room: &Wanted) -> Result<()> {
    let wanted = room.each_ref().map(Option::is_some);
    ConvolutionBackward { convolution: op.clone(), wanted, bias: 0 }.fill_on_host(tensors, room)
}

fn backward_by_hand(way: Way, op: &Convolution, wanted: [bool; 3], tensors: [&Tensor; 3]) -> Result<Wanted> {
    match way {
        Way::Dilated => backward_dilated(op, wanted, tensors),
        Way::Transposed => backward_transposed(op, wanted, tensors),
        _ if op.rank() == 2 => {
            let [grad, x, weight] = tensors;
            let lists = [&weight.shape()[2..], &op.stride, &op.padding].map(sizes);
            let [kernel, stride, padding] = lists.each_ref().map(|list| Argument::Ints(list));
            let more = [kernel, stride, padding, Argument::Bools(&wanted)];
            let _span = shown::call("aten::_slow_conv2d_backward", [grad, x, weight], &more);
            backward_plain(op, wanted, tensors, ROW_MAJOR)
        }
        _ => backward_plain(op, wanted, tensors, Argument::None),
    }
}

/// Tensors without elements for the gradients that are wanted.
fn empties(wanted: [bool; 3], dtype: DType) -> Result<[Option<Tensor>; 3]> {
    let [a, b, c] = wanted.map(|wanted| wanted.then(|| shown::empty_output(dtype)).transpose());
    Ok([a?, b?, c?])
}

fn backward_plain(
    op: &Convolution,
    wanted: [bool; 3],
    tensors: [&Tensor; 3],
    order: Argument<'_>,
) -> Result<Wanted> {
    let [grad, x, weight] = tensors;
    let images = op.rank() == 2;
    let empties = empties(wanted, x.dtype())?;
    let [window, count] = unfolded(weight, grad.shape());
    let rows = [weight.shape()[0], window];
    let (mut room, mut scratch) = ([None, None, None], Vec::new());
    if let Some(empty) = &empties[0] {
        weight.view(rows)?;
        scratch.push(grad.contiguous()?);
        let to_x = shown::grown_as(empty, x, order)?;
        if images {
            to_x.zero_()?;
        } else {
            scratch.push(shown::empty(&[x.shape()[0], window, count], x.dtype())?);
        }
        room[0] = Some(to_x);
    }
    let over: Dims = (0..grad.dim()).filter(|&dim| dim != 1).collect();
    if let Some(empty) = &empties[2] {
        room[2] = Some(shown::sum_from(grad, &over, empty)?);
    }
    if let Some(empty) = &empties[1] {
        let to_weight = shown::grown(empty, weight.shape(), order)?;
        to_weight.zero_()?;
        to_weight.view(rows)?;
        scratch.push(grad.contiguous()?);
        scratch.push(unfold(op, x, weight, [window, count])?);
        room[1] = Some(to_weight);
    }
    fill(op, tensors, &room)?;
    Ok(room)
}

fn backward_dilated(op: &Convolution, wanted: [bool; 3], tensors: [&Tensor; 3]) -> Result<Wanted> {
    let [grad, x, weight] = tensors;
    let grad = grad.contiguous()?;
    let make = |shape: &[usize]| shown::empty_in(shape, x.dtype(), shown::CONTIGUOUS);
    let to_x = wanted[0].then(|| make(x.shape())).transpose()?;
    let to_weight = wanted[1].then(|| make(weight.shape())).transpose()?;
    let to_bias = wanted[2].then(|| shown::empty(&grad.shape()[1..2], x.dtype())).transpose()?;
    let from = shown::empty_output(x.dtype())?;
    let _unfolded = shown::grown(&from, &unfolded(weight, grad.shape()), Argument::None)?;
    [&to_weight, &to_bias].into_iter().flatten().try_for_each(Tensor::zero_)?;
    for sample in 0..x.shape()[0] as isize {
        x.select(0, sample)?;
        let image = grad.select(0, sample)?;
        if let Some(to_x) = &to_x {
            to_x.select(0, sample)?;
        }
        if let Some(to_bias) = &to_bias {
            let over: Vec<isize> = (1..image.dim() as isize).collect();
            let sum = image.sum_dims(&over, false)?;
            shown::within("aten::add_", [to_bias, &sum], &[Argument::Int(1)], || Ok(to_bias.clone()))?;
        }
    }
    let room = [to_x, to_weight, to_bias];
    fill(op, [&grad, x, weight], &room)?;
    Ok(room)
}

/// As [`backward_transposed`], of volumes.
fn backward_transposed_volume(op: &Convolution, wanted: [bool; 3], tensors: [&Tensor; 3]) -> Result<Wanted> {
    let [grad, x, weight] = tensors;
    let empties = empties(wanted, x.dtype())?;
    let zeros = |empty: &Tensor, shape: &[usize]| -> Result<Tensor> {
        let zeros = shown::grown(empty, shape, Argument::None)?;
        zeros.zero_().map(|()| zeros)
    };
    let columns = |first: &Tensor, second: &Tensor| -> Result<Tensor> {
        let columns = shown::empty(&unfolded(weight, x.shape()), x.dtype())?;
        for sample in 0..x.shape()[0] as isize {
            [first, second].into_iter().try_for_each(|x| x.select(0, sample).map(drop))?;
        }
        Ok(columns)
    };
    let mut room = [None, None, None];
    // Both gradients are done before any of their memory is let go.
    let mut kept = Vec::new();
    if let Some(empty) = &empties[0] {
        let whole = grad.contiguous()?;
        let to_x = zeros(empty, x.shape())?;
        kept.push(columns(&to_x, &whole)?);
        kept.push(whole);
        room[0] = Some(to_x);
    }
    let to_weight = empties[1].as_ref().map(|empty| zeros(empty, weight.shape())).transpose()?;
    let to_bias = empties[2].as_ref().map(|empty| zeros(empty, &grad.shape()[1..2])).transpose()?;
    let whole = grad.contiguous()?;
    if to_weight.is_some() {
        kept.push(columns(&whole, x)?);
    }
    if let Some(to_bias) = &to_bias {
        let over: Dims = (0..grad.dim()).filter(|&dim| dim != 1).collect();
        shown::sum_into(grad, &over, to_bias)?;
    }
    (room[1], room[2]) = (to_weight, to_bias);
    fill(op, tensors, &room)?;
    Ok(room)
}

fn backward_transposed(op: &Convolution, wanted: [bool; 3], tensors: [&Tensor; 3]) -> Result<Wanted> {
    if op.rank() == 3 {
        return backward_transposed_volume(op, wanted, tensors);
    }
    let [grad, x, weight] = tensors;
    let empties = empties(wanted, x.dtype())?;
    let spread = unfolded(weight, x.shape());
    let (mut room, mut scratch) = ([None, None, None], Vec::new());
    let mut columns = |first: &Tensor, second: &Tensor| -> Result<()> {
        scratch.push(shown::grown(&shown::empty_output(x.dtype())?, &spread, Argument::None)?);
        for sample in 0..x.shape()[0] as isize {
            [first, second].into_iter().try_for_each(|x| x.select(0, sample).map(drop))?;
        }
        Ok(())
    };
    if let Some(empty) = &empties[0] {
        let _grad = grad.contiguous()?;
        let to_x = shown::grown(empty, x.shape(), ROW_MAJOR)?;
        to_x.zero_()?;
        columns(&to_x, grad)?;
        room[0] = Some(to_x);
    }
    let over: Dims = (0..grad.dim()).filter(|&dim| dim != 1).collect();
    if let Some(empty) = &empties[2] {
        room[2] = Some(shown::sum_from(grad, &over, empty)?);
    }
    if let Some(empty) = &empties[1] {
        let to_weight = shown::grown(empty, weight.shape(), ROW_MAJOR)?;
        to_weight.zero_()?;
        let _grad = grad.contiguous()?;
        columns(grad, x)?;
        room[1] = Some(to_weight);
    }
    fill(op, tensors, &room)?;
    Ok(room)
}
