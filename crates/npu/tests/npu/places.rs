//! Elements picked, changed and moved on the device equal the host's.

use crate::operators::check;
use crate::support::numbers;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Op, Scalar, Tensor};

#[test]
fn elements_by_index() {
    let index = Tensor::new([[2i64, 0, 1], [1, 2, 0]]).unwrap();
    let inputs = [numbers(&[3, 3], 1), index, numbers(&[2, 3], 2), numbers(&[3, 4, 5], 3)];
    check("elements", &inputs, &|x| {
        let mask = x[0].gt(0)?;
        let rows = x[1].select(0, 0)?;
        Ok(vec![
            x[0].gather(0, &x[1])?,
            x[0].t()?.gather(0, &x[1])?,
            x[0].scatter(0, &x[1], &x[2])?,
            x[0].scatter(0, &x[1], 7)?,
            x[0].scatter_add(0, &x[1], &x[2])?,
            x[0].take(&x[1])?,
            x[0].masked_fill(&mask, -1)?,
            x[0].masked_select(&mask)?,
            x[0].nonzero()?,
            mask.nonzero()?,
            x[3].index(&[None, Some(&rows)])?,
            x[3].index(&[Some(&rows), None, Some(&rows)])?,
            x[0].index(&[Some(&mask)])?,
            x[0].index_put(&[Some(&rows)], &x[0].t()?, true)?,
            x[0].index_put(&[Some(&mask)], &x[0].sum()?, false)?,
            x[1].one_hot(Some(4))?,
            x[0].index_copy(0, &rows, &x[0].t()?)?,
        ])
    });
}

#[test]
fn elements_in_other_places() {
    let inputs = [numbers(&[3, 4], 1), numbers(&[3, 2], 2), numbers(&[2, 3, 4, 5], 3)];
    check("moved", &inputs, &|x| {
        Ok(vec![
            Tensor::cat(&[&x[0], &x[1], &x[0].to_dtype(DType::F64)?], 1)?,
            Tensor::stack(&[&x[0], &x[0]], 1)?,
            x[0].flip(&[0, 1])?,
            x[0].roll(&[1, -1], &[0, 1])?,
            x[2].tril(-1)?,
            x[0].triu(1)?,
            x[0].repeat([2, 3])?,
            x[0].pad(&[1, 2], Padding::Constant(Scalar::Float(0.5)))?,
            x[2].pad(&[1, 2, 0, 1], Padding::Reflect)?,
            x[2].pad(&[2, -1, 0, 3], Padding::Replicate)?,
            x[2].pad(&[1, 2, 0, 1], Padding::Circular)?,
        ])
    });
}

#[test]
fn rows_by_index() {
    let indices = Tensor::new([[2i64, 0, 2], [1, 3, 0]]).unwrap();
    let row = Tensor::new([3i64, 1, 1]).unwrap();
    let inputs = [numbers(&[4, 5], 1), indices, row, numbers(&[2, 3, 5], 2), numbers(&[3, 5], 3)];
    check("rows", &inputs, &|x| {
        Ok(vec![
            x[0].embedding(&x[1], None)?,
            x[0].embedding(&x[1].to_dtype(DType::I32)?, None)?,
            EmbeddingDenseBackward { padding: None, rows: 4, scale_by_frequency: true }
                .call([&x[3], &x[1]])?,
            EmbeddingDenseBackward { padding: Some(2), rows: 4, scale_by_frequency: false }
                .call([&x[3], &x[1]])?,
            x[0].index_select(0, &x[2])?,
            x[0].index_select(-1, &x[2])?,
            x[0].t()?.index_select(0, &x[2])?,
            x[0].index_add(0, &x[2], &x[4])?,
            x[0].index_add_scaled(0, &x[2], &x[4], -2)?,
            x[0].t()?.index_add(1, &x[2], &x[4].t()?)?,
        ])
    });
}
