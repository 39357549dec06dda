//! Interpolation to another size: which operator does it, and to which size.

use super::upsample::*;
use crate::{Cause, Error, Op, Result, Tensor, composite};
use cresset_kernels::Dims;
use smallvec::SmallVec;

const NAME: &str = "interpolate";

/// How images are brought to another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// By the element before, counted from the corner of the first. Of any number of dimensions.
    Nearest,
    /// By the element whose middle is nearest. Of any number of dimensions.
    NearestExact,
    /// Along straight lines, in one dimension.
    Linear,
    /// Along straight lines, in two dimensions.
    Bilinear,
    /// Along straight lines, in three dimensions.
    Trilinear,
    /// Along cubics, in two dimensions.
    Bicubic,
    /// By the average of what an element covers. Of any number of dimensions.
    Area,
}

impl Interpolation {
    /// The method that torch calls `name`.
    pub fn named(name: &str) -> Result<Interpolation> {
        Ok(match name {
            "nearest" => Interpolation::Nearest,
            "nearest-exact" => Interpolation::NearestExact,
            "linear" => Interpolation::Linear,
            "bilinear" => Interpolation::Bilinear,
            "trilinear" => Interpolation::Trilinear,
            "bicubic" => Interpolation::Bicubic,
            "area" => Interpolation::Area,
            other => {
                let text = format_args!(
                    "{other:?} is no interpolation; there are \"nearest\", \"nearest-exact\", \"linear\", \
                     \"bilinear\", \"trilinear\", \"bicubic\" and \"area\""
                );
                return Err(Error::new(Cause::Argument, NAME, text));
            }
        })
    }

    /// The operator for images of so many dimensions, if there is one.
    fn operator(self, rank: usize) -> Option<&'static str> {
        Some(match (self, rank) {
            (Interpolation::Nearest, 1) => UpsampleNearest1d::NAME,
            (Interpolation::Nearest, 2) => UpsampleNearest2d::NAME,
            (Interpolation::Nearest, 3) => UpsampleNearest3d::NAME,
            (Interpolation::NearestExact, 1) => UpsampleNearestExact1d::NAME,
            (Interpolation::NearestExact, 2) => UpsampleNearestExact2d::NAME,
            (Interpolation::NearestExact, 3) => UpsampleNearestExact3d::NAME,
            (Interpolation::Linear, 1) => UpsampleLinear1d::NAME,
            (Interpolation::Bilinear, 2) => UpsampleBilinear2d::NAME,
            (Interpolation::Trilinear, 3) => UpsampleTrilinear3d::NAME,
            (Interpolation::Bicubic, 2) => UpsampleBicubic2d::NAME,
            _ => return None,
        })
    }

    /// Whether corners can be aligned at all.
    fn has_corners(self) -> bool {
        !matches!(self, Interpolation::Nearest | Interpolation::NearestExact | Interpolation::Area)
    }
}

/// Which size images get; one number stands for all dimensions.
#[derive(Clone, Debug)]
pub enum Resize {
    /// These sizes.
    To(Vec<usize>),
    /// So many times the size. Places are computed with these factors, or with what they became
    /// when sizes were rounded down.
    By {
        /// What sizes are multiplied by.
        factors: Vec<f64>,
        /// Whether places are computed with the quotients of the sizes.
        recompute: bool,
    },
}

/// One number for all dimensions, or one for each.
fn spread<T: Copy + std::fmt::Debug>(name: &str, given: &[T], rank: usize) -> Result<SmallVec<[T; 3]>> {
    match given {
        [one] => Ok(SmallVec::from_elem(*one, rank)),
        all if all.len() == rank => Ok(SmallVec::from_slice(all)),
        other => {
            let text = format_args!("expects a {name} for all {rank} dimensions or for each, not {other:?}");
            Err(Error::new(Cause::Argument, NAME, text))
        }
    }
}

