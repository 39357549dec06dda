//! The program of the README: one training step under the profiler.

use cresset::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Sequential::new().push(Linear::new(64, 32)?).push(Relu).push(Linear::new(32, 10)?);
    let mut optimizer = Sgd::new(model.parameters(), SgdOptions { lr: 0.1, ..Default::default() })?;
    let (x, y) = (Tensor::randn([8, 64], ())?, Tensor::arange(8)?);
    let mut profiler = Profiler::builder().record_shapes(true).start()?;
    model.call(&x)?.cross_entropy(&y)?.backward()?;
    optimizer.step()?;
    profiler.stop()?;
    println!("{}", profiler.key_averages()?.table());
    Ok(profiler.export_chrome_trace("trace.json")?)
}
