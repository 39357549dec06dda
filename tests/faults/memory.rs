//! Host memory that ends: at every point of a step, and for requests beyond all memory.

use super::alone;
use cresset::prelude::*;
use cresset::tensor::{Cause, host_bytes_allocated, limit_host_bytes};

/// A step of training from the start; its loss.
fn train() -> cresset::Result<u32> {
    manual_seed(3);
    let model = Sequential::new().push(Linear::new(64, 96)?).push(Tanh).push(Linear::new(96, 32)?);
    let mut optimizer = AdamW::new(model.parameters(), AdamWOptions::default())?;
    let x = Tensor::randn([48, 64], ())?;
    let y = Tensor::randint(0, 32, [48], DType::I64)?;
    for _ in 0..2 {
        optimizer.zero_grad();
        model.call(&x)?.cross_entropy(&y)?.backward()?;
        optimizer.step()?;
    }
    Ok((model.call(&x)?.cross_entropy(&y)?.item()?.as_f64() as f32).to_bits())
}

#[test]
fn a_step_that_runs_out_of_host_memory_anywhere_is_an_error_and_can_be_taken_again() {
    let name = "memory::a_step_that_runs_out_of_host_memory_anywhere_is_an_error_and_can_be_taken_again";
    alone(name, &[], || {
        let expected = train().unwrap();
        let held = host_bytes_allocated();
        let mut refused = 0;
        for limit in (held..).step_by(2048) {
            limit_host_bytes(limit);
            let outcome = train();
            limit_host_bytes(u64::MAX);
            match outcome {
                Ok(loss) => {
                    assert_eq!(loss, expected);
                    break;
                }
                Err(error) => assert_eq!(error.cause(), Cause::Memory, "{error}"),
            }
            refused += 1;
            assert_eq!(host_bytes_allocated(), held, "what a failed step had is given back");
            assert_eq!(train().unwrap(), expected);
        }
        assert!(refused > 20, "only {refused} limits were too low");
    });
}

#[test]
fn requests_beyond_all_memory_are_errors_that_say_how_much() {
    for shape in [vec![1 << 40, 1 << 40], vec![1 << 45], vec![usize::MAX], vec![1 << 32, 1 << 32, 0, 1 << 32]]
    {
        let outcomes = [
            ("zeros", Tensor::zeros(&shape[..], ())),
            ("ones", Tensor::ones(&shape[..], DType::F64)),
            ("randn", Tensor::randn(&shape[..], ())),
        ];
        for (name, outcome) in outcomes {
            match outcome {
                Ok(tensor) => assert_eq!(tensor.numel(), 0, "{name} of {shape:?}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("bytes") || text.contains("elements"), "{name}: {text}");
                }
            }
        }
    }
    assert_eq!(Tensor::ones([2], ()).unwrap().to_vec::<f32>().unwrap(), [1.0; 2], "the process lives");
}
