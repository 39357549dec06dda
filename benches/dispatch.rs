//! What the path to a kernel costs: over calling it directly, and with the profiler on.
//!
//! `cargo bench --bench dispatch`. All figures come from one run, interleaved, the fastest of
//! many batches each, so that differences mean something on a busy machine.

use cresset::dispatch::observe::{self, Call, Kind, Name};
use cresset::prelude::*;
use cresset::tensor::ops::Add;
use cresset::tensor::{Forward, Op, Operand, Result, Scalar};
use std::hint::black_box;
use std::time::Instant;

/// An operator that does no work, so that only the path to it is left.
#[derive(Clone)]
struct Identity;

impl Op for Identity {
    const NAME: &'static str = "bench::identity";
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;
}

impl Forward for Identity {
    #[inline(never)]
    fn forward(&self, [x, _]: [&Tensor; 2]) -> Result<Tensor> {
        Ok(x.clone())
    }
}

/// A range that a program names.
struct Scope;

impl Call for Scope {
    fn name(&self) -> Name<'_> {
        Name::Static("scope")
    }

    fn kind(&self) -> Kind {
        Kind::Scope
    }
}

const ROUNDS: usize = 60;
const CALLS: u32 = 2_000;

/// Nanoseconds per call of each, the fastest batch of interleaved rounds.
fn fastest<const N: usize>(calls: [&dyn Fn(); N]) -> [f64; N] {
    let mut best = [f64::MAX; N];
    for _ in 0..ROUNDS {
        for (best, call) in best.iter_mut().zip(calls) {
            let begun = Instant::now();
            for _ in 0..CALLS {
                call();
            }
            *best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
        }
    }
    best
}

/// The same, while a profiler records. Sessions are kept short, so that memory stays small.
fn recorded(call: &dyn Fn(), shapes: bool, memory: bool) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let builder = Profiler::builder().all_threads(false).record_shapes(shapes).profile_memory(memory);
        let mut profiler = builder.start().expect("a profiler starts");
        let begun = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
        profiler.stop().expect("a profiler stops");
    }
    best
}

fn main() {
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).expect("a small tensor");
    let add = Add { alpha: Scalar::Int(1) };
    let direct_nothing = || drop(black_box(Identity.forward(black_box([&x, &x]))));
    let call_nothing = || drop(black_box(Identity.call(black_box([&x, &x]))));
    let direct_add = || drop(black_box(add.forward(black_box((&x, Operand::Tensor(&x))))));
    let call_add = || drop(black_box(add.clone().call(black_box((&x, Operand::Tensor(&x))))));
    let scope = || drop(observe::span(black_box(&Scope)));
    let nothing = || {
        black_box(black_box(&Scope));
    };

    let [direct_nothing_ns, call_nothing_ns, direct_add_ns, call_add_ns, nothing_ns, scope_ns] =
        fastest([&direct_nothing, &call_nothing, &direct_add, &call_add, &nothing, &scope]);
    println!(
        "an operator that does nothing  direct {direct_nothing_ns:6.1} ns  called {call_nothing_ns:6.1} ns"
    );
    println!("2x2 add                        direct {direct_add_ns:6.1} ns  called {call_add_ns:6.1} ns");
    println!("dispatch costs                 {:6.1} ns  (at most 10)", call_nothing_ns - direct_nothing_ns);
    println!("a scope nobody watches costs   {:6.1} ns  (at most 2)", scope_ns - nothing_ns);
    let report =
        |what: &str, ns: f64, bar: &str| println!("{what:<30} {:6.1} ns  {bar}", ns - call_nothing_ns);
    report("profiler on adds", recorded(&call_nothing, false, false), "(at most 60)");
    report("  with shapes", recorded(&call_nothing, true, false), "(at most 100)");
    let with_memory = recorded(&call_add, false, true) - call_add_ns;
    println!("  with memory, 2x2 add         {with_memory:6.1} ns  (at most 100, two reports)");
}
