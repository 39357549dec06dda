//! The profiler over real tensors, modules and optimizers, on the host and on the device.

use cresset::prelude::*;
use cresset::profiler::{Event, Phase, Trace};
use std::sync::atomic::{AtomicBool, Ordering};

/// A profile of what this thread does in `body`, with everything recorded.
fn profile(body: impl FnOnce()) -> Trace {
    let mut profiler = Profiler::builder()
        .all_threads(false)
        .record_shapes(true)
        .profile_memory(true)
        .with_flops(true)
        .start()
        .unwrap();
    body();
    profiler.stop().unwrap();
    profiler.into_trace().unwrap()
}

/// Names, each indented by how deep it is nested.
fn outline(trace: &Trace) -> Vec<String> {
    trace.events().map(|event| format!("{}{}", "  ".repeat(event.depth()), event.name())).collect()
}

fn find<'a>(trace: &'a Trace, name: &str) -> Event<'a> {
    trace
        .events()
        .find(|event| event.name() == name)
        .unwrap_or_else(|| panic!("no {name} in {:?}", outline(trace)))
}

fn model(device: Device) -> Sequential {
    let model =
        Sequential::new().push(Linear::new(6, 4).unwrap()).push(Relu).push(Linear::new(4, 3).unwrap());
    model.to(device).unwrap();
    model
}

#[test]
fn profiler_captures_dispatch_ops() {
    let x = Tensor::new([1.0f32, 2.0]).unwrap().with_grad().unwrap();
    let trace = profile(|| (&x * &x).unwrap().sum().unwrap().backward().unwrap());
    assert_eq!(
        outline(&trace),
        [
            "aten::mul",
            "aten::sum",
            "  aten::sum",
            "    aten::as_strided",
            "    aten::fill_",
            "aten::ones_like",
            "  aten::empty_like",
            "    aten::empty_strided",
            "  aten::fill_",
            "autograd::engine::evaluate_function: SumBackward0",
            "  SumBackward0",
            "    aten::expand",
            "      aten::as_strided",
            "autograd::engine::evaluate_function: MulBackward0",
            "  MulBackward0",
            "    aten::mul",
            "    aten::mul",
            "  aten::add_",
            "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
            "  torch::autograd::AccumulateGrad",
            "    aten::detach",
            "      detach",
        ]
    );
    let phases: Vec<Phase> =
        trace.events().filter(|event| event.name() == "aten::mul").map(|e| e.phase()).collect();
    assert_eq!(phases, [Phase::Forward, Phase::Backward, Phase::Backward]);
}

/// What torch 2.15 shows for the same calls.
#[test]
fn overloads_are_named_as_torch_names_them() {
    let x = Tensor::new([1.0f32, 2.0]).unwrap();
    let mut profiler = Profiler::builder().all_threads(false).capture_overload_names(true).start().unwrap();
    x.add(&x).unwrap().pow(2.0).unwrap().sum().unwrap();
    x.reshape([2, 1]).unwrap().sum_dims(&[0], false).unwrap();
    profiler.stop().unwrap();
    let events = profiler.events().unwrap();
    let seen: Vec<String> =
        events.map(|event| [event.name(), event.overload_name().unwrap_or("")].join(".")).collect();
    let expected = ["aten::add.Tensor", "aten::pow.Tensor_Scalar", "aten::sum."];
    let outer: Vec<&String> = seen.iter().filter(|name| expected.contains(&name.as_str())).collect();
    assert_eq!(outer, expected.iter().collect::<Vec<_>>());
    assert_eq!(seen.iter().filter(|name| *name == "aten::sum.dim_IntList").count(), 2);
}

#[test]
fn copies_that_a_kernel_makes_beside_its_work_are_counted() {
    let (single, double) = (Tensor::ones([10, 10], ()).unwrap(), Tensor::ones([10, 10], DType::F64).unwrap());
    let trace = profile(|| {
        single.add(&single).unwrap();
        double.add_(&single).unwrap();
    });
    assert_eq!(find(&trace, "aten::add").copied_bytes(), 0);
    // The single-precision operand is converted first.
    assert_eq!(find(&trace, "aten::add_").copied_bytes(), 800);
}

/// What torch 2.15 shows for a linear layer on a batch.
const LINEAR: [&str; 10] = [
    "aten::linear",
    "  aten::t",
    "    aten::transpose",
    "      aten::as_strided",
    "  aten::addmm",
    "    aten::expand",
    "      aten::as_strided",
    "    aten::copy_",
    "    aten::resolve_conj",
    "    aten::resolve_conj",
];

