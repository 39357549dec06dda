//! What memory was for, held against torch's answer for the same program.

use cresset::prelude::*;
use cresset::profiler::{Error, MemoryAction, MemoryCategory, MemoryChange};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

/// Two steps of `tests/golden/profiler/record.py`, with everything recorded.
fn two_steps(device: Device) -> Profiler {
    let model =
        Sequential::new().push(Linear::new(6, 4).unwrap()).push(Relu).push(Linear::new(4, 3).unwrap());
    model.to(device).unwrap();
    // Operator by operator, as torch's that this is compared with.
    let implementation = Some(cresset::optim::Implementation::Single);
    let options = SgdOptions { lr: 0.1, momentum: 0.9, implementation, ..Default::default() };
    let mut sgd = Sgd::new(model.parameters(), options).unwrap();
    let x = Tensor::ones([2, 6], device).unwrap();
    let y = Tensor::new([0i64, 2]).unwrap().to(device).unwrap();
    let mut profiler = Profiler::builder()
        .all_threads(false)
        .record_shapes(true)
        .profile_memory(true)
        .with_stack(true)
        .start()
        .unwrap();
    for step in 0..2 {
        let _scope = record_function(&format!("step {step}"));
        sgd.zero_grad();
        let loss = model.forward(&x).unwrap().cross_entropy(&y).unwrap();
        loss.backward().unwrap();
        sgd.step().unwrap();
    }
    profiler.stop().unwrap();
    profiler
}

fn action(action: MemoryAction) -> &'static str {
    match action {
        MemoryAction::Preexisting => "PREEXISTING",
        MemoryAction::Create => "CREATE",
        MemoryAction::IncrementVersion => "INCREMENT_VERSION",
        MemoryAction::Destroy => "DESTROY",
    }
}

type Kinds = BTreeMap<(String, String, u64), usize>;

/// How often each action, category and size occurs.
fn ours(changes: &[MemoryChange]) -> Kinds {
    let mut kinds = Kinds::new();
    for change in changes {
        let key = (action(change.action).to_owned(), change.category.as_str().to_owned(), change.bytes);
        *kinds.entry(key).or_default() += 1;
    }
    kinds
}

/// torch's.
fn theirs() -> Kinds {
    let recorded = std::fs::read_to_string("tests/golden/profiler/memory_timeline.json").unwrap();
    let recorded: Vec<(String, u64, String)> = serde_json::from_str(&recorded).unwrap();
    let mut kinds = Kinds::new();
    for (action, bytes, category) in recorded {
        *kinds.entry((action, category, bytes)).or_default() += 1;
    }
    kinds
}

#[test]
fn categories_and_bytes_are_those_of_torch() {
    let profiler = two_steps(Device::CPU);
    let changes = profiler.trace().unwrap().memory_timeline().unwrap();
    let (ours, theirs) = (ours(&changes), theirs());
    let differ: Vec<_> = ours
        .keys()
        .chain(theirs.keys())
        .filter(|key| ours.get(key) != theirs.get(key))
        .map(|key| format!("{key:?}: ours {:?}, torch's {:?}", ours.get(key), theirs.get(key)))
        .collect();
    assert!(differ.is_empty(), "{differ:#?}\n{changes:#?}");
}

fn read_gzip(path: &PathBuf) -> Value {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_memory_timeline_is_written_in_all_of_torch_s_formats() {
    let (profiler, folder) = (two_steps(Device::CPU), folder("memory-timeline"));
    let write = |name: &str| {
        let path = folder.join(name);
        profiler.export_memory_timeline(&path, Device::CPU).unwrap();
        path
    };
    let plain: Value = serde_json::from_slice(&std::fs::read(write("memory.json")).unwrap()).unwrap();
    assert_eq!(plain, read_gzip(&write("memory.json.gz")));
    let times = plain[0].as_array().unwrap();
    let sizes: Vec<Vec<i64>> = serde_json::from_value(plain[1].clone()).unwrap();
    assert_eq!(times.len(), sizes.len());
    assert!(times.is_sorted_by_key(|time| time.as_u64().unwrap()));
    assert!(
        sizes.iter().all(|sizes| sizes.len() == 9 && sizes[0] == 0 && sizes.iter().all(|&bytes| bytes >= 0))
    );
    let column = |category: MemoryCategory| 1 + category as usize;
    assert!(sizes.iter().all(|sizes| sizes[column(MemoryCategory::Parameter)] == 172));
    assert_eq!(sizes.last().unwrap()[column(MemoryCategory::OptimizerState)], 172);
    assert_eq!(sizes.iter().map(|sizes| sizes[column(MemoryCategory::Gradient)]).max(), Some(172));

    let raw = read_gzip(&write("memory.raw.json.gz"));
    let raw: Vec<[i64; 4]> = serde_json::from_value(raw).unwrap();
    assert!(raw.iter().filter(|[_, action, ..]| *action == 1).all(|[time, ..]| *time == -1));
    let left: i64 = raw.iter().map(|[_, _, bytes, _]| bytes).sum();
    assert_eq!(left, sizes.last().unwrap().iter().sum::<i64>());

    let page = std::fs::read_to_string(write("memory.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("OPTIMIZER_STATE") && !page.contains("{{"));
    assert!(!page.contains("://"), "nothing comes from elsewhere");
}

#[test]
fn memory_of_the_device_has_categories_too() {
    let profiler = two_steps(device("npu").unwrap());
    let changes = profiler.trace().unwrap().memory_timeline().unwrap();
    let on_device: Vec<_> = changes.iter().filter(|change| !change.device.is_cpu()).collect();
    for category in [
        MemoryCategory::Parameter,
        MemoryCategory::OptimizerState,
        MemoryCategory::Activation,
        MemoryCategory::Gradient,
        MemoryCategory::AutogradDetail,
    ] {
        assert!(
            on_device.iter().any(|change| change.category == category),
            "no {category:?}: {on_device:#?}"
        );
    }
}

#[test]
fn a_memory_timeline_needs_shapes_memory_and_stacks() {
    let flags = [(false, true, true), (true, false, true), (true, true, false)];
    for (shapes, memory, stack) in flags {
        let builder = Profiler::builder().record_shapes(shapes).profile_memory(memory).with_stack(stack);
        let ((), profiler) = builder.run(|_| ()).unwrap();
        let path = folder("memory-refused").join("memory.json");
        let error = profiler.export_memory_timeline(&path, None).unwrap_err();
        assert!(matches!(error, Error::MemoryNotProfiled));
        assert_eq!(
            error.to_string(),
            "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."
        );
        assert!(!path.exists());
    }
}
