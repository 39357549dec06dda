//! The same thing many times: the memory of the process stays what it was after the first times.

use super::{alone, amount};
use cresset::npu;
use cresset::prelude::*;

/// Bytes of memory that the process has.
fn resident() -> i64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<i64>().unwrap()
}

/// Does `body` `count` times; how much the process grew in the second half. If that is too much, the half is done
/// again: a leak shows each time, and a huge page that the system happens to give shows once.
fn growth(what: &str, count: u64, mut body: impl FnMut()) -> i64 {
    let mut half = || (0..count.div_ceil(2)).for_each(|_| body());
    half();
    let mut grown = i64::MAX;
    for _ in 0..4 {
        let before = resident();
        half();
        grown = grown.min(resident() - before);
        if grown < MOST {
            break;
        }
    }
    println!("figures: {what}: {count} times, grew by {} KiB in the second half", grown / 1024);
    grown
}

/// What fragments of allocators may come to; a leak of one event, node or block each time is more.
const MOST: i64 = 1 << 20;

/// `CRESSET_SOAK_SESSIONS` says how many.
#[test]
fn sessions_come_and_go_without_growth() {
    alone("growth::sessions_come_and_go_without_growth", &[], || {
        let x = Tensor::ones([4], ()).unwrap();
        let grown = growth("sessions", amount("CRESSET_SOAK_SESSIONS", 100), || {
            let mut profiler = Profiler::builder()
                .record_shapes(true)
                .profile_memory(true)
                .with_stack(true)
                .start()
                .unwrap();
            (0..100).for_each(|_| drop(x.add(1).unwrap()));
            profiler.stop().unwrap();
            drop(profiler.key_averages().unwrap().table().to_string());
        });
        assert!(grown < MOST, "{grown} bytes");
    });
}

/// A model, and a step of its training.
struct Run {
    model: Sequential,
    optimizer: AdamW,
    samples: [Tensor; 2],
}

impl Run {
    fn new(device: Device) -> cresset::Result<Run> {
        manual_seed(1);
        let model = Sequential::new().push(Linear::new(16, 24)?).push(Relu).push(Linear::new(24, 4)?);
        model.to(device)?;
        let optimizer = AdamW::new(model.parameters(), AdamWOptions::default())?;
        let samples = [Tensor::randn([8, 16], ())?, Tensor::randint(0, 4, [8], DType::I64)?];
        let [x, y] = samples;
        Ok(Run { model, optimizer, samples: [x.to(device)?, y.to(device)?] })
    }

    fn step(&mut self) -> cresset::Result<()> {
        let [x, y] = &self.samples;
        self.optimizer.zero_grad();
        self.model.call(x)?.cross_entropy(y)?.backward()?;
        self.optimizer.step()
    }
}

/// `CRESSET_SOAK_STEPS` says how many.
#[test]
fn steps_of_training_come_and_go_without_growth() {
    alone("growth::steps_of_training_come_and_go_without_growth", &[], || {
        for name in ["cpu", "npu"] {
            let mut run = Run::new(device(name).unwrap()).unwrap();
            let what = format!("steps on {name}");
            let grown = growth(&what, amount("CRESSET_SOAK_STEPS", 400), || run.step().unwrap());
            assert!(grown < MOST, "{grown} bytes on {name}");
        }
    });
}

/// `CRESSET_SOAK_CYCLES` says how many.
#[test]
fn device_memory_comes_and_goes_without_growth() {
    alone("growth::device_memory_comes_and_goes_without_growth", &[], || {
        let npu = device("npu").unwrap();
        npu::synchronize(npu).unwrap();
        let held = npu::memory_allocated(npu);
        let grown = growth("cycles of device memory", amount("CRESSET_SOAK_CYCLES", 60), || {
            let kept: Vec<Tensor> =
                (0..24).map(|i| Tensor::zeros([1 << (i % 12 + 4)], (DType::F32, npu)).unwrap()).collect();
            npu::synchronize(npu).unwrap();
            drop(kept);
            npu::empty_cache(npu).unwrap();
        });
        assert_eq!(npu::memory_allocated(npu), held);
        assert_eq!(npu::memory_reserved(npu), 0);
        assert!(grown < MOST, "{grown} bytes");
    });
}
