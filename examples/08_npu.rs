//! An Ascend NPU, or the simulated device that stands in for one: `cargo run --example 08_npu`.

use cresset::npu::{self, Event, Stream};
use cresset::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let npu = device("npu")?;
    println!(
        "{} device(s), simulated: {}",
        npu::device_count(),
        npu::info().is_ok_and(|info| info.is_embedded)
    );

    // The same program, another device.
    let x = Tensor::ones([256, 256], npu)?;
    let y = x.matmul(&x)?.mean()?;
    println!("{y}");

    // Tensors of two devices do not meet by themselves.
    println!("{}", x.add(&Tensor::ones([256, 256], ())?).unwrap_err());

    // Work is queued; streams are queues that run beside one another, events points in them.
    let (start, end) = (Event::new(npu)?, Event::new(npu)?);
    let side = Stream::new(npu)?;
    side.wait_for(&Stream::current(npu)?)?;
    let z = {
        let _on_side = side.enter();
        start.record(&side)?;
        let z = x.matmul(&x)?;
        end.record(&side)?;
        z
    };
    Stream::current(npu)?.wait_for(&side)?;
    println!("{}", z.sum()?);
    end.synchronize()?;
    println!("took some time: {}", !start.elapsed(&end)?.is_zero());

    // Memory is kept for the next tensor of its size, and counted as torch counts it.
    println!("{} KiB in use", npu::memory_allocated(npu) >> 10);
    drop((x, z));
    println!("{} KiB in use", npu::memory_allocated(npu) >> 10);
    npu::empty_cache(npu)?;

    // A profile has the device's side too.
    let w = Tensor::randn([64, 64], npu)?;
    let mut profiler = Profiler::builder().start()?;
    w.matmul(&w)?.relu()?;
    npu::synchronize(npu)?;
    profiler.stop()?;
    for average in profiler.key_averages()?.iter().filter(|average| average.key.starts_with("aten::")) {
        println!("{} ran on the device: {}", average.key, average.device_time_total > 0);
    }
    Ok(())
}
