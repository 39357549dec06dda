//! How parameters start: torch's initialisers, in place and without a trace in the graph.
//!
//! ```
//! use cresset_nn::{Conv2d, init};
//!
//! let conv = Conv2d::new(3, 16, 3)?;
//! init::kaiming_normal_(&conv.weight.tensor(), init::FanMode::Out, init::Gain::Relu)?;
//! # Ok::<(), cresset_nn::Error>(())
//! ```

use crate::check::{refused, within};
use cresset_tensor::{Cause, DType, Error, Result, Tensor, no_grad};

/// The nonlinearity that follows, and so by how much a layer must spread its outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// None: 1.
    Linear,
    /// 1, as torch has it.
    Sigmoid,
    /// 5/3.
    Tanh,
    /// The root of 2.
    Relu,
    /// The root of `2 / (1 + slope²)`.
    LeakyRelu(f64),
    /// 3/4.
    Selu,
}

/// By how much a layer before this nonlinearity is to spread its outputs.
pub fn calculate_gain(nonlinearity: Gain) -> f64 {
    match nonlinearity {
        Gain::Linear | Gain::Sigmoid => 1.0,
        Gain::Tanh => 5.0 / 3.0,
        Gain::Relu => 2f64.sqrt(),
        Gain::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
        Gain::Selu => 0.75,
    }
}

/// Which variance stays the same from layer to layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FanMode {
    /// That of outputs, forwards.
    #[default]
    In,
    /// That of gradients, backwards.
    Out,
}

/// Uniform numbers within `1 / sqrt(fan_in)` of 0: how torch's layers start.
pub(crate) fn fan_in_uniform(shape: impl AsRef<[usize]>, fan_in: usize) -> Result<Tensor> {
    let bound = if fan_in == 0 { 0.0 } else { 1.0 / (fan_in as f64).sqrt() };
    Tensor::uniform(-bound, bound, shape, ())
}

/// How many inputs an output of a weight is computed from, and how many outputs an input goes into.
///
/// # Errors
/// For less than two dimensions.
pub fn fans(tensor: &Tensor) -> Result<(usize, usize)> {
    let [first, second, places @ ..] = tensor.shape() else {
        let text =
            format_args!("expects a weight of at least two dimensions, not shape {:?}", tensor.shape());
        return Err(Error::new(Cause::Shape, "init", text));
    };
    let places: usize = places.iter().product();
    Ok((second * places, first * places))
}

/// Overwrites a tensor with `values`, converted to where and what it is.
fn write(tensor: &Tensor, values: &Tensor) -> Result<()> {
    let _guard = no_grad();
    tensor.copy_(&values.to(tensor)?)
}

/// Numbers are drawn in single precision at least.
fn drawn_in(tensor: &Tensor) -> Result<DType> {
    match tensor.dtype() {
        DType::F64 => Ok(DType::F64),
        float if float.is_float() => Ok(DType::F32),
        other => Err(Error::new(Cause::DType, "init", format_args!("expects floats, not {other}"))),
    }
}

/// Uniform numbers from `low` to `high`.
///
/// # Errors
/// If `low` is above `high`.
pub fn uniform_(tensor: &Tensor, low: f64, high: f64) -> Result<()> {
    within("uniform_", "low", low, low <= high, format_args!("at most high, which is {high}"))?;
    write(tensor, &Tensor::uniform(low, high, tensor.shape(), drawn_in(tensor)?)?)
}

/// Normally distributed numbers.
///
/// # Errors
/// For a negative deviation.
pub fn normal_(tensor: &Tensor, mean: f64, std: f64) -> Result<()> {
    within("normal_", "std", std, std >= 0.0, "at least 0")?;
    write(tensor, &Tensor::randn(tensor.shape(), drawn_in(tensor)?)?.mul(std)?.add(mean)?)
}

