use crate::support::*;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// The best of many: what it costs when nothing else runs.
fn best(mut body: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        body();
        start.elapsed()
    };
    (0..2000).map(time).min().unwrap()
}

#[test]
fn launching_and_waiting_costs_microseconds() {
    open();
    let (x, out) = (Tensor::new(&[2], &[1.0, 2.0]), Tensor::new(&[2], &[0.0; 2]));
    let launch = || {
        let (mut size, mut executor) = (0, null_mut());
        // SAFETY: the places may be written.
        unsafe {
            ok(operators::neg::plan(x.raw, out.raw, &mut size, &mut executor));
            ok(operators::neg::run(null_mut(), 0, executor, null_mut()));
        }
    };
    let round = best(|| {
        launch();
        synchronize().unwrap();
    });
    let each = best(|| (0..100).for_each(|_| launch())) / 100;
    synchronize().unwrap();
    println!("launch and wait {round:?}, launch {each:?}");
    // Loose, for the machine may be busy; a sleep and a wake-up each way would show.
    assert!(round < Duration::from_micros(200), "{round:?}");
}
