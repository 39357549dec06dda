//! Devices of a group work together: on threads of one process, and in processes of their own.

use crate::support::{alone, npu};
use cresset_npu::{Communicator, Reduction, RootInfo, Stream, device};
use cresset_tensor::{DType, Device, Error, Result, Tensor};
use std::process::{Child, Command, Stdio};
use std::thread;

const DEVICES: [(&str, &str); 1] = [("CRESSET_SIM_DEVICES", "3")];

/// Runs `body` as each of three ranks, on a thread and a device of its own.
fn threads(body: impl Fn(&Communicator, Device) -> Result<()> + Sync) {
    let root = RootInfo::new(npu()).unwrap();
    thread::scope(|scope| {
        for rank in 0..3 {
            let (root, body) = (&root, &body);
            scope.spawn(move || {
                let own = device(rank as u8);
                let group = Communicator::join(own, root, rank, 3, "threads").unwrap();
                body(&group, own).unwrap();
            });
        }
    });
}

/// What a rank brings: numbers that tell rank and place.
fn brought(rank: u32, count: usize, on: Device) -> Result<Tensor> {
    let numbers: Vec<f32> = (0..count).map(|at| (rank as usize * 100 + at) as f32).collect();
    Tensor::from_slice(&numbers, [count])?.to(on)
}

fn numbers(tensor: &Tensor) -> Result<Vec<f32>> {
    tensor.to(Device::CPU)?.to_vec()
}

#[test]
fn threads_reduce_gather_and_scatter_tensors() {
    alone("collective::threads_reduce_gather_and_scatter_tensors", &DEVICES, || {
        threads(|group, own| {
            let rank = group.rank();
            assert_eq!((group.size(), group.name(), group.device()), (3, "threads", own));

            let x = brought(rank, 2, own)?;
            let version = x.version();
            group.all_reduce(&x, Reduction::Sum)?.wait()?;
            assert_eq!(numbers(&x)?, [300.0, 303.0]);
            assert!(x.version() > version, "it was changed in place");

            let x = brought(rank, 2, own)?;
            group.all_reduce(&x, Reduction::Max)?.wait()?;
            assert_eq!(numbers(&x)?, [200.0, 201.0]);

            let x = brought(rank, 2, own)?;
            group.reduce(&x, Reduction::Min, 1)?.wait()?;
            let kept = rank as f32 * 100.0;
            assert_eq!(numbers(&x)?, if rank == 1 { [0.0, 1.0] } else { [kept, kept + 1.0] });

            let x = brought(rank, 2, own)?;
            group.broadcast(&x, 2)?.wait()?;
            assert_eq!(numbers(&x)?, [200.0, 201.0]);

            let (x, all) = (brought(rank, 2, own)?, Tensor::zeros([6], own)?);
            group.all_gather(&x, &all)?.wait()?;
            assert_eq!(numbers(&all)?, [0.0, 1.0, 100.0, 101.0, 200.0, 201.0]);

            let (x, part) = (brought(rank, 6, own)?, Tensor::zeros([2], own)?);
            group.reduce_scatter(&x, &part, Reduction::Sum)?.wait()?;
            let first = 300.0 + 6.0 * rank as f32;
            assert_eq!(numbers(&part)?, [first, first + 3.0]);
            group.barrier()?.synchronize()?;
            group.check()
        });
    });
}

#[test]
fn every_element_type_is_carried_and_numbers_are_summed() {
    alone("collective::every_element_type_is_carried_and_numbers_are_summed", &DEVICES, || {
        threads(|group, own| {
            for dtype in DType::ALL {
                let x = Tensor::ones([5], own)?.to_dtype(dtype)?;
                group.broadcast(&x, 0)?.wait()?;
                assert_eq!(x.to_dtype(DType::F32)?.to_vec::<f32>()?, [1.0; 5], "{dtype}");
                let summed = group.all_reduce(&x, Reduction::Sum).map(|queued| queued.wait());
                if dtype == DType::Bool {
                    let error = summed.expect_err("truth values have no sum").to_string();
                    assert!(error.contains("truth values"), "{error}");
                    continue;
                }
                summed??;
                assert_eq!(x.to_dtype(DType::F32)?.to_vec::<f32>()?, [3.0; 5], "{dtype}");
            }
            Ok(())
        });
    });
}

#[test]
fn messages_go_around_a_ring() {
    alone("collective::messages_go_around_a_ring", &DEVICES, || {
        threads(|group, own| {
            let (next, last) = ((group.rank() + 1) % 3, (group.rank() + 2) % 3);
            let (mine, got) = (brought(group.rank(), 3, own)?, Tensor::zeros([3], own)?);
            // One rank must listen first, or all would wait for each other to.
            if group.rank() == 0 {
                group.receive(&got, last)?.wait()?;
                group.send(&mine, next)?.wait()?;
            } else {
                group.send(&mine, next)?.wait()?;
                group.receive(&got, last)?.wait()?;
            }
            assert_eq!(numbers(&got)?, numbers(&brought(last, 3, own)?)?);
            Ok(())
        });
    });
}

