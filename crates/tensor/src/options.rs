//! What new tensors are like: element type, device, and how elements lie in memory.

use crate::{Cause, DType, Device, Error, Layout, Result, Tensor, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// The element type and the device of a new tensor; `f32` on the host unless said otherwise.
///
/// Made from a [`DType`], a [`Device`], both, or `()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The type of the elements.
    pub dtype: DType,
    /// Where the elements are.
    pub device: Device,
    /// Whether the element type was named, which observers are told.
    pub names_dtype: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { dtype: DType::F32, device: Device::CPU, names_dtype: false }
    }
}

impl From<()> for Options {
    fn from((): ()) -> Options {
        Options::default()
    }
}

impl From<DType> for Options {
    fn from(dtype: DType) -> Options {
        Options { dtype, names_dtype: true, ..Options::default() }
    }
}

impl From<Device> for Options {
    fn from(device: Device) -> Options {
        Options { device, ..Options::default() }
    }
}

impl From<(DType, Device)> for Options {
    fn from((dtype, device): (DType, Device)) -> Options {
        Options { dtype, device, names_dtype: true }
    }
}

/// How a tensor is to differ from the one it is made of; what is not said stays as it is.
///
/// Made from a [`DType`], a [`Device`], both, `()`, or another tensor that is to be matched.
///
/// ```
/// # use cresset_tensor::{DType, Result, Tensor, To};
/// let x = Tensor::new([1.5f32, 2.5])?;
/// assert_eq!(x.to(DType::I64)?.to_vec::<i64>()?, [1, 2]);
/// let copy = x.to(To { copy: true, ..To::default() })?;
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct To {
    /// Another type of the elements.
    pub dtype: Option<DType>,
    /// Another place for the elements.
    pub device: Option<Device>,
    /// How the elements are to lie.
    pub memory_format: MemoryFormat,
    /// Whether to copy even if nothing differs.
    pub copy: bool,
    /// Whether a copy to the host may still be under way when the tensor is there: whoever looks at its
    /// elements waits. Copies to devices never wait for more than the host's part of them.
    pub non_blocking: bool,
    /// Whether the order of elements is named although it is to be kept, which observers are told.
    pub names_format: bool,
}

impl To {
    /// What observers see of it, after the tensor: torch has a call for types, and one for devices.
    pub(crate) fn arguments(self, visit: &mut dyn FnMut(Argument<'_>)) {
        if self.device.is_some() {
            visit(Argument::None);
        }
        visit(self.dtype.map_or(Argument::None, shown::dtype_code));
        visit(Argument::Bool(self.non_blocking));
        visit(Argument::Bool(self.copy));
        visit(self.format_argument());
    }

    /// The order of elements as observers see it.
    pub(crate) fn format_argument(self) -> Argument<'static> {
        if self.names_format {
            Argument::Int(self.memory_format as i64)
        } else {
            self.memory_format.argument()
        }
    }

    /// The element type and device that `like` has, but for what is said here.
    pub(crate) fn options(self, like: &Tensor) -> Options {
        let (dtype, device) = (self.dtype.unwrap_or(like.dtype()), self.device.unwrap_or(like.device()));
        Options { dtype, device, names_dtype: self.dtype.is_some() }
    }
}

impl From<()> for To {
    fn from((): ()) -> To {
        To::default()
    }
}

impl From<DType> for To {
    fn from(dtype: DType) -> To {
        To { dtype: Some(dtype), ..To::default() }
    }
}

impl From<Device> for To {
    fn from(device: Device) -> To {
        To { device: Some(device), ..To::default() }
    }
}

impl From<(DType, Device)> for To {
    fn from((dtype, device): (DType, Device)) -> To {
        To { dtype: Some(dtype), device: Some(device), ..To::default() }
    }
}

impl From<&Tensor> for To {
    fn from(like: &Tensor) -> To {
        (like.dtype(), like.device()).into()
    }
}

impl From<MemoryFormat> for To {
    fn from(memory_format: MemoryFormat) -> To {
        To { memory_format, names_format: true, ..To::default() }
    }
}

