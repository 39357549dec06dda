//! Normalization by size alone: root mean square, a norm, or the channels nearby.

use super::layer::check_normalized;
use crate::ops::check_float;
use crate::{DType, Result, Tensor, composite};
use cresset_dispatch::observe::Argument;

impl Tensor {
    /// Elements divided by the root of the mean of squares over the last dimensions, which are of
    /// shape `normalized`, times a weight of that shape. `epsilon` is added to the mean; the
    /// smallest difference of the element type unless given.
    pub fn rms_norm(
        &self,
        normalized: &[usize],
        weight: Option<&Tensor>,
        epsilon: Option<f64>,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::rms_norm";
        let _span = composite(NAME, [Some(self), weight], |visit| {
            visit(epsilon.map_or(Argument::None, Argument::Float))
        });
        check_float(NAME, self)?;
        check_normalized(NAME, self, normalized)?;
        let half = matches!(self.dtype(), DType::F16 | DType::BF16);
        let x = if half { self.to_dtype(DType::F32)? } else { self.clone() };
        let epsilon =
            epsilon.unwrap_or(if self.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() });
        let dims: Vec<isize> = (1..=normalized.len() as isize).map(|dim| -dim).collect();
        let scale = x.mul(&x)?.mean_dims(&dims, true)?.add(epsilon)?.sqrt()?.reciprocal()?;
        let mut out = x.mul(&scale)?;
        if let Some(weight) = weight {
            super::frame::check_parameter(NAME, self, Some(weight), "weight", normalized)?;
            out = out.mul(weight)?;
        }
        out.to_dtype(self.dtype())
    }
}
