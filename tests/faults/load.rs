//! More than a program does on a usual day: many threads that train and profile at once, a session that records as
//! fast as threads can call, and tensors up to the limit of memory.

use super::{alone, amount};
use cresset::prelude::*;
use cresset::tensor::{Cause, host_bytes_allocated, limit_host_bytes};
use std::time::{Duration, Instant};

const THREADS: usize = 16;
const STEPS: usize = 6;

/// Trains a small model from weights that depend on `start` alone; the bits of every loss.
fn train(start: usize) -> cresset::Result<Vec<u32>> {
    let numbers = |count: usize, by: f32| -> Vec<f32> {
        (0..count).map(|i| ((start * 31 + i * 7) as f32 * by).sin()).collect()
    };
    let model = Sequential::new().push(Linear::new(8, 12)?).push(Tanh).push(Linear::new(12, 3)?);
    for (i, weight) in model.parameters().iter().enumerate() {
        let _off = no_grad();
        let values = Tensor::from_vec(numbers(weight.numel(), 0.1 + i as f32), weight.shape())?;
        weight.copy_(&values.mul(0.3)?)?;
    }
    let mut optimizer = AdamW::new(model.parameters(), AdamWOptions { lr: 0.01, ..Default::default() })?;
    let (x, y) = (Tensor::from_vec(numbers(40, 0.7), [5, 8])?, Tensor::new([0i64, 1, 2, 0, 1])?);
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        optimizer.zero_grad();
        let loss = model.call(&x)?.cross_entropy(&y)?;
        loss.backward()?;
        optimizer.step()?;
        losses.push(loss.to_vec::<f32>()?[0].to_bits());
    }
    Ok(losses)
}

/// Trains under a session of this thread; its calls of `aten::addmm`.
fn train_profiled(start: usize, expected: &[u32]) -> usize {
    let mut profiler = Profiler::builder().all_threads(false).record_shapes(true).start().unwrap();
    assert_eq!(train(start).unwrap(), expected, "thread {start}");
    profiler.stop().unwrap();
    profiler
        .key_averages()
        .unwrap()
        .iter()
        .find(|row| row.key == "aten::addmm")
        .map_or(0, |row| row.count as usize)
}

/// `CRESSET_SOAK_SECONDS` says for how long.
#[test]
fn sixteen_threads_train_and_profile_at_once_and_each_is_right() {
    alone("load::sixteen_threads_train_and_profile_at_once_and_each_is_right", &[], || {
        let expected: Vec<Vec<u32>> = (0..THREADS).map(|start| train(start).unwrap()).collect();
        let calls = train_profiled(0, &expected[0]);
        let end = Instant::now() + Duration::from_secs(amount("CRESSET_SOAK_SECONDS", 1));
        let rounds: usize = std::thread::scope(|scope| {
            let work = |start: usize| {
                let mut rounds = 0;
                while rounds < 2 || Instant::now() < end {
                    assert_eq!(train_profiled(start, &expected[start]), calls, "a session lost a call");
                    rounds += 1;
                }
                rounds
            };
            let threads: Vec<_> = (0..THREADS).map(|start| scope.spawn(move || work(start))).collect();
            // Meanwhile sessions of all threads come and go.
            while threads.iter().any(|thread| !thread.is_finished()) {
                let mut all = Profiler::builder().start().unwrap();
                std::thread::sleep(Duration::from_millis(5));
                all.stop().unwrap();
                assert!(all.events().unwrap().all(|event| event.start() <= event.end()));
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        println!("figures: {rounds} runs of {STEPS} steps on {THREADS} threads");
    });
}

/// `CRESSET_SOAK_EVENTS` says how many.
#[test]
fn a_session_keeps_every_event_that_comes_as_fast_as_threads_can_call() {
    alone("load::a_session_keeps_every_event_that_comes_as_fast_as_threads_can_call", &[], || {
        let events = amount("CRESSET_SOAK_EVENTS", 200_000);
        let mut profiler = Profiler::builder().start().unwrap();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..events / 2).for_each(|_| drop(record_function("tick"))));
            }
        });
        let seconds = begin.elapsed().as_secs_f64();
        profiler.stop().unwrap();
        let averages = profiler.key_averages().unwrap();
        let ticks = averages.iter().find(|row| row.key == "tick").unwrap().count;
        assert_eq!(ticks, events / 2 * 2);
        println!("figures: {ticks} events, {:.1} million a second", ticks as f64 / seconds / 1e6);
    });
}

/// `CRESSET_SOAK_BYTES` says how much memory.
#[test]
fn tensors_up_to_the_limit_of_memory_are_right_and_one_more_is_an_error() {
    alone("load::tensors_up_to_the_limit_of_memory_are_right_and_one_more_is_an_error", &[], || {
        const PIECES: u64 = 20;
        let limit = amount("CRESSET_SOAK_BYTES", 256 << 20);
        limit_host_bytes(limit);
        let piece = (limit / PIECES / 4) as usize;
        let mut held: Vec<Tensor> = Vec::new();
        let error = loop {
            match Tensor::full([piece], held.len() as f64, DType::F32) {
                Ok(tensor) => held.push(tensor),
                Err(error) => break error,
            }
            assert!(held.len() as u64 <= PIECES, "the limit is not kept");
        };
        assert_eq!(error.cause(), Cause::Memory, "{error}");
        assert!(held.len() as u64 >= PIECES - 1 && host_bytes_allocated() <= limit);
        for (i, tensor) in held.iter().enumerate() {
            assert_eq!(tensor.max().unwrap().item().unwrap().as_f64(), i as f64);
            assert_eq!(tensor.min().unwrap().item().unwrap().as_f64(), i as f64);
        }
        held.truncate(1);
        assert_eq!(held[0].add(1).unwrap().narrow(0, 0, 1).unwrap().to_vec::<f32>().unwrap(), [1.0]);
    });
}
