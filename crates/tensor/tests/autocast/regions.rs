//! Where autocast begins and ends, and what it keeps in between.

use super::{parameter, wave};
use cresset_tensor::autograd::{checkpoint, in_inference_mode, without_grad};
use cresset_tensor::ops::Reduction;
use cresset_tensor::{Autocast, DType, Result, Tensor, autocast, no_grad, without_autocast};

fn product(x: &Tensor) -> Result<DType> {
    Ok(x.mm(x)?.dtype())
}

#[test]
fn regions_nest_and_can_be_switched_off_inside() -> Result<()> {
    let x = wave(0.1, &[2, 2])?;
    autocast(DType::BF16, || {
        assert_eq!(product(&x)?, DType::BF16);
        autocast(DType::F16, || {
            assert_eq!(product(&x)?, DType::F16);
            assert_eq!(without_autocast(|| product(&x))?, DType::F32);
            let _off = Autocast::to(DType::BF16).enabled(false).enter()?;
            assert_eq!(product(&x)?, DType::F32);
            assert_eq!(autocast(DType::BF16, || product(&x))?, DType::BF16);
            Ok(())
        })?;
        assert_eq!(product(&x)?, DType::BF16);
        Ok(())
    })?;
    assert_eq!(product(&x)?, DType::F32);
    Ok(())
}

#[test]
fn guards_may_end_in_any_order() -> Result<()> {
    let x = wave(0.1, &[2, 2])?;
    let outer = Autocast::to(DType::BF16).enter()?;
    let inner = Autocast::to(DType::F16).enter()?;
    drop(outer);
    assert_eq!(product(&x)?, DType::F16);
    drop(inner);
    assert_eq!(product(&x)?, DType::F32);
    Ok(())
}

#[test]
fn a_region_ends_with_an_error_or_a_panic_too() -> Result<()> {
    let x = wave(0.1, &[2, 2])?;
    assert!(autocast(DType::BF16, || x.mm(&wave(0.1, &[3, 3])?)).is_err());
    assert_eq!(product(&x)?, DType::F32);
    assert!(std::panic::catch_unwind(|| autocast::<()>(DType::BF16, || panic!("on purpose"))).is_err());
    assert_eq!(product(&x)?, DType::F32);
    Ok(())
}

#[test]
fn only_half_precision_can_be_cast_to() {
    let refused = autocast(DType::F32, || Ok(())).unwrap_err().to_string();
    assert_eq!(refused, "autocast: cannot cast to f32; bf16 and f16 can be cast to");
    assert!(Autocast::to(DType::I64).enter().is_err());
    assert!(Autocast::to(DType::F32).enabled(false).enter().is_ok());
}

#[test]
fn other_threads_are_not_concerned() -> Result<()> {
    let x = wave(0.1, &[2, 2])?;
    autocast(DType::BF16, || {
        let there = std::thread::scope(|scope| scope.spawn(|| product(&x)).join());
        assert_eq!(there.expect("no panic")?, DType::F32);
        Ok(())
    })
}

#[test]
fn gradients_have_the_types_of_what_they_belong_to() -> Result<()> {
    let (x, w) = (parameter(0.1, &[2, 3])?, parameter(0.2, &[4, 3])?);
    let y = autocast(DType::BF16, || x.linear(&w, None))?;
    assert_eq!((y.dtype(), y.grad_fn()), (DType::BF16, Some("MmBackward0")));
    y.sum()?.backward()?;
    for leaf in [&x, &w] {
        assert_eq!(leaf.grad().expect("a gradient").dtype(), DType::F32);
    }
    Ok(())
}

#[test]
fn a_first_use_without_gradients_does_not_cost_a_later_one_its_own() -> Result<()> {
    let (x, w) = (wave(0.1, &[2, 3])?, parameter(0.2, &[3, 3])?);
    let y = autocast(DType::BF16, || {
        assert!(!without_grad(|| x.linear(&w, None))?.requires_grad());
        assert!(!in_inference_mode(|| x.linear(&w, None).map(|y| y.requires_grad()))?);
        x.linear(&w, None)
    })?;
    y.sum()?.backward()?;
    assert!(w.grad().is_some());
    Ok(())
}

#[test]
fn a_parameter_that_was_changed_is_cast_again() -> Result<()> {
    let (x, w) = (wave(0.1, &[2, 3])?, parameter(0.2, &[3, 3])?);
    autocast(DType::BF16, || {
        let before = x.linear(&w, None)?;
        {
            let _guard = no_grad();
            w.mul_(2)?;
        }
        let after = x.linear(&w, None)?;
        assert_eq!(after.detach()?.to_vec::<cresset_tensor::bf16>()?, before.mul(2)?.detach()?.to_vec()?);
        Ok(())
    })
}

#[test]
fn each_lower_precision_has_casts_of_its_own() -> Result<()> {
    let (x, w) = (wave(0.1, &[2, 3])?, parameter(0.2, &[3, 3])?);
    autocast(DType::BF16, || {
        assert_eq!(x.linear(&w, None)?.dtype(), DType::BF16);
        assert_eq!(autocast(DType::F16, || x.linear(&w, None))?.dtype(), DType::F16);
        Ok(())
    })
}

#[test]
fn a_checkpoint_is_computed_again_as_it_was_cast() -> Result<()> {
    let x = parameter(0.1, &[2, 3])?;
    let w = parameter(0.2, &[3, 3])?;
    let run = |again: bool| -> Result<Vec<f32>> {
        [&x, &w].into_iter().for_each(Tensor::clear_grad);
        let weight = w.clone();
        let body = move |x: &[Tensor]| x[0].linear(&weight, None)?.exp()?.linear(&weight, None)?.tanh();
        let y = autocast(DType::BF16, || {
            let y = if again { checkpoint(body, &[&x])? } else { body(std::slice::from_ref(&x))? };
            y.mse_loss(&wave(0.4, &[2, 3])?, Reduction::Mean)
        })?;
        y.backward()?;
        w.grad().expect("a gradient").to_vec::<f32>()
    };
    assert_eq!(run(false)?, run(true)?);
    Ok(())
}
