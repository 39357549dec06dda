//! New tensors and conversions.

use super::Entry;
use crate::arguments::{Arguments, KEYWORD, Term};
use cresset_tensor::{
    Arange, Cause, DType, Error, MemoryFormat, Operand, Options, Result, Scalar, Tensor, To,
};

fn x(a: &Arguments<'_>) -> Result<Tensor> {
    a.get(0, "input")
}

/// What a tensor made after another does not take from it.
fn overrides(a: &Arguments<'_>) -> Result<To> {
    let dtype = a.get(KEYWORD, "dtype")?;
    Ok(To { dtype, device: Some(a.options(DType::F32)?.device), ..To::default() })
}

fn memory_format(a: &Arguments<'_>, default: MemoryFormat) -> Result<MemoryFormat> {
    let Some(name) = a.get::<Option<String>>(KEYWORD, "memory_format")? else { return Ok(default) };
    Ok(match name.as_str() {
        "contiguous_format" => MemoryFormat::Contiguous,
        "preserve_format" => MemoryFormat::Preserve,
        "channels_last" => MemoryFormat::ChannelsLast,
        "channels_last_3d" => MemoryFormat::ChannelsLast3d,
        other => {
            let text = format_args!("there is no memory format {other:?}");
            return Err(Error::new(Cause::Argument, "", text));
        }
    })
}

/// `to` takes a dtype, a device and a dtype, or another tensor; then `non_blocking` and `copy`.
fn to(a: &Arguments<'_>) -> Result<Tensor> {
    let options = a.options(DType::F32)?;
    let (mut to, [non_blocking, copy]) = if a.is::<Tensor>(1) {
        (To::from(&a.get::<Tensor>(1, "other")?), [2, 3])
    } else if a.is::<DType>(1) {
        (To::from(a.get::<DType>(1, "dtype")?), [2, 3])
    } else if !a.has(1, "device") {
        (To { dtype: a.get(KEYWORD, "dtype")?, ..To::default() }, [KEYWORD; 2])
    } else {
        let _: String = a.get(1, "device")?;
        (To { device: Some(options.device), dtype: a.get(2, "dtype")?, ..To::default() }, [3, 4])
    };
    // There is nothing that could go on while a copy is made.
    let _: bool = a.or(non_blocking, "non_blocking", false)?;
    to.copy = a.or(copy, "copy", false)?;
    to.memory_format = memory_format(a, MemoryFormat::Preserve)?;
    x(a)?.to(to)
}

fn cast(a: &Arguments<'_>, dtype: DType) -> Result<Tensor> {
    let memory_format = memory_format(a, MemoryFormat::Preserve)?;
    x(a)?.to(To { memory_format, ..dtype.into() })
}

fn arange(a: &Arguments<'_>) -> Result<Tensor> {
    let zero = Scalar::Int(0);
    let (start, end) = if a.has(1, "end") {
        (a.get(0, "start")?, a.get(1, "end")?)
    } else {
        (zero, a.get::<Scalar>(0, "end")?)
    };
    let range = Arange { start, end, step: a.or(2, "step", Scalar::Int(1))? };
    match a.get::<Option<DType>>(KEYWORD, "dtype")? {
        Some(dtype) => Tensor::arange_with(range, a.options(dtype)?),
        None => {
            let device = a.options(DType::F32)?.device;
            let made = Tensor::arange(range)?;
            if device.is_cpu() { Ok(made) } else { made.to(device) }
        }
    }
}

fn ends(a: &Arguments<'_>) -> Result<(Term, Term, usize)> {
    Ok((a.get(0, "start")?, a.get(1, "end")?, a.size(2, "steps")?))
}

fn shape(a: &Arguments<'_>, position: usize) -> Result<Vec<usize>> {
    a.rest(position, "size")
}

fn sized(a: &Arguments<'_>, make: fn(Vec<usize>, Options) -> Result<Tensor>) -> Result<Tensor> {
    make(shape(a, 0)?, a.options(DType::F32)?)
}

