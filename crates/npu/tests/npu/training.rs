//! A whole training step: forward, backward and update equal the host's.

use crate::support::{assert_close, npu, numbers};
use cresset_tensor::{Device, Result, Tensor, no_grad};

/// Two layers, three steps of gradient descent; the losses and the parameters after.
fn train(device: Device) -> Result<Vec<Tensor>> {
    let leaf = |shape: &[usize], seed| numbers(shape, seed).to(device)?.with_grad();
    let parameters = [leaf(&[16, 8], 1)?, leaf(&[16], 2)?, leaf(&[4, 16], 3)?, leaf(&[4], 4)?];
    let input = numbers(&[10, 8], 5).to(device)?;
    let target = Tensor::new([0i64, 1, 2, 3, 0, 1, 2, 3, 0, 1])?.to(device)?;
    let mut results = Vec::new();
    for _ in 0..3 {
        let [w1, b1, w2, b2] = &parameters;
        let hidden = input.linear(w1, Some(b1))?.relu()?;
        let loss = hidden.linear(w2, Some(b2))?.cross_entropy(&target)?;
        loss.backward()?;
        let _quiet = no_grad();
        for parameter in &parameters {
            let gradient = parameter.grad().expect("backward gives every leaf its gradient");
            parameter.add_scaled_(&gradient, -0.1)?;
            parameter.clear_grad();
        }
        results.push(loss.detach()?);
    }
    results.extend(parameters.iter().map(Tensor::detach).collect::<Result<Vec<_>>>()?);
    Ok(results)
}

#[test]
fn a_network_trains_as_on_the_host() {
    let (there, here) = (train(npu()).unwrap(), train(Device::CPU).unwrap());
    for (i, (there, here)) in there.iter().zip(&here).enumerate() {
        assert_close(&format!("result {i}"), there, here, 1e-6);
    }
}
