//! Lists of tensors that are changed alike, by one call for all of them where the library has one.

use super::{ONE, beside, copied};
use crate::aclnn;
use cresset_tensor::{DType, Result, Scalar, Tensor};

/// Tensors of one type, and whether the library takes them as a list.
#[derive(Clone)]
pub(super) struct Many {
    tensors: Vec<Tensor>,
    is_listed: bool,
}

/// So many tensors fit into one call, those of all its lists together.
const TOGETHER: usize = 48;

/// Calls `list` with as many tensors at a time as it takes.
fn in_turn<const N: usize>(lists: [&Many; N], list: impl Fn([&[&Tensor]; N]) -> Result<()>) -> Result<()> {
    let all = lists.map(|many| many.tensors.iter().collect::<Vec<&Tensor>>());
    let (count, size) = (all[0].len(), (TOGETHER / N).max(1));
    for start in (0..count).step_by(size) {
        let end = (start + size).min(count);
        list(all.each_ref().map(|list| &list[start..end]))?;
    }
    Ok(())
}

/// One line per change of a list by others and a number: the library's call for lists, and that for one.
macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident($($other:ident),*; $number:ident): $listed:ident, |$x:ident| $one:expr;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name(&self, $($other: &Many,)* $number: f64) -> Result<()> {
            let number = Scalar::Float($number);
            if self.is_listed {
                return in_turn([self, $($other),*], |[x, $($other),*]| aclnn::$listed(x, $($other,)* number, x));
            }
            let $number = number;
            (0..self.tensors.len()).try_for_each(|at| {
                let $x = &self.tensors[at];
                $(let $other = &$other.tensors[at];)*
                $one
            })
        }
    )*};
}

impl Many {
    /// These tensors, which are all alike in what the library asks: contiguous, and of a type that it has lists of.
    pub(super) fn new(tensors: Vec<Tensor>) -> Many {
        let dtype = tensors.first().map_or(DType::F64, Tensor::dtype);
        let fits = |x: &Tensor| x.is_contiguous() && x.dtype() == dtype && x.numel() > 0;
        let is_listed = tensors.len() > 1 && dtype != DType::F64 && tensors.iter().all(fits);
        Many { tensors, is_listed }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter()
    }

    pub(super) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// The same, taken as a list if `is_listed` says so.
    pub(super) fn listed(self, is_listed: bool) -> Many {
        Many { is_listed, ..self }
    }

    changes! {
        /// Each times a number.
        mul_(; by): foreach_mul_scalar_v2, |x| aclnn::inplace_muls(x, by);
        /// A number added to each.
        add_number_(; number): foreach_add_scalar_v2, |x| aclnn::inplace_adds(x, number, ONE);
        /// Another, times a number, added to each.
        add_(other; alpha): foreach_add_list_v2, |x| aclnn::inplace_add(x, other, alpha);
        /// Each moved towards another by this share of the way.
        lerp_(end; weight): foreach_lerp_scalar, |x| aclnn::inplace_lerps(x, end, weight);
        /// The product of two others, times a number, added to each.
        addcmul_(a, b; value): foreach_addcmul_scalar_v2, |x| aclnn::inplace_addcmul(x, a, b, value);
        /// The quotient of two others, times a number, added to each.
        addcdiv_(a, b; value): foreach_addcdiv_scalar_v2, |x| aclnn::inplace_addcdiv(x, a, b, value);
    }

    /// As many tensors of the same shapes, contents undefined.
    fn beside(&self) -> Result<Many> {
        let tensors = self.tensors.iter().map(|x| beside(x, x.shape(), x.dtype())).collect::<Result<_>>()?;
        Ok(Many { tensors, is_listed: self.is_listed })
    }

    /// Copies of all.
    pub(super) fn copied(&self) -> Result<Many> {
        if !self.is_listed {
            let tensors = self.tensors.iter().map(|x| copied(x, x.dtype())).collect::<Result<_>>()?;
            return Ok(Many { tensors, is_listed: false });
        }
        let out = self.beside()?;
        in_turn([self, &out], |[x, out]| aclnn::foreach_copy(x, out))?;
        Ok(out)
    }

    /// Overwrites all with others.
    pub(super) fn copy_(&self, from: &Many) -> Result<()> {
        if self.is_listed {
            return in_turn([from, self], |[from, x]| aclnn::foreach_copy(from, x));
        }
        self.tensors.iter().zip(&from.tensors).try_for_each(|(x, from)| aclnn::inplace_copy(x, from))
    }

    /// The roots of all.
    pub(super) fn sqrt(&self) -> Result<Many> {
        let out = self.beside()?;
        if self.is_listed {
            in_turn([self, &out], |[x, out]| aclnn::foreach_sqrt(x, out))?;
        } else {
            self.tensors.iter().zip(&out.tensors).try_for_each(|(x, out)| aclnn::sqrt(x, out))?;
        }
        Ok(out)
    }

    /// The larger of each and another, in its place.
    pub(super) fn maximum_(&self, other: &Many) -> Result<()> {
        let before = self.copied()?;
        if self.is_listed {
            return in_turn([&before, other, self], |[x, y, out]| aclnn::foreach_maximum_list(x, y, out));
        }
        let both = before.tensors.iter().zip(&other.tensors).zip(&self.tensors);
        both.into_iter().try_for_each(|((x, y), out)| aclnn::maximum(x, y, out))
    }

    /// What a function of one tensor makes of each.
    pub(super) fn map(&self, function: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Many> {
        let tensors = self.tensors.iter().map(function).collect::<Result<_>>()?;
        Ok(Many { tensors, is_listed: self.is_listed })
    }
}
