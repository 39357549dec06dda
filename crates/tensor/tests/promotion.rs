//! Which element type comes out of two operands, beside what torch 2.15 gave.

use cresset_tensor::{DType, Operand, Result, Scalar, Tensor};

/// A row per pair of operands, a column per operator: the result's type, `!` for an error, `?` where
/// nothing was recorded. Operands are tensors of shape `[2]` or `[]`, or numbers of Python.
const RECORDED: &str = include_str!("../../../tests/golden/misc/promotion.txt");

/// An operand; ones, so that integers can be divided.
enum One {
    Tensor(Tensor),
    Number(Scalar),
}

impl One {
    fn parse(text: &str) -> One {
        match text.split_once('[') {
            Some((name, rest)) => {
                let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name).unwrap();
                let shape: &[usize] = if rest == "2]" { &[2] } else { &[] };
                One::Tensor(Tensor::ones(shape, dtype).unwrap())
            }
            None => One::Number(match text {
                "pyfloat" => Scalar::Float(1.0),
                "pyint" => Scalar::Int(1),
                _ => Scalar::Bool(true),
            }),
        }
    }

    fn operand(&self) -> Operand<'_> {
        match self {
            One::Tensor(tensor) => Operand::Tensor(tensor),
            One::Number(number) => Operand::Scalar(*number),
        }
    }
}

fn call(op: &str, a: &Tensor, b: Operand<'_>) -> Result<DType> {
    let result = match op {
        "result_type" => return Ok(a.result_type(b)),
        "add" => a.add(b),
        "mul" => a.mul(b),
        "sub" => a.sub(b),
        "div" => a.div(b),
        "floor_divide" => a.floor_divide(b),
        "remainder" => a.remainder(b),
        "pow" => a.pow(b),
        "eq" => a.eq(b),
        "maximum" => a.maximum(b),
        "bitwise_and" => a.bitwise_and(b),
        "atan2" => a.atan2(b),
        "logical_and" => a.logical_and(b),
        other => panic!("no operator {other}"),
    };
    result.map(|result| result.dtype())
}

#[test]
fn operands_meet_at_the_type_that_torch_gives_them() {
    let mut lines = RECORDED.lines();
    let ops: Vec<&str> = lines.next().unwrap().split(' ').skip(2).collect();
    for line in lines {
        let mut cells = line.split(' ');
        let (a, b) = (One::parse(cells.next().unwrap()), One::parse(cells.next().unwrap()));
        let One::Tensor(a) = &a else { panic!("{line}: the first operand is a number") };
        for (op, wanted) in ops.iter().zip(cells).filter(|(_, wanted)| *wanted != "?") {
            let got = call(op, a, b.operand());
            let got = got.as_ref().map_or("!", |dtype| dtype.name());
            assert_eq!(got, wanted, "{op} in {line:?}");
        }
    }
}
