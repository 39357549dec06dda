//! Files that cannot be written, or not to their end.

use crate::fake::{alone, child, directory, is_child, op, read};
use cresset_profiler::{Profiler, trace_directory};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn recorded(calls: usize) -> Profiler {
    Profiler::builder().run(|_| (0..calls).for_each(|_| op("aten::add"))).unwrap().1
}

fn content(directory: &Path) -> Vec<String> {
    let entry = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    fs::read_dir(directory).unwrap().map(entry).collect()
}

#[test]
fn a_path_that_cannot_be_written_is_named_and_nothing_is_left() {
    let _alone = alone();
    let directory = directory("unwritable");
    let file = directory.join("file");
    fs::write(&file, "kept").unwrap();
    let profiler = recorded(1);
    let cases = [
        (directory.join("missing/trace.json"), "No such file or directory"),
        (directory.clone(), "Is a directory"),
        (file.join("trace.json"), "Not a directory"),
        ("/proc/trace.json.gz".into(), "No such file or directory"),
        ("/dev/full".into(), "No space left on device"),
        ("".into(), "the path is empty"),
        ("nul\0.json".into(), "NUL byte"),
    ];
    for (path, reason) in cases {
        let error = profiler.export_chrome_trace(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
        assert!(error.contains(reason), "{error}, expected {reason}");
    }
    assert_eq!(content(&directory), ["file"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "kept");
}

#[test]
fn a_trace_directory_that_cannot_be_made_is_an_error_of_the_stop() {
    let _alone = alone();
    let file = directory("handler-file").join("file");
    fs::write(&file, "kept").unwrap();
    let handler = trace_directory(file.join("traces"), None, false);
    let mut profiler = Profiler::builder().on_trace_ready(handler).start().unwrap();
    op("aten::add");
    let error = profiler.stop().unwrap_err().to_string();
    assert!(error.starts_with(&format!("on_trace_ready failed: cannot write {}", file.display())), "{error}");
    assert_eq!(profiler.events().unwrap().count(), 1);
}

/// The disk is full for a process that may write no more than 8 KiB to a file.
#[test]
fn a_full_disk_is_an_error_and_the_previous_file_stays() {
    let name = "files::a_full_disk_is_an_error_and_the_previous_file_stays";
    if is_child() {
        let profiler = recorded(10_000);
        for file in ["trace.json", "trace.json.gz"] {
            let path = Path::new(&std::env::var("CRESSET_DIRECTORY").unwrap()).join(file);
            println!("{}", profiler.export_chrome_trace(&path).unwrap_err());
        }
        return;
    }
    let _alone = alone();
    let directory = directory("full-disk");
    let (plain, packed) = (directory.join("trace.json"), directory.join("trace.json.gz"));
    fs::write(&plain, "previous").unwrap();
    let output = child(name, "ulimit -f 8; trap '' XFSZ;").env("CRESSET_DIRECTORY", &directory).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    for path in [&plain, &packed] {
        assert!(said.contains(&format!("cannot write {}: File too large", path.display())), "{said}");
    }
    assert_eq!(content(&directory), ["trace.json"]);
    assert_eq!(fs::read_to_string(plain).unwrap(), "previous");
}

#[test]
fn a_process_killed_while_it_writes_leaves_a_whole_file_or_none() {
    let name = "files::a_process_killed_while_it_writes_leaves_a_whole_file_or_none";
    if is_child() {
        let path = std::env::var("CRESSET_DIRECTORY").unwrap();
        let profiler = recorded(5_000);
        loop {
            profiler.export_chrome_trace(Path::new(&path).join("trace.json")).unwrap();
        }
    }
    let _alone = alone();
    let directory = directory("killed");
    let path = directory.join("trace.json");
    let mut whole = 0;
    for moment in 0..20 {
        let mut child = child(name, "").env("CRESSET_DIRECTORY", &directory).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(20 + 7 * moment));
        child.kill().unwrap();
        child.wait().unwrap();
        if path.exists() {
            let trace = read(&path);
            let calls = trace["traceEvents"].as_array().unwrap().iter();
            assert_eq!(calls.filter(|event| event["name"] == "aten::add").count(), 5_000);
            whole += 1;
        }
        fs::remove_dir_all(&directory).unwrap();
        fs::create_dir(&directory).unwrap();
    }
    assert!(whole > 0, "no export ended before the process did");
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next_export_to_the_same_place() {
    let _alone = alone();
    let directory = directory("abandoned");
    let abandoned = ".trace.json.4711.0.tmp";
    let others = [".trace.json.notes.tmp", ".trace.json.4712.0.tmp", ".other.json.4711.0.tmp", "trace.json"];
    for name in others.iter().chain([&abandoned]) {
        fs::write(directory.join(name), "half").unwrap();
    }
    let busy = fs::File::open(directory.join(others[1])).unwrap();
    busy.lock().unwrap();
    recorded(1).export_chrome_trace(directory.join("trace.json")).unwrap();
    let mut left = content(&directory);
    left.sort_unstable();
    let mut expected = others.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(left, expected);
    assert_eq!(read(&directory.join("trace.json"))["schemaVersion"], 1);
    drop(busy);
    recorded(1).export_chrome_trace(directory.join("trace.json")).unwrap();
    assert!(!directory.join(others[1]).exists());
}

#[test]
fn a_link_stays_a_link_and_its_target_is_replaced() {
    let _alone = alone();
    let directory = directory("link");
    let (link, target) = (directory.join("latest.json"), directory.join("trace.json"));
    fs::write(&target, "previous").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    recorded(1).export_chrome_trace(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&target)["schemaVersion"], 1);
}