/// In which order the elements of a tensor lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous,
    /// As they lay, without gaps; row-major where some overlap or lie apart.
    #[default]
    Preserve,
    /// Images with the channels of a pixel side by side: of batch, channel, height and width.
    ChannelsLast,
    /// Volumes with the channels of a point side by side: of batch, channel, depth, height and width.
    ChannelsLast3d,
}

impl MemoryFormat {
    /// The dimensions from the outermost to the innermost, where they are not in order.
    fn order(self) -> Option<&'static [usize]> {
        match self {
            MemoryFormat::Preserve | MemoryFormat::Contiguous => None,
            MemoryFormat::ChannelsLast => Some(&[0, 2, 3, 1]),
            MemoryFormat::ChannelsLast3d => Some(&[0, 2, 3, 4, 1]),
        }
    }

    /// What observers see of it: nothing where nothing is asked for.
    pub(crate) fn argument(self) -> Argument<'static> {
        match self {
            MemoryFormat::Preserve => Argument::None,
            other => Argument::Int(other as i64),
        }
    }

    /// How new elements lie that are like those of `from`.
    pub(crate) fn layout(self, op: &'static str, from: &Layout) -> Result<Layout> {
        let layout = match self.order() {
            None if self == MemoryFormat::Preserve && from.is_dense() => {
                Layout::strided(from.shape(), from.strides(), 0)
            }
            None if self == MemoryFormat::Preserve => Layout::ordered(from.shape(), &by_stride(from)),
            None => Layout::contiguous(from.shape()),
            Some(order) if order.len() == from.rank() => Layout::ordered(from.shape(), order),
            Some(order) => {
                let text = format_args!(
                    "{self:?} is for {} dimensions, not shape {:?}; Preserve and Contiguous are for all",
                    order.len(),
                    from.shape()
                );
                return Err(Error::new(Cause::Shape, op, text));
            }
        };
        layout.ok_or_else(|| {
            Error::new(Cause::Memory, op, format_args!("{:?} are too many elements", from.shape()))
        })
    }

    /// Whether a tensor of this layout is taken to be of this format already.
    pub(crate) fn suits(self, layout: &Layout) -> bool {
        let formats = [MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d];
        let found =
            formats.into_iter().find(|format| format.order().is_some_and(|order| lies_in(layout, order)));
        self == MemoryFormat::Preserve || self == found.unwrap_or(MemoryFormat::Contiguous)
    }
}

/// The dimensions as they lie in memory, the outermost first. Where strides leave it open, they keep the
/// order that they are counted in, as torch has it.
fn by_stride(layout: &Layout) -> Dims {
    let (shape, strides) = (layout.shape(), layout.strides());
    // Whether the first lies outside of the second; none where one of them repeats.
    let outside = |a: usize, b: usize| match (strides[a], strides[b]) {
        (0, _) | (_, 0) => None,
        (one, other) if one == other => (shape[a] > shape[b]).then_some(true),
        (one, other) => Some(one > other),
    };
    let mut inner_first: Dims = (0..shape.len()).rev().collect();
    for from in 1..inner_first.len() {
        let mut at = from;
        for before in (0..from).rev() {
            match outside(inner_first[before], inner_first[at]) {
                Some(true) => {
                    inner_first.swap(before, at);
                    at = before;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    inner_first.into_iter().rev().collect()
}

/// Whether the strides of `layout` tell that `order` was meant. Where sizes of 1 leave it open they
/// do not.
fn lies_in(layout: &Layout, order: &[usize]) -> bool {
    let (shape, strides) = (layout.shape(), layout.strides());
    if shape.len() != order.len() || strides[1] == 0 {
        return false;
    }
    let mut least = 0;
    for &dim in order.iter().rev() {
        let open = dim == 0 && least == strides[1];
        if shape[dim] == 0 || strides[dim] < least || open {
            return false;
        }
        least = strides[dim].saturating_mul(shape[dim].max(1));
    }
    true
}
