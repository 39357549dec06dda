//! Derivatives of functions, and the check of derivatives against differences.

use cresset_tensor::autograd::{
    Context, Function, GradCheck, gradcheck, gradgradcheck, hessian, hvp, jacobian, jvp, vhp, vjp,
};
use cresset_tensor::{Backward, Cause, Grads, Result, Tensor, grads};

fn tensor(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

/// Two outputs of two inputs: `x * y` and the sum of `x^2`.
fn pair(x: &[Tensor]) -> Result<[Tensor; 2]> {
    Ok([x[0].mul(&x[1])?, x[0].mul(&x[0])?.sum()?])
}

fn cubes(x: &[Tensor]) -> Result<Tensor> {
    x[0].pow(3.0)?.mul(&x[1])?.sum()
}

#[test]
fn a_jacobian_has_a_tensor_per_output_and_input() {
    let (x, y) = (tensor(&[2.0, 3.0]), tensor(&[5.0, 7.0]));
    let slopes = jacobian(pair, &[x, y], false).unwrap();
    assert_eq!(slopes[0][0].shape(), [2, 2]);
    assert_eq!(f64s(&slopes[0][0]), [5.0, 0.0, 0.0, 7.0]);
    assert_eq!(f64s(&slopes[0][1]), [2.0, 0.0, 0.0, 3.0]);
    assert_eq!((slopes[1][0].shape(), f64s(&slopes[1][0])), (&[2][..], vec![4.0, 6.0]));
    assert_eq!(f64s(&slopes[1][1]), [0.0, 0.0]);
    assert!(slopes.iter().flatten().all(|slope| !slope.requires_grad()));
}

#[test]
fn a_recorded_jacobian_has_gradients_itself() {
    let x = tensor(&[2.0, 3.0]).with_grad().unwrap();
    let slopes = jacobian(|x| x[0].pow(3.0), &[&x], true).unwrap().remove(0).remove(0);
    slopes.sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [12.0, 18.0]);
}

#[test]
fn a_hessian_has_a_tensor_per_pair_of_inputs() {
    let (x, y) = (tensor(&[2.0, 3.0]), tensor(&[5.0, 7.0]));
    let second = hessian(cubes, &[&x, &y], false).unwrap();
    assert_eq!(f64s(&second[0][0]), [60.0, 0.0, 0.0, 126.0]);
    assert_eq!(f64s(&second[0][1]), [12.0, 0.0, 0.0, 27.0]);
    assert_eq!(f64s(&second[1][1]), [0.0; 4]);
    let error = hessian(|x| x[0].exp(), &[x, y], false).unwrap_err();
    assert_eq!(error.to_string(), "hessian: the function gave shape [2], not a single number");
}

#[test]
fn products_with_slopes_need_not_build_them() {
    let inputs = [tensor(&[2.0, 3.0]), tensor(&[5.0, 7.0])];
    let sent = [tensor(&[1.0, 10.0]), Tensor::new(100.0f64).unwrap()];
    let (outputs, back) = vjp(pair, &inputs, &sent, false).unwrap();
    assert_eq!((f64s(&outputs[0]), f64s(&outputs[1])), (vec![10.0, 21.0], vec![13.0]));
    assert_eq!((f64s(&back[0]), f64s(&back[1])), (vec![405.0, 670.0], vec![2.0, 30.0]));
    let along = [tensor(&[1.0, 10.0]), tensor(&[0.0, 1.0])];
    let (outputs, changes) = jvp(pair, &inputs, &along, false).unwrap();
    assert!(!outputs[0].requires_grad());
    assert_eq!((f64s(&changes[0]), f64s(&changes[1])), (vec![5.0, 73.0], vec![64.0]));
    let error = jvp(pair, &inputs, &along[..1], false).unwrap_err();
    assert_eq!(error.to_string(), "jvp: 1 vectors, expected one for each input: 2");
    assert_eq!(vjp(pair, &inputs, &along, false).unwrap_err().cause(), Cause::Shape);
}

#[test]
fn products_with_second_slopes_agree_from_both_sides() {
    let inputs = [tensor(&[2.0, 3.0]), tensor(&[5.0, 7.0])];
    let along = [tensor(&[1.0, 2.0]), tensor(&[3.0, 4.0])];
    for product in [hvp, vhp] {
        let (value, products) = product(cubes, &inputs, &along, false).unwrap();
        assert_eq!(f64s(&value), [229.0]);
        assert_eq!((f64s(&products[0]), f64s(&products[1])), (vec![96.0, 360.0], vec![12.0, 54.0]));
    }
}

/// `x^2` with a derivative that is right for some elements only.
struct Wrong;

impl Function for Wrong {
    const NAME: &'static str = "Wrong";
    const BACKWARD: &'static str = "WrongBackward";

    fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        ctx.save_for_backward(inputs);
        Ok(vec![inputs[0].mul(inputs[0])?])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().mul(ctx.saved(0))?.mul(&tensor(&[2.0, 2.0, 3.0]))?)
    }
}

#[test]
fn a_wrong_derivative_is_told_by_output_input_and_element() {
    let x = tensor(&[1.0, 1.0, 1.0]).with_grad().unwrap();
    let f = |x: &[Tensor]| Ok([x[1].exp()?, Wrong.apply(&[&x[0]])?.remove(0)]);
    let inputs = [x.clone(), tensor(&[1.0]).with_grad().unwrap()];
    let error = gradcheck(f, &inputs, GradCheck::default()).unwrap_err();
    assert_eq!(error.cause(), Cause::Anomaly);
    let text = error.to_string();
    assert!(
        text.starts_with("gradcheck: the slope of output 1 at element 2 by input 0 at element 2 is 3 by the graph, and 2.0")
            || text.starts_with("gradcheck: the slope of output 1 at element 2 by input 0 at element 2 is 3 by the graph, and 1.99"),
        "{text}"
    );
    let error = gradgradcheck(f, &inputs, GradCheck::default());
    assert!(error.is_ok(), "its second gradient is that of the first one it has");
    let none = gradcheck(|x| x[0].exp(), &[tensor(&[1.0])], GradCheck::default()).unwrap_err();
    assert_eq!(none.to_string(), "gradcheck: none of the inputs requires grad");
}

#[test]
fn a_constant_with_a_slope_is_noticed() {
    let x = tensor(&[1.0]).with_grad().unwrap();
    let error = gradcheck(|x| x[0].detach()?.exp(), &[&x], GradCheck::default()).unwrap_err();
    assert!(error.to_string().contains("is 0 by the graph, and 2.7"), "{error}");
    gradcheck(|x| x[0].detach()?.mul(0.0), &[x], GradCheck::default()).unwrap();
}