#[test]
fn a_linear_layer_nests_as_torch_s_does() {
    let (layer, x) = (Linear::new(6, 4).unwrap(), Tensor::ones([2, 6], ()).unwrap());
    let trace = profile(|| drop(layer.forward(&x).unwrap()));
    assert_eq!(outline(&trace), LINEAR);
    let addmm = find(&trace, "aten::addmm");
    assert_eq!(addmm.input_shapes().unwrap(), "[[4], [2, 6], [6, 4]]");
    assert_eq!(addmm.flops(), 2 * 2 * 6 * 4);
    let numbers: Vec<Option<u64>> =
        trace.events().map(|event| event.sequence().map(|sequence| sequence.number)).collect();
    // Views make no node of their own inside of t(); other tests may take numbers meanwhile.
    let [Some(linear), Some(t), None, None, Some(addmm), None, ..] = numbers[..] else {
        panic!("{numbers:?}")
    };
    assert!(linear <= t && t < addmm, "{numbers:?}");
}

/// Checks that a small model's backward calls are linked to the forward calls they belong to.
fn expect_all_links() {
    let (model, x) = (model(Device::CPU), Tensor::ones([2, 6], ()).unwrap());
    let classes = Tensor::new([0i64, 2]).unwrap();
    let trace = profile(|| model.forward(&x).unwrap().cross_entropy(&classes).unwrap().backward().unwrap());
    let links: Vec<(&str, &str)> =
        trace.links().map(|(forward, backward)| (forward.name(), backward.name())).collect();
    for expected in [
        ("aten::nll_loss_forward", "NllLossBackward0"),
        ("aten::_log_softmax", "LogSoftmaxBackward0"),
        ("aten::addmm", "AddmmBackward0"),
        ("aten::relu", "ReluBackward0"),
        ("aten::t", "TBackward0"),
    ] {
        assert!(links.contains(&expected), "{expected:?} is not in {links:?}");
    }
}

#[test]
fn backward_calls_are_linked_to_the_forward_calls_that_caused_them() {
    expect_all_links();
}

#[test]
fn links_are_complete_while_another_thread_records_calls() {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let x = Tensor::new([1.0f32]).unwrap().with_grad().unwrap();
            while !done.load(Ordering::Relaxed) {
                drop(x.add(&x).unwrap());
            }
        });
        let checked = std::panic::catch_unwind(|| (0..50).for_each(|_| expect_all_links()));
        done.store(true, Ordering::Relaxed);
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn profiler_covers_optimizer_ops() {
    let (model, x) = (model(Device::CPU), Tensor::ones([2, 6], ()).unwrap());
    // Operator by operator, as torch's that this is compared with.
    let implementation = Some(cresset::optim::Implementation::Single);
    let options = SgdOptions { lr: 0.1, momentum: 0.9, implementation, ..Default::default() };
    let mut sgd = Sgd::new(model.parameters(), options).unwrap();
    let trace = profile(|| {
        sgd.zero_grad();
        model.forward(&x).unwrap().sum().unwrap().backward().unwrap();
        sgd.step().unwrap();
    });
    let step = find(&trace, "Optimizer.step#SGD.step");
    assert!(step.is_user_annotation());
    assert!(step.children().any(|event| event.name() == "aten::add_" && event.phase() == Phase::Optimizer));
    assert_eq!(find(&trace, "aten::linear").phase(), Phase::Forward);
    assert_eq!(find(&trace, "AddmmBackward0").phase(), Phase::Backward);
    assert!(find(&trace, "Optimizer.zero_grad#SGD.zero_grad").is_user_annotation());
}

#[test]
fn modules_are_shown_with_what_they_call() {
    let (model, x) = (model(Device::CPU), Tensor::ones([2, 6], ()).unwrap());
    let run = |with_modules| {
        let builder = Profiler::builder().all_threads(false).with_modules(with_modules).with_stack(true);
        let (_, profiler) = builder.run(|_| model.call(&x).unwrap().sum().unwrap()).unwrap();
        profiler.into_trace().unwrap()
    };
    let inside = |module: &str, calls: &[&str]| {
        let calls = calls.iter().map(|call| format!("    {call}"));
        [format!("  nn.Module: {module}")].into_iter().chain(calls).collect::<Vec<_>>()
    };
    let sum = ["aten::sum", "  aten::sum", "    aten::as_strided", "    aten::fill_"];
    let expected = [
        vec!["nn.Module: Sequential_0".to_owned()],
        inside("Linear_0", &LINEAR),
        inside("Relu_0", &["aten::relu", "  aten::clamp_min"]),
        inside("Linear_1", &LINEAR),
        sum.map(str::to_owned).to_vec(),
    ];
    assert_eq!(outline(&run(true)), expected.concat());
    assert!(!outline(&run(false)).iter().any(|name| name.contains("nn.Module")));
}