pub(super) const OPS: &[Entry] = &[
    Entry::one("arange", arange),
    Entry::one("bfloat16", |a| cast(a, DType::BF16)),
    Entry::one("bool", |a| cast(a, DType::Bool)),
    Entry::one("clone", |a| x(a)?.copy_in(memory_format(a, MemoryFormat::Preserve)?)),
    Entry::one("copy", |a| a.get::<Tensor>(1, "src")?.expand_as(&x(a)?)?.to_dtype(x(a)?.dtype()))
        .in_place(|x, a| x.copy_(&a.get(1, "src")?)),
    Entry::one("detach", |a| x(a)?.detach()),
    Entry::one("zero", |a| x(a)?.zeros_like()).in_place(|x, _| x.zero_()),
    Entry::one("contiguous", |a| x(a)?.contiguous_in(memory_format(a, MemoryFormat::Contiguous)?)),
    Entry::one("double", |a| cast(a, DType::F64)),
    Entry::one("empty", |a| sized(a, Tensor::empty)),
    Entry::one("eye", |a| {
        let rows = a.size(0, "n")?;
        let columns = if a.has(1, "m") { a.size(1, "m")? } else { rows };
        Tensor::eye(rows, columns, a.options(DType::F32)?)
    }),
    Entry::one("fill", |a| x(a)?.fill(a.get::<Scalar>(1, "value")?))
        .in_place(|x, a| x.fill_(a.get::<Scalar>(1, "value")?)),
    Entry::one("float", |a| cast(a, DType::F32)),
    Entry::one("full", |a| {
        let value: Scalar = a.get(1, "fill_value")?;
        Tensor::full(a.get::<Vec<usize>>(0, "size")?, value, a.options(DType::F32)?)
    }),
    Entry::one("full_like", |a| x(a)?.full_like_with(a.get::<Scalar>(1, "fill_value")?, overrides(a)?)),
    Entry::one("half", |a| cast(a, DType::F16)),
    Entry::one("int", |a| cast(a, DType::I32)),
    // A number, which no tensor is made of here.
    Entry::many("item", |a| x(a)?.item().map(|_| Vec::new())),
    Entry::one("linspace", |a| {
        let (start, end, steps) = ends(a)?;
        Tensor::linspace(Operand::from(&start), Operand::from(&end), steps, a.options(DType::F32)?)
    }),
    Entry::one("logspace", |a| {
        let (start, end, steps) = ends(a)?;
        let (base, options) = (a.or(3, "base", 10.0)?, a.options(DType::F32)?);
        Tensor::logspace(Operand::from(&start), Operand::from(&end), steps, base, options)
    }),
    Entry::one("long", |a| cast(a, DType::I64)),
    Entry::one("new_full", |a| {
        let value: Scalar = a.get(2, "fill_value")?;
        x(a)?.new_full(a.get::<Vec<usize>>(1, "size")?, value, overrides(a)?)
    }),
    Entry::one("new_ones", |a| x(a)?.new_ones(shape(a, 1)?, overrides(a)?)),
    Entry::one("new_zeros", |a| x(a)?.new_zeros(shape(a, 1)?, overrides(a)?)),
    Entry::one("ones", |a| sized(a, Tensor::ones)),
    Entry::one("ones_like", |a| x(a)?.ones_like_with(overrides(a)?)),
    Entry::one("scalar_tensor", |a| Tensor::scalar_tensor(a.get::<Scalar>(0, "s")?, a.options(DType::F32)?)),
    Entry::one("to", to),
    Entry::one("type_as", |a| x(a)?.type_as(&a.get(1, "other")?)),
    Entry::one("zeros", |a| sized(a, Tensor::zeros)),
    Entry::one("zeros_like", |a| x(a)?.zeros_like_with(overrides(a)?)),
];