#[test]
fn a_collective_waits_for_what_was_queued_before_and_is_waited_for_by_what_is_queued_after() {
    let name =
        "collective::a_collective_waits_for_what_was_queued_before_and_is_waited_for_by_what_is_queued_after";
    // Tasks of this device wait for a time by chance, so that only what orders them keeps them in order.
    let slow = [DEVICES[0], ("CRESSET_SIM_DELAY_US", "300"), ("CRESSET_SIM_ASYNC", "random:5")];
    alone(name, &slow, || {
        threads(|group, own| {
            for round in 0..10 {
                let x = brought(group.rank(), 4, own)?.add(round)?.mul(2)?;
                let queued = group.all_reduce(&x, Reduction::Sum)?;
                let beside = brought(0, 4, own)?.mul(3)?;
                queued.wait()?;
                let y = x.add(&beside)?;
                // Memory of `x` may be used again only after the collective is done with it.
                drop(x);
                let expected = |at: f32| 2.0 * (300.0 + 3.0 * at + 3.0 * round as f32) + 3.0 * at;
                assert_eq!(numbers(&y)?, [0.0, 1.0, 2.0, 3.0].map(expected));
            }
            Ok(())
        });
    });
}

#[test]
fn what_cannot_be_communicated_is_refused_with_what_could() {
    let device = npu();
    let group = Communicator::join(device, &RootInfo::new(device).unwrap(), 0, 1, "alone").unwrap();
    let text = |result: Result<cresset_npu::Queued>| {
        let error: Error = result.err().expect("it is refused");
        error.to_string()
    };
    let x = Tensor::ones([2, 3], device).unwrap();
    let told = text(group.all_reduce(&Tensor::ones([2], ()).unwrap(), Reduction::Sum));
    assert!(told.contains("all_reduce") && told.contains("a tensor on cpu"), "{told}");
    let told = text(group.broadcast(&x.t().unwrap(), 0));
    assert!(told.contains("shape [3, 2] and strides [1, 3] has gaps"), "{told}");
    let told = text(group.broadcast(&x, 4));
    assert!(told.contains("there is no rank 4: there are 1"), "{told}");
    let told = text(group.send(&x, 0));
    assert!(told.contains("rank 0 is this rank itself"), "{told}");
    let told = text(group.all_gather(&x, &Tensor::ones([7], device).unwrap()));
    assert!(told.contains("parts of 6 elements of f32 and 7 elements of f32"), "{told}");
    let told = Communicator::join(device, &RootInfo::new(device).unwrap(), 0, 1, "").unwrap_err().to_string();
    assert!(told.contains("cannot name a group"), "{told}");
    let told = RootInfo::from_bytes(&[1, 2]).unwrap_err().to_string();
    assert!(told.contains("root information of 2 bytes, expected 4108"), "{told}");
    assert_eq!(group.stream().device(), Stream::current(device).unwrap().device());
}

/// Says which rank a process is, and where the root information lies.
const RANK: &str = "CRESSET_TEST_RANK";
const ROOT: &str = "CRESSET_TEST_ROOT";

/// Starts this test program as a rank that runs `test` alone.
fn start(test: &str, rank: u32, root: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(RANK, rank.to_string())
        .env(ROOT, root)
        .envs([("CRESSET_SIM_DEVICES", "2"), ("HCCL_EXEC_TIMEOUT", "20")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs `body` as two processes, and gives back how each ended. In a rank it does not return.
fn processes(test: &str, body: impl FnOnce(&Communicator, Device) -> Result<()>) -> Vec<(bool, String)> {
    if let Ok(rank) = std::env::var(RANK) {
        let (rank, own) = (rank.parse().unwrap(), npu());
        let own = Device { index: rank as u8, ..own };
        let root = RootInfo::from_bytes(&std::fs::read(std::env::var(ROOT).unwrap()).unwrap()).unwrap();
        let group = Communicator::join(own, &root, rank, 2, "processes").unwrap();
        match body(&group, own) {
            Ok(()) => std::process::exit(0),
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(3);
            }
        }
    }
    let file = format!("cresset-root-{}-{}", std::process::id(), test.replace("::", "-"));
    let file = std::env::temp_dir().join(file);
    std::fs::write(&file, RootInfo::new(npu()).unwrap().as_bytes()).unwrap();
    let ranks: Vec<Child> = (0..2).map(|rank| start(test, rank, &file)).collect();
    let ends = ranks.into_iter().map(|rank| {
        let output = rank.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), text)
    });
    let ends = ends.collect();
    std::fs::remove_file(&file).unwrap();
    ends
}

#[test]
fn processes_reduce_more_than_fits_at_once() {
    let ends = processes("collective::processes_reduce_more_than_fits_at_once", |group, own| {
        let x = Tensor::full([700_001], 1.5 + f64::from(group.rank()), own)?;
        group.all_reduce(&x, Reduction::Sum)?.wait()?;
        assert_eq!(x.sub(4.0)?.abs()?.max()?.item()?.as_f64(), 0.0);
        Ok(())
    });
    assert!(ends.iter().all(|(well, _)| *well), "{ends:?}");
}

#[test]
fn a_process_that_dies_is_named_to_the_one_that_waits() {
    let ends = processes("collective::a_process_that_dies_is_named_to_the_one_that_waits", |group, own| {
        let x = Tensor::ones([4], own)?;
        group.all_reduce(&x, Reduction::Sum)?.synchronize()?;
        if group.rank() == 1 {
            std::process::abort();
        }
        group.all_reduce(&x, Reduction::Sum)?.wait()?;
        x.to_vec::<f32>().map(drop)
    });
    assert!(!ends[0].0 && ends[0].1.contains("rank 1 (process "), "{}", ends[0].1);
    assert!(ends[0].1.contains("is gone") && ends[0].1.contains("HcclAllReduce"), "{}", ends[0].1);
}
