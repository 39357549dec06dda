//! Exporting a profile while the disk fails.

use crate::faulty::{Scratch, with_fault};
use cresset::prelude::*;
use cresset::profiler::{Error, Profiler};
use std::path::Path;

fn recorded() -> Profiler {
    let x = Tensor::ones([4], ()).unwrap();
    let mut profiler =
        Profiler::builder().record_shapes(true).profile_memory(true).with_stack(true).start().unwrap();
    (0..200).for_each(|_| drop(x.add(1).unwrap()));
    profiler.stop().unwrap();
    profiler
}

type Export = fn(&Profiler, &Path) -> Result<(), Error>;

/// Every file that a profile can become.
const EXPORTS: [(&str, Export); 6] = [
    ("trace.json", |profiler, path| profiler.export_chrome_trace(path)),
    ("trace.json.gz", |profiler, path| profiler.export_chrome_trace(path)),
    ("page.html", |profiler, path| profiler.export_html(path)),
    ("stacks.txt", |profiler, path| profiler.export_stacks(path, "self_cpu_time_total")),
    ("speedscope.json", |profiler, path| profiler.trace()?.export_speedscope(path)),
    ("memory.html", |profiler, path| profiler.export_memory_timeline(path, Device::CPU)),
];

#[test]
fn an_export_that_fails_anywhere_leaves_the_file_before_and_nothing_else() {
    let scratch = Scratch::new("exports", false);
    let profiler = recorded();
    for (name, export) in EXPORTS {
        let path = scratch.0.join(name);
        export(&profiler, &path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for n in 1.. {
            std::fs::write(&path, "previous").unwrap();
            let (outcome, happened) = with_fault(n, || export(&profiler, &path));
            assert_eq!(outcome.is_err(), happened, "{name}: call {n} failed, and nobody was told");
            let found = std::fs::read(&path).unwrap();
            match outcome {
                Ok(()) => assert!(found == whole, "{name}: exports differ"),
                Err(error) => {
                    assert_eq!(found, b"previous", "{name}, call {n}");
                    assert!(error.to_string().contains(name), "{error}");
                }
            }
            assert_eq!(scratch.names(), [name]);
            if !happened {
                break;
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn an_export_goes_on_with_writes_that_are_cut_in_half() {
    let scratch = Scratch::new("halves", true);
    let (profiler, path) = (recorded(), scratch.0.join("trace.json"));
    profiler.export_chrome_trace(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for n in 1..8 {
        if with_fault(n, || profiler.export_chrome_trace(&path)).0.is_ok() {
            assert!(std::fs::read(&path).unwrap() == whole, "call {n}");
        }
    }
}

#[test]
fn a_session_that_streams_to_a_disk_that_fails_tells_at_its_stop() {
    let scratch = Scratch::new("stream", false);
    let x = Tensor::ones([4], ()).unwrap();
    for n in 1.. {
        let path = scratch.0.join(format!("events-{n}"));
        let (outcome, happened) = with_fault(n, || {
            let mut profiler = Profiler::builder().stream_to(&path).start()?;
            (0..3000).for_each(|_| drop(x.add(1).unwrap()));
            profiler.stop()?;
            profiler.key_averages().map(|rows| rows.iter().map(|row| row.count).sum::<u64>())
        });
        assert_eq!(outcome.is_err(), happened, "call {n}: {:?}", outcome.map_err(|error| error.to_string()));
        if !happened {
            return;
        }
    }
}
