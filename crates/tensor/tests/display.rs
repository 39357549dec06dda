//! How tensors print, beside what torch printed.

use cresset_tensor::{DType, Device, Tensor};
use serde_json::Value;

const RECORDED: &str = include_str!("../../../tests/golden/misc/display.json");

fn dtype(name: &str) -> DType {
    DType::ALL.into_iter().find(|dtype| dtype.name() == name).unwrap()
}

/// The tensor that was printed. Values beyond JSON are written as words.
fn tensor(case: &Value) -> Tensor {
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap());
    let values: Vec<f64> = case["values"].as_array().unwrap().iter().map(number).collect();
    let shape: Vec<usize> =
        case["shape"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect();
    let x =
        Tensor::from_slice(&values, shape).unwrap().to_dtype(dtype(case["dtype"].as_str().unwrap())).unwrap();
    match (case["rg"].as_bool().unwrap(), case["name"] == "grad_fn") {
        (true, true) => x.div(2.0).unwrap().with_grad().unwrap().mul(2.0).unwrap(),
        (true, false) => x.with_grad().unwrap(),
        (false, _) => x,
    }
}

#[test]
fn tensors_print_as_in_torch() {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let x = tensor(case);
        assert_eq!(x.to_string(), case["str"].as_str().unwrap(), "{}", case["name"]);
        assert_eq!(format!("{x:?}"), case["repr"].as_str().unwrap(), "{}", case["name"]);
    }
}

#[test]
fn long_rows_and_many_rows_show_their_ends() {
    let x = Tensor::arange(3000).unwrap().view([3, 1000]).unwrap();
    let text = "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n        \
                [1000, 1001, 1002,  ..., 1997, 1998, 1999],\n        \
                [2000, 2001, 2002,  ..., 2997, 2998, 2999]])";
    assert_eq!(x.to_string(), text);
    let x = Tensor::zeros([1000, 2], ()).unwrap();
    let text = "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n        \
                [0., 0.],\n        [0., 0.],\n        [0., 0.]])";
    assert_eq!(x.to_string(), text);
}

#[test]
fn long_lines_break_below_the_first_number() {
    let x = Tensor::arange(30).unwrap();
    let text = "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n        \
                18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])";
    assert_eq!(x.to_string(), text);
}

#[test]
fn tensors_without_elements_tell_their_size() {
    let x = Tensor::empty([2, 3], Device::META).unwrap();
    assert_eq!(x.to_string(), "tensor(..., device='meta', size=(2, 3))");
    let x = Tensor::empty([4], (DType::I64, Device::META)).unwrap();
    assert_eq!(x.to_string(), "tensor(..., device='meta', size=(4,), dtype=torch.int64)");
    assert_eq!(Tensor::zeros([0], ()).unwrap().to_string(), "tensor([])");
}

#[test]
fn what_does_not_fit_behind_the_numbers_goes_below() {
    let x = Tensor::full([8], 0.25, DType::F16).unwrap();
    let numbers = ["0.2500"; 8].join(", ");
    assert_eq!(x.to_string(), format!("tensor([{numbers}],\n       dtype=torch.float16)"));
}
