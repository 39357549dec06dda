//! The report page, without a browser: `tests/browser/report.mjs` clicks through it.

use crate::fake::{Allocator, Op, alone, directory, launch_kernel, npu, op, plug_in};
use cresset_dispatch::Device;
use cresset_dispatch::observe::Kind;
use cresset_profiler::{Peak, Profiler, Schedule, record_function};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The page and the data in it.
fn read(path: &Path) -> (String, Value) {
    let page = fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    // Exactly what a browser does: the element ends at the first end tag.
    let (data, _) = rest.split_once("</script>").unwrap();
    let data = serde_json::from_str(data).unwrap();
    (page, data)
}

/// One scheduled step with a forward, a backward and an optimizer part, and a kernel.
fn step() -> Profiler {
    plug_in();
    let allocator = Allocator::new(Device::CPU);
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(0, 0, 1).unwrap().repeat(1))
        .record_shapes(true)
        .profile_memory(true)
        .with_flops(true)
        .start()
        .unwrap();
    Op::new("aten::linear").shapes(&[&[2, 3]]).run(|| {
        Op::new("aten::addmm").shapes(&[&[2, 3], &[3, 4]]).flops(48).run(|| allocator.report(64, 32));
    });
    Op::new("aten::mm").on(npu()).run(|| launch_kernel("MatMulV2", 30_000));
    Op::new("MmBackward0").kind(Kind::Evaluate).run(|| op("aten::mul"));
    record_function("Optimizer.step#SGD.step").run(|| op("aten::add_"));
    allocator.report(64, -32);
    profiler.step().unwrap();
    profiler.stop().unwrap();
    profiler
}

#[test]
fn a_report_holds_everything_it_shows() {
    let _alone = alone();
    let path = directory("report").join("report.html");
    step().export_html(&path).unwrap();
    let (page, data) = read(&path);
    for id in ["flame", "memory", "phases", "operators", "kernels", "speed", "filter"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id} is missing");
    }
    assert!(
        !page.contains("{{") && !page.contains("://"),
        "nothing is left open, nothing comes from elsewhere"
    );

    assert_eq!(data["about"]["flags"], json!(["record_shapes", "profile_memory", "with_flops"]));
    let tracks = data["tracks"].as_array().unwrap();
    let groups: Vec<&str> = tracks.iter().map(|track| track["group"].as_str().unwrap()).collect();
    assert_eq!(groups, ["host", "device"]);
    let slices = tracks[0]["slices"].as_array().unwrap();
    let name = |i: usize| data["names"][slices[7 * i + 2].as_u64().unwrap() as usize].as_str().unwrap();
    let depths: Vec<(&str, u64)> =
        (0..slices.len() / 7).map(|i| (name(i), slices[7 * i + 3].as_u64().unwrap())).collect();
    assert_eq!(
        depths,
        [
            ("ProfilerStep#0", 0),
            ("aten::linear", 1),
            ("aten::addmm", 2),
            ("aten::mm", 1),
            ("aclnnAdd", 2),
            ("autograd::engine::evaluate_function: MmBackward0", 1),
            ("aten::mul", 2),
            ("Optimizer.step#SGD.step", 1),
            ("aten::add_", 2),
        ]
    );
    let kernel = tracks[1]["slices"].as_array().unwrap();
    assert_eq!(data["texts"][(-1 - kernel[2].as_i64().unwrap()) as usize], "MatMulV2");

    let memory = &data["memory"][0];
    assert_eq!((&memory["device"], &memory["before"]), (&json!("cpu"), &json!([1000])));
    let changes: Vec<i64> =
        memory["changes"].as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect();
    assert_eq!([changes[2], changes[5]], [32, -32]);

    let phases = data["splits"][0]["phases"].as_array().unwrap();
    assert!(phases.iter().all(|nanos| nanos.as_u64().unwrap() > 0), "{phases:?}");
    assert_eq!(data["steps"][0]["label"], "ProfilerStep#0");
    let addmm = data["speeds"].as_array().unwrap().iter().find(|row| row["name"] == "aten::addmm").unwrap();
    assert_eq!((&addmm["flops"], &addmm["bytes"]), (&json!(48), &json!(4 * (6 + 12) + 32)));
}

#[test]
fn a_report_says_what_the_machine_can_do_if_it_is_told() {
    let _alone = alone();
    let path = directory("report-peak").join("report.html");
    let profiler = step();
    let peak = Peak { flops: 2e9, bandwidth: f64::NAN, source: "a guess".to_owned() };
    profiler.trace().unwrap().html_report().peak(Device::CPU, peak).write(&path).unwrap();
    let (_, data) = read(&path);
    assert_eq!(
        data["peaks"],
        json!([{"device": "cpu", "flops": 2_000_000_000u64, "bandwidth": null, "source": "a guess"}])
    );
    profiler.export_html(&path).unwrap();
    assert_eq!(read(&path).1["peaks"], json!([]));
}

#[test]
fn no_name_can_break_out_of_a_report() {
    let _alone = alone();
    let path = directory("report-hostile").join("report.html");
    let long = "<y>".repeat(1 << 19);
    let names = [
        "</script><script>alert(1)</script>",
        "<!--",
        "a\"b\\",
        "nul\0",
        "\u{2028}🎉",
        "{{data}}",
        "",
        &long,
    ];
    let ((), mut profiler) =
        Profiler::builder().run(|_| names.iter().for_each(|name| record_function(name).run(|| ()))).unwrap();
    profiler.add_metadata("</script>", "<b>").unwrap();
    profiler.export_html(&path).unwrap();
    let (page, data) = read(&path);
    assert_eq!(page.matches("<script").count(), 2, "the data and the program");
    let rows: Vec<&str> =
        data["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(rows, names);
    assert_eq!(data["about"]["metadata"], json!([["</script>", "\"<b>\""]]));
}

#[test]
fn an_empty_session_makes_a_report_too() {
    let _alone = alone();
    let path = directory("report-empty").join("report.html");
    let ((), profiler) = Profiler::builder().run(|_| ()).unwrap();
    profiler.export_html(&path).unwrap();
    let (_, data) = read(&path);
    assert_eq!((&data["tracks"], &data["memory"], &data["rows"]), (&json!([]), &json!([]), &json!([])));
}

#[test]
fn a_report_that_cannot_be_written_leaves_nothing() {
    let _alone = alone();
    let directory = directory("report-unwritable");
    let profiler = step();
    let missing = directory.join("missing").join("report.html");
    let error = profiler.export_html(&missing).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write {}: ", missing.display())), "{error}");
    assert!(profiler.export_html("/dev/full").is_err());
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn two_hundred_thousand_slices_take_a_few_megabytes() {
    let _alone = alone();
    let path = directory("report-large").join("report.html");
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            for _ in 0..25_000 {
                record_function("batch").run(|| {
                    Op::new("aten::linear").run(|| {
                        op("aten::t");
                        Op::new("aten::addmm").run(|| op("aten::copy_"));
                    });
                    Op::new("AddmmBackward0").kind(Kind::Evaluate).run(|| op("aten::mm"));
                    op("aten::add_");
                });
            }
        })
        .unwrap();
    profiler.export_html(&path).unwrap();
    let (page, data) = read(&path);
    let numbers = data["tracks"][0]["slices"].as_array().unwrap().len();
    assert_eq!(numbers, 200_000 * 7);
    assert!(page.len() < 200_000 * 30, "{} bytes", page.len());
    // For the browser test, which is not part of the build.
    if let Ok(keep) = std::env::var("CRESSET_KEEP_REPORT") {
        fs::copy(&path, keep).unwrap();
    }
}
