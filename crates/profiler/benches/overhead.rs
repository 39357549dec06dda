//! What recording costs per call, and what the profiler costs when it is off.
//!
//! Other programs share the machine, so all configurations take turns in short rounds, and
//! the least of each counts: figures that are subtracted from each other saw the same noise.

use cresset_dispatch::memory::{self, Report};
use cresset_dispatch::observe::{self, Argument, Call, Name, TensorArgument};
use cresset_dispatch::{Device, thread};
use cresset_profiler::{Builder, Profiler, StackSource, record_function, stack_source};
use std::hint::black_box;
use std::time::Instant;

const CALLS: u32 = 10_000;
const ROUNDS: u32 = 60;

/// `aten::add(Tensor self, Tensor other, *, Scalar alpha)` of two small matrices.
struct Add;

impl Call for Add {
    fn name(&self) -> Name<'_> {
        Name::Static("aten::add")
    }

    fn device(&self) -> Option<Device> {
        Some(Device::CPU)
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let tensor = TensorArgument { shape: &[2, 2], strides: &[2, 1], dtype: "f32", source: None };
        visit(Argument::Tensor(tensor));
        visit(Argument::Tensor(tensor));
        visit(Argument::Int(1));
    }

    fn flops(&self) -> u64 {
        4
    }
}

fn nothing() {
    black_box(&Add);
}

fn call() {
    let _span = observe::span(black_box(&Add));
}

fn call_with_memory() {
    let _span = observe::span(black_box(&Add));
    memory::report(|| Report { device: Device::CPU, address: 64, bytes: 16, allocated: 16, reserved: 0 });
    memory::report(|| Report { device: Device::CPU, address: 64, bytes: -16, allocated: 0, reserved: 0 });
}

/// A call with 32 frames of this program above it.
fn deep_call() {
    #[inline(never)]
    fn deeper(levels: u32) {
        if levels == 0 {
            call()
        } else {
            deeper(black_box(levels - 1))
        }
        black_box(());
    }
    deeper(31);
}

fn scope() {
    let _scope = record_function(black_box("forward"));
}

/// What to switch on; nothing if `None`.
type Setting = Option<fn() -> Builder>;

/// A setting, what to do in it, and the least time it took per call.
struct Case {
    builder: Setting,
    body: fn(),
    nanos: f64,
}

impl Case {
    fn round(&mut self) {
        let profiler = self.builder.map(|builder| builder().start().expect("a session starts"));
        let start = Instant::now();
        (0..CALLS).for_each(|_| (self.body)());
        self.nanos = self.nanos.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
        drop(profiler);
    }
}

fn measure<const N: usize>(cases: [(Setting, fn()); N]) -> [f64; N] {
    let mut cases = cases.map(|(builder, body)| Case { builder, body, nanos: f64::INFINITY });
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::round);
    }
    cases.map(|case| case.nanos)
}

fn main() {
    thread::number();
    let [direct, off, scope_off, on, scope_on, shapes, flops, memory, one_thread, deep, stacks] = measure([
        (None, nothing),
        (None, call),
        (None, scope),
        (Some(Profiler::builder), call),
        (Some(Profiler::builder), scope),
        (Some(|| Profiler::builder().record_shapes(true)), call),
        (Some(|| Profiler::builder().record_shapes(true).with_flops(true)), call),
        (Some(|| Profiler::builder().profile_memory(true)), call_with_memory),
        (Some(|| Profiler::builder().all_threads(false)), call),
        (Some(Profiler::builder), deep_call),
        (Some(|| Profiler::builder().with_stack(true)), deep_call),
    ]);
    let row = |what: &str, nanos: f64, bar: f64| {
        let verdict = if nanos <= bar { "" } else { "  over" };
        println!("{what:<28}{nanos:>8.1} ns{bar:>8.0} ns{:>9.2}{verdict}", nanos / bar);
    };
    println!("{:<28}{:>11}{:>11}{:>9}", "added per call", "measured", "bar", "ratio");
    row("operator, off", off - direct, 2.0);
    row("record_function, off", scope_off - direct, 3.0);
    row("operator", on - direct, 60.0);
    row("operator, this thread only", one_thread - direct, 60.0);
    row("record_function", scope_on - direct, 80.0);
    row("shapes, on top", shapes - on, 40.0);
    row("shapes and flops, on top", flops - on, 40.0);
    row("one report, on top", (memory - on) / 2.0, 40.0);
    row("two reports, on top", memory - on, 40.0);
    match stack_source() {
        StackSource::FramePointers => row("stacks by frame pointers", stacks - deep, 200.0),
        StackSource::Unwinder => row("stacks by the unwinder", stacks - deep, 8000.0),
    }
    after_the_run();
}

/// A million events from stop to file.
fn after_the_run() {
    let mut profiler = Profiler::builder().start().expect("a session starts");
    let (start, processor) = (Instant::now(), processor_nanos());
    (0..1_000_000).for_each(|_| call());
    let cold = (processor_nanos() - processor) as f64 / 1e6;
    let wall = start.elapsed().as_nanos() as f64 / 1e6;
    let time = |what: &str, body: &mut dyn FnMut()| {
        let start = Instant::now();
        body();
        println!("{what:<28}{:>8.0} ms", start.elapsed().as_secs_f64() * 1e3);
    };
    println!("\n1 000 000 events");
    // The rounds above find memory that was used before; here most is new to the process.
    println!(
        "{:<28}{cold:>8.1} ns per call in new memory, on average ({wall:.1} by the wall clock)",
        "recording"
    );
    time("stop", &mut || profiler.stop().expect("it stops"));
    time("key_averages", &mut || drop(black_box(profiler.key_averages().expect("there are events"))));
    let directory = std::env::temp_dir();
    for name in ["cresset-overhead.json", "cresset-overhead.json.gz"] {
        let path = directory.join(name);
        time(name, &mut || profiler.export_chrome_trace(&path).expect("it is written"));
        let size = std::fs::metadata(&path).map_or(0, |file| file.len());
        println!("{:<28}{:>8} MB", "", size / 1_000_000);
        std::fs::remove_file(&path).expect("it was written");
    }
    println!("{:<28}{:>8} MB", "peak memory", peak_megabytes());
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1000
}

/// Time this thread had a processor, which other programs on the machine do not add to.
fn processor_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}
