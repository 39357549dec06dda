//! Every call of the device fails once, the first, the second, … until a run gets through: each run gives an error
//! or the right answer, and the next one is as good as ever.

use super::alone;
use cresset::npu;
use cresset::prelude::*;
use cresset_npu_sim::{configure, report};

/// A step of training from the start, and what it leads to.
fn train(device: Device) -> cresset::Result<Vec<u32>> {
    manual_seed(5);
    let model = Sequential::new().push(Linear::new(6, 8)?).push(Tanh).push(Linear::new(8, 3)?);
    model.to(device)?;
    let mut optimizer = AdamW::new(model.parameters(), AdamWOptions::default())?;
    let x = Tensor::arange(24)?.to_dtype(DType::F32)?.view([4, 6])?.mul(0.1)?.to(device)?;
    let y = Tensor::new([0i64, 1, 2, 0])?.to(device)?;
    optimizer.zero_grad();
    let loss = model.call(&x)?.cross_entropy(&y)?;
    loss.backward()?;
    optimizer.step()?;
    let mut bits = vec![loss.item()?.as_f64() as f32];
    for weight in model.parameters() {
        bits.extend(weight.detach()?.to_vec::<f32>()?);
    }
    Ok(bits.into_iter().map(f32::to_bits).collect())
}

/// Lets the `n`-th call from now on of functions with this name have this effect.
fn arm(functions: &str, n: usize, effect: &str) {
    configure("CRESSET_SIM_FAIL", &format!("{functions}:{n}:{effect}")).unwrap();
}

/// Takes the fault back; whether it has happened.
fn disarm() -> bool {
    let happened = !report("faults").unwrap().ends_with(" 0\n");
    configure("CRESSET_SIM_FAIL", "").unwrap();
    happened
}

/// Runs `body` with the first call failing, then the second, until none is left to fail; how many there were, and
/// how many were told of. What ends well must give what it gives undisturbed, and so must every run after.
fn fail_each<T: PartialEq + std::fmt::Debug>(
    functions: &str,
    effect: &str,
    body: impl Fn() -> Result<T, String>,
) -> (usize, usize) {
    let device = device("npu").unwrap();
    let expected = body();
    assert!(expected.is_ok(), "{expected:?}");
    let kept = Tensor::new([1.5f32, 2.5]).unwrap().to(device).unwrap();
    npu::synchronize(device).unwrap();
    let held = npu::memory_allocated(device);
    let mut told = 0;
    for n in 1.. {
        arm(functions, n, effect);
        let outcome = body();
        // What failed while something was dropped is told by whoever waits next.
        let waited = npu::synchronize(device);
        let happened = disarm();
        assert!(outcome.is_err() || outcome == expected, "call {n} failed, and {outcome:?} is wrong");
        told += usize::from(outcome.is_err() || waited.is_err());
        let _ = npu::synchronize(device);
        assert_eq!(npu::memory_allocated(device), held, "memory is lost when call {n} fails: {outcome:?}");
        assert_eq!(kept.to_vec::<f32>().unwrap(), [1.5, 2.5], "after call {n} failed: {outcome:?}");
        assert_eq!(body(), expected, "after call {n} failed: {outcome:?}");
        if !happened {
            return (n - 1, told);
        }
    }
    unreachable!("calls end before numbers do")
}

fn trained() -> Result<Vec<u32>, String> {
    train(device("npu").unwrap()).map_err(|error| error.to_string())
}

#[test]
fn a_step_survives_the_failure_of_every_single_call_of_the_device() {
    alone("calls::a_step_survives_the_failure_of_every_single_call_of_the_device", &[], || {
        let (calls, told) = fail_each("*", "507015", trained);
        println!("figures: {calls} calls, {told} failures told");
        assert!(calls > 100 && told > calls / 2, "{told} of {calls} failures were told");
    });
}

#[test]
fn a_step_survives_the_failure_of_every_single_kernel() {
    alone("calls::a_step_survives_the_failure_of_every_single_kernel", &[], || {
        let (calls, told) = fail_each("aclnn*", "507015", trained);
        assert!(calls > 20);
        assert_eq!(told, calls, "no kernel fails in silence");
    });
}

#[test]
fn a_step_gives_the_same_when_any_single_call_comes_late() {
    alone("calls::a_step_gives_the_same_when_any_single_call_comes_late", &[], || {
        let (calls, told) = fail_each("*", "delay=1ms", trained);
        assert!(calls > 100);
        assert_eq!(told, 0);
    });
}

/// A device that claims to have done what it did not gives wrong numbers, but the next step is right.
#[test]
fn a_kernel_that_is_lost_harms_nothing_but_its_own_result() {
    alone("calls::a_kernel_that_is_lost_harms_nothing_but_its_own_result", &[], || {
        let device = device("npu").unwrap();
        let expected = trained();
        npu::synchronize(device).unwrap();
        let held = npu::memory_allocated(device);
        for n in 1.. {
            arm("aclnn*", n, "drop");
            let _ = trained();
            let _ = npu::synchronize(device);
            let happened = disarm();
            assert_eq!(trained(), expected, "after kernel {n} was lost");
            assert_eq!(npu::memory_allocated(device), held);
            if !happened {
                break;
            }
        }
    });
}

#[test]
fn a_profile_survives_the_failure_of_every_single_call_of_the_device() {
    alone("calls::a_profile_survives_the_failure_of_every_single_call_of_the_device", &[], || {
        let npu = device("npu").unwrap();
        let path = std::env::temp_dir().join(format!("cresset-calls-{}.json", std::process::id()));
        let (x, y) = (Tensor::ones([3, 3], npu).unwrap(), Tensor::ones([3, 3], npu).unwrap());
        let profiled = || -> Result<usize, String> {
            let told = |error: cresset::profiler::Error| error.to_string();
            let mut profiler = Profiler::builder().profile_memory(true).start().map_err(told)?;
            let computed = x.mm(&y).and_then(|z| z.tanh()).and_then(|z| z.to_vec::<f32>());
            let stopped = profiler.stop().map_err(told);
            // Whatever became of the device, what the host did is there.
            let calls = profiler.events().map_err(told)?.filter(|event| event.name() == "aten::mm").count();
            assert_eq!(calls, 1);
            profiler.export_chrome_trace(&path).unwrap();
            cresset::trace::check_trace(&path).unwrap();
            stopped?;
            computed.map_err(|error| error.to_string())?;
            Ok(calls)
        };
        let (calls, told) = fail_each("*", "507015", profiled);
        println!("figures: {calls} calls, {told} failures told");
        assert!(calls > 10);
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn a_device_that_could_not_be_opened_can_be_opened_later() {
    alone("calls::a_device_that_could_not_be_opened_can_be_opened_later", &[], || {
        for n in 1.. {
            arm("*", n, "507015");
            let opened = device("npu").and_then(|npu| Tensor::ones([2], npu)?.to_vec::<f32>());
            let happened = disarm();
            if let Ok(ones) = opened {
                assert_eq!(ones, [1.0; 2]);
            }
            if !happened {
                break;
            }
        }
        assert_eq!(Tensor::ones([2], device("npu").unwrap()).unwrap().to_vec::<f32>().unwrap(), [1.0; 2]);
    });
}
