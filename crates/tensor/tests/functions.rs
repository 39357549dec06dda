//! Functions that bring their own derivative.

use cresset_tensor::autograd::{
    Context, Function, GradCheck, Pass, backward, grad, gradcheck, gradgradcheck,
};
use cresset_tensor::{Backward, Cause, Error, Grads, Result, Tensor, grads, no_grad};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

/// Sum and product of two tensors, and the sign of the product.
struct SumAndProduct;

impl Function for SumAndProduct {
    const NAME: &'static str = "SumAndProduct";
    const BACKWARD: &'static str = "SumAndProductBackward";

    fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let (sum, product) = (inputs[0].add(inputs[1])?, inputs[0].mul(inputs[1])?);
        let positive = product.gt(0.0)?.to_dtype(product.dtype())?;
        ctx.save_for_backward(inputs);
        ctx.mark_non_differentiable(&[&positive]);
        Ok(vec![sum, product, positive])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (sum, product) = (ctx.grad_of(0), ctx.grad_of(1));
        grads!(ctx; sum.add(&product.mul(ctx.saved(1))?)?, sum.add(&product.mul(ctx.saved(0))?)?)
    }
}

/// The product of two tensors, the second of which is not to be asked for its gradient.
struct FirstAlone;

impl Function for FirstAlone {
    const NAME: &'static str = "FirstAlone";
    const BACKWARD: &'static str = "FirstAloneBackward";

    fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        ctx.save_for_backward(inputs);
        Ok(vec![inputs[0].mul(inputs[1])?])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        assert!(ctx.needs(0) && !ctx.needs(1));
        grads!(ctx; ctx.grad().mul(ctx.saved(1))?, ctx.grad().mul(ctx.saved(0))?)
    }
}

#[test]
fn gradients_that_a_pass_does_not_lead_to_are_not_asked_for() {
    let (a, b) = (leaf(&[2.0]), leaf(&[5.0]));
    let product = FirstAlone.apply(&[&a, &b]).unwrap().remove(0);
    let found = grad(&[(&product, None)], &[&a], Pass::default()).unwrap();
    assert_eq!(f64s(found[0].as_ref().unwrap()), [5.0]);
    assert!(a.grad().is_none() && b.grad().is_none());
}

#[test]
fn several_outputs_have_gradients_and_marked_ones_have_none() {
    let (a, b) = (leaf(&[2.0, -3.0]), leaf(&[5.0, 7.0]));
    let outputs = SumAndProduct.apply(&[&a, &b]).unwrap();
    assert_eq!(outputs[0].grad_fn(), Some("SumAndProductBackward"));
    assert!(!outputs[2].requires_grad());
    assert_eq!(f64s(&outputs[2]), [1.0, 0.0]);
    // Nothing is computed from the sum: its gradient is zeros.
    outputs[1].sum().unwrap().backward().unwrap();
    assert_eq!((f64s(&a.grad().unwrap()), f64s(&b.grad().unwrap())), (vec![5.0, 7.0], vec![2.0, -3.0]));
    let both = |x: &[Tensor]| SumAndProduct.apply(&[&x[0], &x[1]]);
    gradcheck(both, &[&a, &b], GradCheck::default()).unwrap();
    gradgradcheck(both, &[&a, &b], GradCheck::default()).unwrap();
}

#[test]
fn nothing_is_recorded_where_nobody_wants_it() {
    let a = leaf(&[2.0]);
    let _guard = no_grad();
    let outputs = SumAndProduct.apply(&[&a, &a]).unwrap();
    assert!(outputs.iter().all(|output| !output.requires_grad()));
}

/// `e^x`, which keeps its result.
struct Exp;

impl Function for Exp {
    const NAME: &'static str = "Exp";
    const BACKWARD: &'static str = "ExpBackward";

    fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        assert_eq!((ctx.needs_input_grad(0), ctx.needs_input_grad(1)), (true, false));
        let y = inputs[0].exp()?;
        ctx.save_for_backward(&[&y]);
        Ok(vec![y])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().mul(ctx.saved(0))?, ctx.grad().clone())
    }
}

#[test]
fn a_saved_output_is_watched_like_any_other() {
    let (x, constant) = (leaf(&[1.0]), Tensor::new([1.0f64]).unwrap());
    let y = Exp.apply(&[&x, &constant]).unwrap().remove(0);
    assert!(!y.is_view());
    backward(&[(&y, None)], Pass { retain_graph: true, ..Pass::default() }).unwrap();
    y.add_(1.0).unwrap();
    let error = y.backward().unwrap_err();
    assert!(error.to_string().starts_with("ExpBackward: a tensor of shape [1] that the gradient"), "{error}");
    let second = |x: &[Tensor]| Exp.apply(&[&x[0], &constant]);
    gradgradcheck(second, &[x], GradCheck::default()).unwrap();
}

/// Its input as it is, and the gradient turned around.
struct Reverse;

impl Function for Reverse {
    const NAME: &'static str = "Reverse";
    const BACKWARD: &'static str = "ReverseBackward";

    fn forward(&self, _ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].clone()])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().neg()?)
    }
}

#[test]
fn an_input_given_back_is_a_view_that_refuses_changes() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.mul(1.0).unwrap();
    let reversed = Reverse.apply(&[&y]).unwrap().remove(0);
    assert!(reversed.is_view() && !reversed.same_as(&y));
    let error = reversed.mul_(2.0).unwrap_err();
    assert!(error.to_string().contains("an operator with a derivative of its own"), "{error}");
    backward(&[(&reversed.sum().unwrap(), None)], Pass { retain_graph: true, ..Pass::default() }).unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [-1.0, -1.0]);
    // Its place cannot be told from the layout alone, so a change of the base makes it useless.
    y.mul_(2.0).unwrap();
    assert!(reversed.sum().unwrap_err().to_string().contains("take the view again"));
}

/// A function that does what it must not.
struct Broken(&'static str);

impl Function for Broken {
    const NAME: &'static str = "Broken";
    const BACKWARD: &'static str = "BrokenBackward";

    fn forward(&self, _ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        match self.0 {
            "fails" => Err(Error::new(Cause::Argument, Self::NAME, "cannot")),
            "changes" => inputs[0].add_(1.0).and_then(|()| Ok(vec![inputs[0].copy()?])),
            _ => Ok(vec![inputs[0].copy()?]),
        }
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        match self.0 {
            "wrong shape" => grads!(ctx; Tensor::ones([5], ctx.dtype(0))?),
            _ => Ok(Grads::new()),
        }
    }
}

#[test]
fn what_a_function_does_wrong_is_an_error() {
    let x = leaf(&[1.0, 2.0]);
    let told = |how| match Broken(how).apply(&[&x.mul(1.0).unwrap()]) {
        Ok(outputs) => outputs[0].sum().unwrap().backward().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(told("fails"), "Broken: cannot");
    assert_eq!(
        told("changes"),
        "Broken: forward() changed input 0 in place, which is not recorded; change a copy"
    );
    assert_eq!(
        told("wrong shape"),
        "BrokenBackward: returned a gradient of shape [5] for an input of shape [2]"
    );
    assert_eq!(told("too few gradients"), "BrokenBackward: the derivative returned 0 gradients for 1 inputs");
}
