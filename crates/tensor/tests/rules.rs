//! What torch refuses and what it allows, case by case as recorded from it: ours does likewise.
//!
//! Not among them: `numpy()` of a tensor that requires grad. Ours copies, as `tolist()` does,
//! which torch allows; and a tensor of several elements has no truth value, because none has.

use cresset_tensor::autograd::{Context, Function, Pass, backward, detect_anomaly, grad, in_inference_mode};
use cresset_tensor::ops::Reduction;
use cresset_tensor::{Backward, DType, Grads, Result, Tensor, grads};

fn leaf() -> Result<Tensor> {
    Tensor::new([1.0f32, 2.0, 3.0])?.with_grad()
}

struct WrongShape;

impl Function for WrongShape {
    const NAME: &'static str = "F";
    const BACKWARD: &'static str = "FBackward";

    fn forward(&self, _ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].mul(2.0)?])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; Tensor::ones([5], DType::F32)?)
    }
}

/// The case, whether torch raised, and the same program of ours.
type Rule = (&'static str, bool, fn() -> Result<()>);

const RETAIN: Pass = Pass { retain_graph: true, create_graph: false, allow_unused: false };

const RULES: &[Rule] = &[
    ("in-place on saved output (exp)", true, || {
        let y = leaf()?.exp()?;
        y.add_(1.0)?;
        y.sum()?.backward()
    }),
    ("in-place on saved input (mul)", true, || {
        let y = leaf()?.mul(1.0)?;
        let z = y.mul(&y)?;
        y.add_(1.0)?;
        z.sum()?.backward()
    }),
    ("in-place on a view of a saved input", true, || {
        let y = leaf()?.mul(1.0)?;
        let z = y.mul(&y)?;
        y.as_strided(&[1], &[1], 0)?.add_(1.0)?;
        z.sum()?.backward()
    }),
    ("in-place on input of add (not saved): allowed", false, || {
        let y = leaf()?.mul(1.0)?;
        let z = y.add(1.0)?;
        y.add_(1.0)?;
        z.sum()?.backward()
    }),
    ("backward twice", true, || {
        let y = leaf()?.exp()?.sum()?;
        y.backward()?;
        y.backward()
    }),
    ("backward twice with retain_graph: allowed", false, || {
        let y = leaf()?.exp()?.sum()?;
        backward(&[(&y, None)], RETAIN)?;
        y.backward()
    }),
    ("backward of non-scalar", true, || leaf()?.mul(2.0)?.backward()),
    ("in-place on a leaf that requires grad", true, || leaf()?.add_(1.0)),
    ("requires_grad on int tensor", true, || Tensor::new([1i64])?.with_grad().map(drop)),
    ("expand sums gradients: allowed", false, || {
        let x = Tensor::new([1.0f32])?.with_grad()?;
        x.expand([3])?.sum()?.backward()?;
        assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [3.0]);
        Ok(())
    }),
    ("in-place on expanded tensor", true, || Tensor::new([1.0f32])?.expand([3])?.add_(1.0)),
    ("backward gradient shape mismatch", true, || {
        leaf()?.mul(2.0)?.backward_with(&Tensor::ones([2], DType::F32)?)
    }),
    ("backward gradient dtype mismatch", false, || {
        leaf()?.mul(2.0)?.backward_with(&Tensor::ones([3], DType::F64)?)
    }),
    ("autograd.grad of unused input", true, || {
        grad(&[(&leaf()?.sum()?, None)], &[&leaf()?], Pass::default()).map(drop)
    }),
    ("inference tensor saved for backward", true, || {
        let made = in_inference_mode(|| Tensor::ones([3], DType::F32))?;
        leaf()?.mul(&made).map(drop)
    }),
    ("detect_anomaly: NaN gradient", true, || {
        let _guard = detect_anomaly();
        Tensor::new([-1.0f32])?.with_grad()?.sqrt()?.backward()
    }),
    ("custom backward returns wrong shape", true, || {
        let x = Tensor::new([1.0f32, 2.0])?.with_grad()?;
        WrongShape.apply(&[&x])?[0].sum()?.backward()
    }),
    ("chain of 100k nodes, backward and drop: allowed", false, || {
        let mut y = Tensor::new(1.0f32)?.with_grad()?;
        for _ in 0..100_000 {
            y = y.add(0.0)?;
        }
        y.backward()
    }),
    ("shape mismatch add", true, || Tensor::ones([2, 3], ())?.add(&Tensor::ones([2, 4], ())?).map(drop)),
    ("shape mismatch bmm", true, || {
        Tensor::ones([2, 3, 4], ())?.bmm(&Tensor::ones([3, 4, 5], ())?).map(drop)
    }),
    ("dtype mismatch matmul", true, || {
        Tensor::ones([2, 2], DType::F32)?.matmul(&Tensor::ones([2, 2], DType::F64)?).map(drop)
    }),
    ("dim out of range", true, || leaf()?.sum_dims(&[3], false).map(drop)),
    ("index out of range", true, || Tensor::ones([2], ())?.index_select(0, &Tensor::new([5i64])?).map(drop)),
    ("embedding index out of range", true, || {
        Tensor::ones([3, 2], ())?.embedding(&Tensor::new([5i64])?, None).map(drop)
    }),
    ("view of transposed", true, || Tensor::ones([2, 3], ())?.t()?.view([6]).map(drop)),
    ("numel overflow", true, || Tensor::empty([1 << 40, 1 << 40], ()).map(drop)),
    ("alloc too big", true, || Tensor::empty([1 << 46], DType::F32).map(drop)),
    ("max of empty", true, || Tensor::empty([0], ())?.max().map(drop)),
    ("nll target out of range", true, || {
        Tensor::ones([1, 3], ())?.nll_loss(&Tensor::new([7i64])?, None, Reduction::Mean).map(drop)
    }),
    ("item of 2 elements", true, || Tensor::ones([2], ())?.item().map(drop)),
];

#[test]
fn torch_and_ours_refuse_the_same_programs() {
    for (case, raised, program) in RULES {
        let result = program();
        assert_eq!(result.is_err(), *raised, "{case}: {result:?}");
    }
}