#[test]
fn stacks_of_operators_lead_to_the_line_that_called_them() {
    let x = Tensor::new([1.0f32, 2.0]).unwrap().with_grad().unwrap();
    let mut lines = (0, 0);
    let builder = Profiler::builder().all_threads(false).with_stack(true);
    let ((), profiler) = builder
        .run(|_| {
            let product = (&x * &x).unwrap();
            lines.0 = line!() - 1;
            product.sum().unwrap().backward().unwrap();
            lines.1 = line!() - 1;
        })
        .unwrap();
    let trace = profiler.trace().unwrap();
    for event in trace.events() {
        let frame = &event.stack().unwrap()[0];
        let of_product = event.name() == "aten::mul" || event.name().contains("MulBackward0");
        let line = if of_product { lines.0 } else { lines.1 };
        let inside = event.parent().is_some_and(|parent| parent.stack() == event.stack());
        assert!(frame.file().unwrap().ends_with("tests/profile.rs"), "{}: {frame}", event.name());
        assert!(frame.line() == line || inside, "{}: {frame}", event.name());
    }
    // The derivative of the product, and what it calls, belong to the line of the product.
    let derivative = find(trace, "MulBackward0");
    assert_eq!(derivative.stack().unwrap()[0].line(), lines.0);
    assert!(derivative.children().all(|event| event.stack() == derivative.stack()));
}

#[test]
fn host_memory_is_reported_to_the_byte() {
    let x = Tensor::new([1.0f32; 100]).unwrap();
    let trace = profile(|| drop(x.add(&x).unwrap()));
    let bytes: Vec<i64> = trace.memory_events().iter().map(|event| event.report.bytes).collect();
    assert_eq!(bytes, [400, -400]);
    assert_eq!(find(&trace, "aten::add").memory().unwrap().delta(), 400);
}

#[test]
fn profiler_npu_event_device_type() {
    let device = device("npu").unwrap();
    let (model, x) = (model(device), Tensor::ones([2, 6], ()).unwrap());
    let trace = profile(|| {
        let x = x.to(device).unwrap();
        model.forward(&x).unwrap().sum().unwrap().backward().unwrap();
    });
    let addmm = find(&trace, "aten::addmm");
    assert_eq!(addmm.device_type(), "NPU");
    assert!(addmm.device_time() > 0, "device time comes from kernels");
    let kernels: Vec<_> = trace.device_events().filter(|event| event.call().is_some()).collect();
    let of_addmm = kernels.iter().filter(|kernel| kernel.call().unwrap().name() == "aten::addmm").count();
    assert_eq!(of_addmm, 2, "each call launched its kernel");
    assert!(kernels.iter().all(|kernel| kernel.device_type() == "NPU"));
    assert!(trace.devices().iter().any(|device| device.name.contains("simulat")), "{:?}", trace.devices());
    let memory = addmm.memory().unwrap();
    assert!(memory.delta() > 0);
}

#[test]
fn sessions_that_overlap_are_each_complete() {
    let x = Tensor::new([1.0f32]).unwrap();
    let outer = profile(|| {
        x.add(&x).unwrap();
        let inner = profile(|| drop(x.mul(&x).unwrap()));
        assert_eq!(outline(&inner), ["aten::mul"]);
        x.neg().unwrap();
    });
    assert_eq!(outline(&outer), ["aten::add", "aten::mul", "aten::neg"]);
}

#[test]
fn operators_that_fail_are_recorded_and_marked_with_those_around_them() {
    let (x, y) = (Tensor::zeros([2, 3], ()).unwrap(), Tensor::zeros([2, 4], ()).unwrap());
    let trace = profile(|| {
        assert!(x.add(&y).is_err() && x.add_(&y).is_err());
        assert!(x.conv2d(&y, None, &Default::default()).is_err());
        x.add(&x).unwrap();
    });
    let failed: Vec<_> = trace.events().map(|event| (event.name(), event.is_failed())).collect();
    let expected = [("aten::add", true), ("aten::add_", true), ("aten::conv2d", true), ("aten::add", false)];
    assert_eq!(failed, expected);
}
