//! Where the time goes: a window of training steps, parts with names, tables and traces:
//! `cargo run --example 07_profiling`.

use cresset::prelude::*;
use cresset::profiler::Grouping;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    manual_seed(0);
    let model = Sequential::new().push(Linear::new(64, 128)?).push(Relu).push(Linear::new(128, 10)?);
    let mut optimizer = Sgd::new(model.parameters(), SgdOptions { lr: 0.1, ..Default::default() })?;

    // Of six steps, one is skipped, one warms up, and three are recorded.
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(1, 1, 3)?)
        .record_shapes(true)
        .profile_memory(true)
        .with_flops(true)
        .with_modules(true)
        .start()?;
    for _ in 0..6 {
        let (x, y) = record_function("make data").run(|| -> cresset::Result<_> {
            Ok((Tensor::randn([32, 64], ())?, Tensor::arange(32)?.remainder(10)?))
        })?;
        optimizer.zero_grad();
        let loss = model.call(&x)?.cross_entropy(&y)?;
        loss.backward()?;
        optimizer.step()?;
        profiler.step()?;
    }
    profiler.stop()?;

    // The events of the window are yours: names, arguments, times, memory.
    let products = profiler.events()?.filter(|event| event.name() == "aten::addmm").count();
    println!("{products} products in three steps");

    // Averages by name, or by name and shapes.
    let averages = profiler.key_averages()?;
    println!("{}", averages.table().sort_by("self_cpu_time_total")?.row_limit(8));
    let by_shape = profiler.key_averages_by(Grouping::default().by_input_shape(true))?;
    for average in by_shape.iter().filter(|average| average.key == "aten::addmm") {
        println!("{} x {:?}", average.count, average.input_shapes);
    }

    // Open the first at ui.perfetto.dev, the second in any browser.
    let folder = std::env::temp_dir().join(format!("cresset-07-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    profiler.export_chrome_trace(folder.join("steps.pt.trace.json.gz"))?;
    profiler.export_html(folder.join("steps.html"))?;
    println!("two files written");
    Ok(std::fs::remove_dir_all(folder)?)
}
