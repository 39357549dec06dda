//! Tensors as `[batch, heads, rows, width]`, whatever the order of their dimensions.

use crate::error::{Result, fail};
use crate::objects::Tensor;
use cresset_acl::code;
use cresset_kernels::Layout;

/// How the dimensions of queries, keys and values follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    /// Batch, heads, rows, width.
    Bnsd,
    /// Batch, rows, heads, width.
    Bsnd,
    /// Batch, rows, heads and width in one.
    Bsh,
    /// Rows, batch, heads and width in one.
    Sbh,
}

impl Order {
    pub(super) fn new(name: &str) -> Result<Order> {
        Ok(match name {
            "BNSD" => Order::Bnsd,
            "BSND" => Order::Bsnd,
            "BSH" => Order::Bsh,
            "SBH" => Order::Sbh,
            _ => fail!(code::NN_PARAM_INVALID, "layout {name:?} is not simulated"),
        })
    }

    /// The same elements as `[batch, heads, rows, width]`.
    pub(super) fn heads(self, name: &str, x: &Tensor, heads: usize) -> Result<Tensor> {
        let (shape, strides) = (x.shape(), x.layout().strides());
        let wrong = || format!("{name} of shape {shape:?} is not of layout {self:?} with {heads} heads");
        let layout = match (self, shape.len()) {
            (Order::Bnsd, 4) => x.layout().clone(),
            (Order::Bsnd, 4) => x.layout().permute(&[0, 2, 1, 3]),
            (Order::Bsh | Order::Sbh, 3) if heads > 0 && shape[2] % heads == 0 => {
                let (batch, rows) = if self == Order::Bsh { (0, 1) } else { (1, 0) };
                let width = shape[2] / heads;
                let sizes = [shape[batch], heads, shape[rows], width];
                let steps = [strides[batch], width * strides[2], strides[rows], strides[2]];
                Layout::strided(&sizes, &steps, 0).expect("not further than before")
            }
            _ => fail!(code::NN_PARAM_INVALID, "{}", wrong()),
        };
        if layout.shape()[1] != heads {
            fail!(code::NN_PARAM_INVALID, "{}", wrong());
        }
        Ok(x.with_layout(layout))
    }

    /// How many heads keys have, of which each has `width` elements.
    pub(super) fn count(self, key: &Tensor, width: usize) -> Result<usize> {
        let shape = key.shape();
        match (self, shape.len()) {
            (Order::Bnsd, 4) => Ok(shape[1]),
            (Order::Bsnd, 4) => Ok(shape[2]),
            (Order::Bsh | Order::Sbh, 3) if width > 0 => Ok(shape[2] / width),
            _ => fail!(code::NN_PARAM_INVALID, "key of shape {shape:?} is not of layout {self:?}"),
        }
    }
}
