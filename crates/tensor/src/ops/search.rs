//! Elements looked up among others.

use super::places::check_room;
use crate::op::{Operand, kernel_table};
use crate::promote::result_type;
use crate::{Cause, DType, Error, Kernel, Op, Result, Spec, Tensor, composite};
use cresset_dispatch::observe::Argument;
use cresset_kernels::index;

/// How many elements of an ordered row come before each value.
#[derive(Clone, Debug)]
pub struct SearchSorted {
    /// Whether equal elements count too.
    pub right: bool,
    /// Whether the answer is of i32 rather than i64.
    pub int32: bool,
}

impl Op for SearchSorted {
    const NAME: &'static str = "aten::searchsorted";
    /// The ordered rows and the values; then the order in which rows are to be read, if not as they lie.
    type Inputs<'a> = ([&'a Tensor; 2], Option<&'a Tensor>);
    type Output = Tensor;

    fn arguments(&self, ([sorted, values], sorter): Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(sorted.argument()));
        visit(Argument::Tensor(values.argument()));
        visit(Argument::Bool(self.int32));
        visit(Argument::Bool(self.right));
        visit(Argument::None);
        visit(sorter.map_or(Argument::None, |sorter| Argument::Tensor(sorter.argument())));
    }
}

impl SearchSorted {
    fn check_sorter(sorted: &Tensor, sorter: &Tensor) -> Result<()> {
        if sorter.shape() == sorted.shape() && sorter.dtype() == DType::I64 {
            return Ok(());
        }
        let text = format_args!(
            "expects a sorter of i64 and shape {:?}, as the sorted elements, not {} and {:?}",
            sorted.shape(),
            sorter.dtype(),
            sorter.shape()
        );
        Err(Error::new(Cause::Shape, Self::NAME, text))
    }
}

impl Kernel for SearchSorted {
    kernel_table!(SearchSorted);

    fn infer(&self, ([sorted, values], sorter): Self::Inputs<'_>) -> Result<Spec> {
        let rows = |tensor: &Tensor| tensor.shape().split_last().map(|(_, rows)| rows.to_vec());
        let fits = sorted.dim() == 1 || (sorted.dim() > 1 && rows(sorted) == rows(values));
        if !fits {
            let text = format_args!(
                "expects one ordered row, or one per row of values; not {:?} for values of {:?}",
                sorted.shape(),
                values.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        if let Some(sorter) = sorter {
            Self::check_sorter(sorted, sorter)?;
        }
        if self.int32 && sorted.shape().last().is_some_and(|&width| i32::try_from(width).is_err()) {
            let text = format_args!("rows of {:?} are too long for answers of i32", sorted.shape());
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        Ok(Spec::new(values.shape(), if self.int32 { DType::I32 } else { DType::I64 }))
    }

    fn cpu(&self, ([sorted, values], sorter): Self::Inputs<'_>, out: &Tensor) -> Result<()> {
        let dtype = result_type(sorted, Operand::Tensor(values));
        let (sorted, values) = (sorted.converted(dtype)?, values.converted(dtype)?);
        let width = sorted.shape().last().copied().unwrap_or(0);
        if let Some(sorter) = sorter {
            let numbers = sorter.to_vec::<i64>()?;
            if let Some(number) = numbers.iter().find(|&&number| !(0..width as i64).contains(&number)) {
                let text = format_args!("sorter: index {number} is out of range for size {width}");
                return Err(Error::new(Cause::Index, Self::NAME, text));
            }
        }
        let wide = Tensor::uninit(out.shape(), DType::I64, out.device())?;
        {
            let (reading_sorted, reading_values) = (sorted.read(), values.read());
            let reading_sorter = sorter.map(Tensor::read);
            let order = sorter.zip(reading_sorter.as_ref()).map(|(sorter, reading)| sorter.elements(reading));
            let mut writing = wide.write();
            index::search(
                sorted.elements(&reading_sorted),
                values.elements(&reading_values),
                self.right,
                order,
                wide.elements_mut(&mut writing),
            );
        }
        super::places::start(&wide, out)
    }
}

/// Whether each element is among others.
#[derive(Clone, Debug)]
pub struct IsIn {
    /// Whether to say the opposite.
    pub invert: bool,
}

impl Op for IsIn {
    const NAME: &'static str = "aten::isin";
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(Argument::Bool(false));
        visit(Argument::Bool(self.invert));
    }
}

impl Kernel for IsIn {
    kernel_table!(IsIn);

    fn infer(&self, [x, known]: [&Tensor; 2]) -> Result<Spec> {
        if x.dtype() == DType::Bool || known.dtype() == DType::Bool {
            let text = format_args!("expects numbers, not {} among {}", x.dtype(), known.dtype());
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        Ok(Spec::new(x.shape(), DType::Bool))
    }

    fn cpu(&self, [x, known]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        check_room(Self::NAME, known.shape())?;
        let dtype = result_type(x, Operand::Tensor(known));
        let (x, known) = (x.converted(dtype)?, known.converted(dtype)?);
        let (reading, knowing, mut writing) = (x.read(), known.read(), out.write());
        let (x, known) = (x.elements(&reading), known.elements(&knowing));
        index::contains(x, known, self.invert, out.elements_mut(&mut writing));
        Ok(())
    }
}

impl Tensor {
    /// How many elements of this ordered row come before each value: those less than it, or with `right`
    /// those not greater. With several rows, each is for one row of values.
    pub fn searchsorted(&self, values: &Tensor, right: bool) -> Result<Tensor> {
        SearchSorted { right, int32: false }.call(([self, values], None))
    }

    /// How many of the ordered `boundaries` lie below each element; with `right`, those equal to it too.
    pub fn bucketize(&self, boundaries: &Tensor, right: bool) -> Result<Tensor> {
        self.bucketize_as(boundaries, right, false)
    }

    /// As [`bucketize`](Tensor::bucketize), with answers of i32 if `int32` says so.
    pub fn bucketize_as(&self, boundaries: &Tensor, right: bool, int32: bool) -> Result<Tensor> {
        const NAME: &str = "aten::bucketize";
        let _span = composite(NAME, [self, boundaries], |visit| {
            visit(Argument::Bool(int32));
            visit(Argument::Bool(right));
        });
        if boundaries.dim() != 1 {
            let text =
                format_args!("expects boundaries of one dimension, not shape {:?}", boundaries.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        SearchSorted { right, int32 }.call(([boundaries, self], None))
    }

    /// Whether each element is among the elements of `known`.
    pub fn isin(&self, known: &Tensor) -> Result<Tensor> {
        IsIn { invert: false }.call([self, known])
    }
}
