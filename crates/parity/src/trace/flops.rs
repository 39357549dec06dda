//! How many floating-point operations torch counts for a call, by its shapes.

use super::forest::Node;
use serde_json::Value;

/// torch's count; `None` for operators that it has no formula for, and for calls without shapes.
pub(super) fn flops(node: &Node<'_>) -> Option<u64> {
    let shape = |i: usize| -> Option<Vec<u64>> {
        node.dims.as_ref()?.get(i)?.as_array()?.iter().map(Value::as_u64).collect()
    };
    match node.name {
        "aten::mm" => product(&shape(0)?, &shape(1)?),
        "aten::addmm" => product(&shape(1)?, &shape(2)?),
        "aten::bmm" => batched(&shape(0)?, &shape(1)?),
        "aten::baddbmm" => batched(&shape(1)?, &shape(2)?),
        "aten::add" | "aten::mul" => shape(0)?.iter().try_fold(1u64, |sum, &size| sum.checked_mul(size)),
        "aten::conv2d" => convolution(&shape(0)?, &shape(1)?, node.concrete.as_ref()?),
        _ => None,
    }
}

fn product(a: &[u64], b: &[u64]) -> Option<u64> {
    let ([m, _], [k, n]) = (a, b) else { return None };
    2u64.checked_mul(*m)?.checked_mul(*k)?.checked_mul(*n)
}

fn batched(a: &[u64], b: &[u64]) -> Option<u64> {
    let ([batch, a @ ..], [_, b @ ..]) = (a, b) else { return None };
    product(a, b)?.checked_mul(*batch)
}

fn convolution(input: &[u64], weight: &[u64], concrete: &Value) -> Option<u64> {
    let ([batch, channels, height, width], [outputs, _, rows, columns]) = (input, weight) else {
        return None;
    };
    let numbers = |i: usize| -> Option<Vec<u64>> { serde_json::from_str(concrete.get(i)?.as_str()?).ok() };
    let (stride, padding, dilation) = (numbers(3)?, numbers(4)?, numbers(5)?);
    let groups: u64 = concrete.get(6)?.as_str()?.parse().ok()?;
    let places = |size: u64, kernel: u64, i: usize| -> Option<u64> {
        let of = |list: &[u64]| list.get(i).or(list.first()).copied();
        let covered = of(&dilation)?.checked_mul(kernel.checked_sub(1)?)?.checked_add(1)?;
        let padded = size.checked_add(of(&padding)?.checked_mul(2)?)?;
        padded.checked_sub(covered)?.checked_div(of(&stride)?)?.checked_add(1)
    };
    let factors = [
        *batch,
        *channels,
        *outputs,
        *rows,
        *columns,
        places(*height, *rows, 0)?,
        places(*width, *columns, 1)?,
    ];
    factors.iter().try_fold(2u64, |sum, &factor| sum.checked_mul(factor))?.checked_div(groups)
}