/// Normally distributed numbers, drawn again while they are outside of `low` and `high`.
///
/// # Errors
/// For a negative deviation, and if `low` is above `high`.
pub fn trunc_normal_(tensor: &Tensor, mean: f64, std: f64, low: f64, high: f64) -> Result<()> {
    within("trunc_normal_", "std", std, std >= 0.0, "at least 0")?;
    within("trunc_normal_", "low", low, low <= high, format_args!("at most high, which is {high}"))?;
    if std == 0.0 {
        return write(tensor, &Tensor::full(tensor.shape(), mean.clamp(low, high), DType::F64)?);
    }
    // Uniform among the shares of a normal distribution that lie within the bounds, and back.
    let root = 2f64.sqrt();
    let share = |x: f64| -> Result<f64> {
        let scaled = Tensor::full([1], (x - mean) / (std * root), DType::F64)?;
        Ok(scaled.erf()?.to_vec::<f64>()?[0])
    };
    let drawn = Tensor::uniform(share(low)?, share(high)?, tensor.shape(), DType::F64)?;
    write(tensor, &drawn.erfinv()?.mul(std * root)?.add(mean)?.clamp(low, high)?)
}

/// One value everywhere.
pub fn constant_(tensor: &Tensor, value: f64) -> Result<()> {
    let _guard = no_grad();
    tensor.fill_(value)
}

/// Ones.
pub fn ones_(tensor: &Tensor) -> Result<()> {
    constant_(tensor, 1.0)
}

/// Zeros.
pub fn zeros_(tensor: &Tensor) -> Result<()> {
    constant_(tensor, 0.0)
}

/// The identity matrix, or as much of it as there is room for.
///
/// # Errors
/// For anything but two dimensions.
pub fn eye_(tensor: &Tensor) -> Result<()> {
    let &[rows, columns] = tensor.shape() else {
        let text = format_args!("expects two dimensions, not shape {:?}", tensor.shape());
        return Err(Error::new(Cause::Shape, "eye_", text));
    };
    write(tensor, &Tensor::eye(rows, columns, ())?)
}

/// The weight of a convolution that passes its input on, as many channels as possible in each group.
///
/// # Errors
/// For anything but three to five dimensions, and outputs that the groups do not divide.
pub fn dirac_(tensor: &Tensor, groups: usize) -> Result<()> {
    let [outputs, inputs, places @ ..] = tensor.shape() else {
        return Err(refused(
            "dirac_",
            format_args!("expects 3 to 5 dimensions, not shape {:?}", tensor.shape()),
        ));
    };
    if !(1..=3).contains(&places.len()) {
        return Err(refused(
            "dirac_",
            format_args!("expects 3 to 5 dimensions, not shape {:?}", tensor.shape()),
        ));
    }
    let divides = groups > 0 && outputs.is_multiple_of(groups);
    within("dirac_", "groups", groups, divides, format_args!("a divisor of the {outputs} outputs"))?;
    let (per_group, area) = (outputs / groups, places.iter().product::<usize>());
    let middle = places.iter().fold(0, |at, &size| at * size + size / 2);
    let mut elements = vec![0f32; tensor.numel()];
    for group in 0..groups {
        for channel in 0..per_group.min(*inputs) {
            elements[((group * per_group + channel) * inputs + channel) * area + middle] = 1.0;
        }
    }
    write(tensor, &Tensor::from_vec(elements, tensor.shape())?)
}

/// Uniform numbers that keep the variance both forwards and backwards, as Glorot and Bengio found.
///
/// # Errors
/// For less than two dimensions.
pub fn xavier_uniform_(tensor: &Tensor, gain: f64) -> Result<()> {
    let bound = 3f64.sqrt() * xavier(tensor, gain)?;
    uniform_(tensor, -bound, bound)
}

/// Normally distributed numbers that keep the variance both forwards and backwards.
///
/// # Errors
/// For less than two dimensions.
pub fn xavier_normal_(tensor: &Tensor, gain: f64) -> Result<()> {
    normal_(tensor, 0.0, xavier(tensor, gain)?)
}

fn xavier(tensor: &Tensor, gain: f64) -> Result<f64> {
    let (inputs, outputs) = fans(tensor)?;
    Ok(gain * (2.0 / (inputs + outputs) as f64).sqrt())
}

