//! Writes the traces that other people's readers are tried with, and beside each what our own
//! table says of it: `cargo run --release --example reader_traces DIRECTORY`.

use cresset::prelude::*;
use cresset::profiler::{Averages, Trace};
use serde_json::{Value, json};
use std::error::Error;
use std::path::PathBuf;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Run = fn() -> Outcome<Profiler>;

fn main() -> Outcome {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: reader_traces DIRECTORY")?);
    std::fs::create_dir_all(&directory)?;
    let traces: [(&str, Run); 6] = [
        ("tiny", tiny_operators),
        ("mlp", mlp_with_all_flags),
        ("attention", attention_with_schedule),
        ("threads", four_threads),
        ("million", million_events),
        ("row", million_events_in_a_row),
    ];
    for (name, run) in traces {
        let mut profiler = run()?;
        profiler.stop()?;
        let trace: &Trace = profiler.trace()?;
        trace.export_chrome_trace(directory.join(format!("{name}.pt.trace.json")))?;
        trace.export_speedscope(directory.join(format!("{name}.speedscope.json")))?;
        if trace.events().any(|event| event.stack().is_some_and(|frames| !frames.is_empty())) {
            trace.export_stacks(directory.join(format!("{name}.stacks.txt")), "self_cpu_time_total")?;
        }
        if trace.events().count() < 100_000 {
            trace.export_html(directory.join(format!("{name}.html")))?;
        }
        let averages = serde_json::to_string_pretty(&rows(&profiler.key_averages()?))?;
        std::fs::write(directory.join(format!("{name}.averages.json")), averages)?;
        println!("{name}: {} events", trace.events().count());
    }
    Ok(())
}

/// The rows of the table, times in microseconds as readers have them.
fn rows(averages: &Averages) -> Value {
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    let row = |row: &cresset::profiler::Row| {
        json!({
            "name": row.key,
            "calls": row.count,
            "total": microseconds(row.cpu_time_total),
            "self": microseconds(row.self_cpu_time_total),
            "memory": row.self_cpu_memory_usage,
            "annotation": row.is_user_annotation,
        })
    };
    averages.iter().map(row).collect()
}

fn tiny_operators() -> Outcome<Profiler> {
    let profiler = Profiler::builder().start()?;
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.with_grad()?;
    for _ in 0..50 {
        (&x * &x)?.sum()?.backward()?;
    }
    Ok(profiler)
}

fn mlp_with_all_flags() -> Outcome<Profiler> {
    let model = Sequential::new().push(Linear::new(64, 32)?).push(Relu).push(Linear::new(32, 10)?);
    let options = SgdOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
    let mut optimizer = Sgd::new(model.parameters(), options)?;
    let (x, y) = (Tensor::randn([8, 64], ())?, Tensor::arange(8)?);
    let mut profiler = Profiler::builder()
        .record_shapes(true)
        .profile_memory(true)
        .with_stack(true)
        .with_flops(true)
        .with_modules(true)
        .schedule(Schedule::new(1, 1, 3)?.repeat(1))
        .start()?;
    for _ in 0..5 {
        optimizer.zero_grad();
        let scores = record_function("forward").run(|| model.call(&x))?;
        scores.cross_entropy(&y)?.backward()?;
        optimizer.step()?;
        profiler.step()?;
    }
    Ok(profiler)
}

fn attention_with_schedule() -> Outcome<Profiler> {
    let width = 32;
    let weight = || Tensor::randn([width, width], ())?.with_grad();
    let weights = (0..6).map(|_| weight()).collect::<Result<Vec<_>, _>>()?;
    let mut optimizer = Adam::new(weights.clone(), AdamOptions::default())?;
    let x = Tensor::randn([32, width], ())?;
    let schedule = Schedule::new(1, 1, 2)?.repeat(2);
    let mut profiler =
        Profiler::builder().record_shapes(true).profile_memory(true).schedule(schedule).start()?;
    for _ in 0..8 {
        optimizer.zero_grad();
        let mut hidden = x.clone();
        for pair in weights.chunks(2) {
            let heads = hidden.matmul(&pair[0])?.reshape([2, 16, 4, 8])?.transpose(1, 2)?;
            let mixed = heads.scaled_dot_product_attention(&heads, &heads, Default::default())?;
            hidden = mixed.transpose(1, 2)?.reshape([32, width])?.matmul(&pair[1])?.relu()?;
        }
        hidden.mean()?.backward()?;
        optimizer.step()?;
        profiler.step()?;
    }
    Ok(profiler)
}

fn four_threads() -> Outcome<Profiler> {
    let profiler = Profiler::builder().profile_memory(true).start()?;
    on_threads(4, || {
        let x = Tensor::new([1.0f32; 64])?.with_grad()?;
        (0..100).try_for_each(|_| record_function("batch").run(|| (&x * &x)?.sum()?.backward()))
    })?;
    Ok(profiler)
}

/// As a run has them: on several threads, in scopes.
fn million_events() -> Outcome<Profiler> {
    let profiler = Profiler::builder().start()?;
    on_threads(16, || {
        let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
        let batch = || (0..500).try_for_each(|_| x.add(&x).map(drop));
        (0..125).try_for_each(|_| record_function("batch").run(batch))
    })?;
    Ok(profiler)
}

/// The same, all side by side on one thread.
fn million_events_in_a_row() -> Outcome<Profiler> {
    let profiler = Profiler::builder().start()?;
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    for _ in 0..1_000_000 {
        x.add(&x)?;
    }
    Ok(profiler)
}

fn on_threads(count: usize, work: impl Fn() -> cresset::Result<()> + Sync) -> Outcome {
    std::thread::scope(|scope| {
        let spawn = |i| std::thread::Builder::new().name(format!("worker {i}")).spawn_scoped(scope, &work);
        let workers = (0..count).map(spawn).collect::<Result<Vec<_>, _>>()?;
        workers.into_iter().try_for_each(|worker| Ok(worker.join().map_err(|_| "a worker panicked")??))
    })
}
