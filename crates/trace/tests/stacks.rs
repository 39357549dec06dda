//! Flame graphs: what lies in what, and what was recorded.

use cresset_trace::{Frames, Keep, Slices, Weight, stacks, write_stacks};
use std::path::Path;

fn folded(file: &str, frames: Frames, weight: Weight) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let trace = Slices::read(path, Keep { stacks: true, ..Keep::default() }).unwrap();
    let mut text = Vec::new();
    write_stacks(&stacks(&trace, frames, weight), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn slices_that_lie_in_each_other_are_a_stack() {
    let text = folded("corpus/good_everything.json", Frames::Nesting, Weight::Host);
    let linear = "thread_7_(python);ProfilerStep*;train.py(9):_main;nn.Module:_Linear_0;aten::linear";
    // Names are one word each, and a launch lies in the operator that launched.
    for line in [
        format!("{linear} 10"),
        format!("{linear};aten::addmm 8"),
        format!("{linear};aten::addmm;cudaLaunchKernel 2"),
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is missing in {text}");
    }
}

#[test]
fn work_on_a_device_counts_for_the_call_that_launched_it() {
    let text = folded("corpus/good_everything.json", Frames::Nesting, Weight::Device);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.ends_with("aten::linear;aten::addmm 30\n"), "{text}");
}

#[test]
fn recorded_stacks_have_the_outermost_frame_first() {
    let text = folded("corpus/good_everything.json", Frames::Recorded, Weight::Host);
    assert_eq!(text, "train.py(9):_main;model.py(3):_forward;aten::linear 10\n");
}

#[test]
fn steps_are_one_frame_and_all_time_is_there_once() {
    let text = folded("torch/steps.json.gz", Frames::Nesting, Weight::Host);
    assert!(text.contains(";ProfilerStep*;") && !text.contains("ProfilerStep#"), "{text}");
    let weight = |line: &str| -> u64 { line.rsplit_once(' ').unwrap().1.parse().unwrap() };
    let sum: u64 = text.lines().map(weight).sum();
    // torch's table of the same session has 10.9 ms, and each line is rounded.
    assert!((10_800..11_000).contains(&sum), "{sum}");
}