/// Uniform numbers that keep the variance in front of a nonlinearity, as He and others found.
///
/// # Errors
/// For less than two dimensions.
pub fn kaiming_uniform_(tensor: &Tensor, mode: FanMode, nonlinearity: Gain) -> Result<()> {
    let bound = 3f64.sqrt() * kaiming(tensor, mode, nonlinearity)?;
    uniform_(tensor, -bound, bound)
}

/// Normally distributed numbers that keep the variance in front of a nonlinearity.
///
/// # Errors
/// For less than two dimensions.
pub fn kaiming_normal_(tensor: &Tensor, mode: FanMode, nonlinearity: Gain) -> Result<()> {
    normal_(tensor, 0.0, kaiming(tensor, mode, nonlinearity)?)
}

fn kaiming(tensor: &Tensor, mode: FanMode, nonlinearity: Gain) -> Result<f64> {
    let (inputs, outputs) = fans(tensor)?;
    let fan = if mode == FanMode::In { inputs } else { outputs };
    Ok(if fan == 0 { 0.0 } else { calculate_gain(nonlinearity) / (fan as f64).sqrt() })
}

/// Rows that are orthogonal to each other, or columns where there are less of these, each of length
/// `gain`. All dimensions but the first count as one.
///
/// # Errors
/// For less than two dimensions.
pub fn orthogonal_(tensor: &Tensor, gain: f64) -> Result<()> {
    let [rows, rest @ ..] = tensor.shape() else {
        return Err(refused("orthogonal_", "expects at least two dimensions, not a number"));
    };
    if rest.is_empty() {
        let text = format_args!("expects at least two dimensions, not shape {:?}", tensor.shape());
        return Err(Error::new(Cause::Shape, "orthogonal_", text));
    }
    let (rows, columns) = (*rows, rest.iter().product::<usize>());
    if rows * columns == 0 {
        return Ok(());
    }
    let (many, few) = (rows.max(columns), rows.min(columns));
    let mut vectors = Tensor::randn([few, many], DType::F64)?.to_vec::<f64>()?;
    for at in 0..few {
        // Twice is enough: what rounding leaves the first time is gone after the second.
        for _ in 0..2 {
            for before in 0..at {
                let (done, rest) = vectors.split_at_mut(at * many);
                let other = &done[before * many..(before + 1) * many];
                let along: f64 = other.iter().zip(&rest[..many]).map(|(a, b)| a * b).sum();
                rest[..many].iter_mut().zip(other).for_each(|(x, other)| *x -= along * other);
            }
        }
        let vector = &mut vectors[at * many..(at + 1) * many];
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
    }
    let basis = Tensor::from_vec(vectors, [few, many])?.mul(gain)?;
    let matrix = if rows < columns { basis } else { basis.t()? };
    write(tensor, &matrix.reshape(tensor.shape())?)
}

/// Normally distributed numbers, but a share of `sparsity` of each column is 0.
///
/// # Errors
/// For anything but two dimensions, and a sparsity that is no share.
pub fn sparse_(tensor: &Tensor, sparsity: f64, std: f64) -> Result<()> {
    let &[rows, columns] = tensor.shape() else {
        let text = format_args!("expects two dimensions, not shape {:?}", tensor.shape());
        return Err(Error::new(Cause::Shape, "sparse_", text));
    };
    within("sparse_", "sparsity", sparsity, (0.0..=1.0).contains(&sparsity), "a share from 0 to 1")?;
    within("sparse_", "std", std, std >= 0.0, "at least 0")?;
    let empty = (sparsity * rows as f64).ceil() as usize;
    let mut elements = Tensor::randn([rows, columns], DType::F64)?.mul(std)?.to_vec::<f64>()?;
    for column in 0..columns {
        for &row in Tensor::randperm(rows)?.to_vec::<i64>()?.iter().take(empty) {
            elements[row as usize * columns + column] = 0.0;
        }
    }
    write(tensor, &Tensor::from_vec(elements, [rows, columns])?)
}
