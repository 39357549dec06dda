//! Matrix products, in the precision of their elements.

use super::{beside, converted};
use crate::aclnn;
use cresset_acl::constant::cube::KEEP_DTYPE;
use cresset_tensor::ops::{Addbmm, Addmm, Addmv, Addr, Baddbmm, Bmm, Dot, Mm, Mv};
use cresset_tensor::{Kernel, Key, Result, Scalar, Tensor};

/// One line per product added to something.
macro_rules! added {
    ($npu:ident; $($op:ident: $call:ident, $product:ident;)*) => {$(
        $op::table().register($npu, |op, [x, a, b], out| {
            if out.dtype().is_float() {
                return aclnn::$call(x, a, b, op.beta, op.alpha, out, KEEP_DTYPE);
            }
            let product = beside(out, out.shape(), out.dtype())?;
            $product(a, b, &product)?;
            sum(x, op.beta, &product, op.alpha, out)
        });
    )*};
}

pub(super) fn register(npu: Key) {
    Mm::table().register(npu, |_, [a, b], out| match out.dtype().is_float() {
        true => aclnn::mm(a, b, out, KEEP_DTYPE),
        false => whole_products(a, b, out),
    });
    Bmm::table().register(npu, |_, [a, b], out| match out.dtype().is_float() {
        true => aclnn::batch_matmul(a, b, out, KEEP_DTYPE),
        false => whole_products(a, b, out),
    });
    Mv::table().register(npu, |_, [a, v], out| match out.dtype().is_float() {
        true => aclnn::mv(a, v, out, KEEP_DTYPE),
        false => whole_products(a, &v.unsqueeze(1)?, &out.unsqueeze(1)?),
    });
    Dot::table().register(npu, |_, [a, b], out| match out.dtype().is_float() {
        true => aclnn::dot(a, b, out),
        false => whole_products(&a.unsqueeze(0)?, &b.unsqueeze(1)?, &out.reshape([1, 1])?),
    });
    added! { npu;
        Addmm: addmm, whole_products;
        Baddbmm: baddbmm, whole_products;
        Addbmm: addbmm, whole_sum;
    }
    Addmv::table().register(npu, |op, [x, a, v], out| {
        if out.dtype().is_float() {
            return aclnn::addmv(x, a, v, op.alpha, op.beta, out, KEEP_DTYPE);
        }
        let product = beside(out, out.shape(), out.dtype())?;
        whole_products(a, &v.unsqueeze(1)?, &product.unsqueeze(1)?)?;
        sum(x, op.beta, &product, op.alpha, out)
    });
    Addr::table().register(npu, |op, [x, a, b], out| {
        let product = beside(out, out.shape(), out.dtype())?;
        aclnn::mul(&a.unsqueeze(1)?, &b.unsqueeze(0)?, &product)?;
        sum(x, op.beta, &product, op.alpha, out)
    });
}

/// Products of matrices, or stacks of them, whose elements are integers: the unit for products takes
/// floats only, so that all products of two elements are made and added up.
fn whole_products(a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    let rank = out.dim();
    let (left, right) = (a.unsqueeze(-1)?, b.unsqueeze(-3)?);
    let mut shape = left.shape().to_vec();
    shape[rank] = right.shape()[rank];
    let products = beside(out, &shape, out.dtype())?;
    aclnn::mul(&left, &right, &products)?;
    aclnn::reduce_sum(&products, &[rank - 1], false, out.dtype(), out)
}

/// The products of two stacks, added up.
fn whole_sum(a: &Tensor, b: &Tensor, out: &Tensor) -> Result<()> {
    let shape = [a.shape()[0], a.shape()[1], b.shape()[2]];
    let products = beside(out, &shape, out.dtype())?;
    whole_products(a, b, &products)?;
    aclnn::reduce_sum(&products, &[0], false, out.dtype(), out)
}

/// `beta * x + alpha * product`; with a `beta` of 0 the first counts for its shape only.
fn sum(x: &Tensor, beta: Scalar, product: &Tensor, alpha: Scalar, out: &Tensor) -> Result<()> {
    // Factors of integers are cut to integers.
    let [alpha, beta] = [alpha, beta].map(|factor| match out.dtype().is_float() {
        true => factor,
        false => Scalar::Int(factor.as_i64()),
    });
    if beta.as_f64() == 0.0 {
        return aclnn::muls(product, alpha, out);
    }
    let scaled = beside(x, x.shape(), out.dtype())?;
    aclnn::muls(&converted(x, out.dtype())?, beta, &scaled)?;
    aclnn::add(&scaled, product, alpha, out)
}