fn scaled(size: usize, factor: f64) -> Result<usize> {
    let to = (size as f64 * factor).floor();
    // Beyond 2^53 sizes are no longer exact, and memory ends long before.
    if (0.0..9e15).contains(&to) {
        return Ok(to as usize);
    }
    let text = format_args!("a size of {size} cannot be made {factor} times as large");
    Err(Error::new(Cause::Argument, NAME, text))
}

impl Resize {
    fn on(&self, from: &[usize], align_corners: bool) -> Result<Resizing> {
        let rank = from.len();
        match self {
            Resize::To(to) => {
                let to = Dims::from_slice(&spread("size", to, rank)?);
                Ok(Resizing { to, align_corners, scales: None })
            }
            Resize::By { factors, recompute } => {
                let factors = spread("factor", factors, rank)?;
                let to = from.iter().zip(&factors).map(|(&size, &factor)| scaled(size, factor));
                let scales = (!recompute).then_some(factors.clone());
                Ok(Resizing { to: to.collect::<Result<Dims>>()?, align_corners, scales })
            }
        }
    }
}

impl Tensor {
    /// Images `[samples, channels, ..]` of one to three dimensions brought to another size.
    ///
    /// With `align_corners` the first and the last element keep their places, else the outer edges of
    /// the image do; only methods between elements can be told.
    pub fn interpolate(
        &self,
        size: &Resize,
        method: Interpolation,
        align_corners: Option<bool>,
    ) -> Result<Tensor> {
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Argument, NAME, text));
        if align_corners.is_some() && !method.has_corners() {
            return refused(format_args!("{method:?} has no corners to align"));
        }
        let Some(from) = self.shape().get(2..).filter(|from| (1..=3).contains(&from.len())) else {
            return refused(format_args!("expects 3 to 5 dimensions, not shape {:?}", self.shape()));
        };
        let resizing = size.on(from, align_corners.unwrap_or(false))?;
        let _span = method.operator(from.len()).and_then(|name| {
            composite(name, [self], |visit| resizing.visit_told(method.has_corners(), visit))
        });
        match (method, from.len()) {
            (Interpolation::Nearest, 1) => UpsampleNearest1d(resizing).call([self]),
            (Interpolation::Nearest, 2) => UpsampleNearest2d(resizing).call([self]),
            (Interpolation::Nearest, 3) => UpsampleNearest3d(resizing).call([self]),
            (Interpolation::NearestExact, 1) => UpsampleNearestExact1d(resizing).call([self]),
            (Interpolation::NearestExact, 2) => UpsampleNearestExact2d(resizing).call([self]),
            (Interpolation::NearestExact, 3) => UpsampleNearestExact3d(resizing).call([self]),
            (Interpolation::Linear, 1) => UpsampleLinear1d(resizing).call([self]),
            (Interpolation::Bilinear, 2) => UpsampleBilinear2d(resizing).call([self]),
            (Interpolation::Trilinear, 3) => UpsampleTrilinear3d(resizing).call([self]),
            (Interpolation::Bicubic, 2) => UpsampleBicubic2d(resizing).call([self]),
            (Interpolation::Area, _) => self.averaged_to(&resizing.to),
            (method, dims) => refused(format_args!("{method:?} is not for images of {dims} dimensions")),
        }
    }

    fn averaged_to(&self, to: &[usize]) -> Result<Tensor> {
        let sizes: SmallVec<[Option<isize>; 3]> = to.iter().map(|&size| isize::try_from(size).ok()).collect();
        match sizes[..] {
            [Some(size)] => self.adaptive_avg_pool1d(size),
            [Some(_), Some(_)] => self.adaptive_avg_pool2d(&sizes),
            [Some(_), Some(_), Some(_)] => self.adaptive_avg_pool3d(&sizes),
            _ => Err(Error::new(Cause::Argument, NAME, format_args!("{to:?} is more than can be counted"))),
        }
    }
}
