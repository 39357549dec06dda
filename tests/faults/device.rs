//! A device that is lost while a profile is recorded.

use super::alone;
use cresset::npu;
use cresset::prelude::*;
use cresset_npu_sim::configure;

#[test]
fn a_profile_of_a_device_that_was_lost_is_exported_with_what_there_was() {
    let name = "device::a_profile_of_a_device_that_was_lost_is_exported_with_what_there_was";
    alone(name, &[], || {
        let npu = device("npu").unwrap();
        let x = Tensor::ones([4], npu).unwrap();
        let mut profiler = Profiler::builder().profile_memory(true).start().unwrap();
        let y = x.exp().unwrap();
        npu::synchronize(npu).unwrap();
        configure("CRESSET_SIM_FAIL", "aclrtSynchronize*:*:507899").unwrap();
        assert!(npu::synchronize(npu).is_err());
        for outcome in [y.tanh().map(drop), y.to_vec::<f32>().map(drop), Tensor::ones([4], npu).map(drop)] {
            assert!(outcome.unwrap_err().to_string().contains("is lost to this process"));
        }
        let host = Tensor::ones([4], ()).unwrap().neg().unwrap();
        assert_eq!(host.to_vec::<f32>().unwrap(), [-1.0; 4]);
        drop((x, y));
        // Whether the device can still tell what it did or not, the host's part is there.
        let _ = profiler.stop();
        let calls: Vec<&str> = profiler.events().unwrap().map(|event| event.name()).collect();
        assert!(calls.contains(&"aten::exp") && calls.contains(&"aten::neg"), "{calls:?}");
        let path = std::env::temp_dir().join(format!("cresset-lost-{}.json", std::process::id()));
        profiler.export_chrome_trace(&path).unwrap();
        cresset::trace::check_trace(&path).unwrap();
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn running_out_of_device_memory_is_one_event_of_the_trace() {
    let name = "device::running_out_of_device_memory_is_one_event_of_the_trace";
    alone(name, &[("CRESSET_SIM_MEMORY", "67108864")], || {
        let npu = device("npu").unwrap();
        let mut profiler = Profiler::builder().profile_memory(true).start().unwrap();
        let told = Tensor::zeros([1 << 28], (DType::F32, npu)).unwrap_err().to_string();
        profiler.stop().unwrap();
        assert!(told.contains("npu:0 is out of memory: asked for 1.0 GiB"), "{told}");
        let path = std::env::temp_dir().join(format!("cresset-full-{}.json", std::process::id()));
        profiler.export_chrome_trace(&path).unwrap();
        let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let full: Vec<_> = events.iter().filter(|event| event["name"] == "[OutOfMemory]").collect();
        assert_eq!(full.len(), 1, "{full:?}");
        assert_eq!(full[0]["ph"], "i");
        std::fs::remove_file(path).unwrap();
    });
}
