//! Communication between devices: of threads, and of processes.

use crate::support::*;
use cresset_acl::code;
use cresset_acl::collective::{element, operation, result};
use cresset_acl::structure::RootInfo;
use cresset_acl::types::{Communicator, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;
use std::thread;
use std::time::{Duration, Instant};

/// Runs `body` as each of some ranks, on a thread with a context of its own.
fn threads(ranks: u32, body: impl Fn(u32, Communicator) + Sync) {
    open();
    let root = root();
    thread::scope(|scope| {
        for rank in 0..ranks {
            let (root, body) = (&root, &body);
            scope.spawn(move || {
                open();
                let communicator = join(root, rank, ranks);
                body(rank, communicator);
                // SAFETY: a plain call.
                ok(unsafe { HcclCommDestroy(communicator) });
            });
        }
    });
}

fn root() -> RootInfo {
    let mut root = RootInfo { bytes: [0; 4108] };
    // SAFETY: the place may be written.
    ok(unsafe { HcclGetRootInfo(&mut root) });
    root
}

fn join(root: &RootInfo, rank: u32, ranks: u32) -> Communicator {
    let mut communicator = null_mut();
    // SAFETY: the places may be read and written.
    ok(unsafe { HcclCommInitRootInfo(ranks, root, rank, &mut communicator) });
    communicator
}

/// What a rank brings: numbers that tell rank and place.
fn brought(rank: u32, count: usize) -> Vec<f32> {
    (0..count).map(|at| (rank as usize * 1000 + at) as f32).collect()
}

fn floats(block: &Block, count: usize) -> Vec<f32> {
    synchronize().unwrap();
    block.get(count)
}

#[test]
fn ranks_know_their_group() {
    threads(3, |rank, communicator| {
        let (mut ranks, mut own, mut name, mut error) = (0, 9, [0; 128], -1);
        // SAFETY: the places may be written.
        unsafe {
            ok(HcclGetRankSize(communicator, &mut ranks));
            ok(HcclGetRankId(communicator, &mut own));
            ok(HcclGetCommName(communicator, name.as_mut_ptr()));
            ok(HcclGetCommAsyncError(communicator, &mut error));
        }
        assert_eq!((ranks, own, error), (3, rank, result::SUCCESS));
        assert_ne!(name[0], 0, "a group has a name");
    });
}

#[test]
fn threads_reduce_to_all_to_one_and_to_each_a_part() {
    const COUNT: usize = 6;
    threads(3, |rank, communicator| {
        let (sent, got) = (Block::of(&brought(rank, COUNT)), Block::of(&[-1.0f32; COUNT]));
        let (count, float, stream) = (COUNT as u64, element::FLOAT, null_mut());
        let sums: Vec<f32> = (0..COUNT).map(|at| (3000 + 3 * at) as f32).collect();
        // SAFETY: device memory.
        unsafe {
            ok(HcclAllReduce(sent.0, got.0, count, float, operation::SUM, communicator, stream));
            assert_eq!(floats(&got, COUNT), sums);
            ok(HcclAllReduce(sent.0, got.0, count, float, operation::MAXIMUM, communicator, stream));
            assert_eq!(floats(&got, COUNT), brought(2, COUNT));

            got.set(&[-1.0f32; COUNT]);
            ok(HcclReduce(sent.0, got.0, count, float, operation::SUM, 1, communicator, stream));
            let expected = if rank == 1 { sums.clone() } else { vec![-1.0; COUNT] };
            assert_eq!(floats(&got, COUNT), expected, "only the root gets the sum");

            ok(HcclReduceScatter(sent.0, got.0, 2, float, operation::SUM, communicator, stream));
            assert_eq!(floats(&got, 2), sums[rank as usize * 2..][..2]);
        }
    });
}

#[test]
fn threads_gather_broadcast_scatter_and_exchange() {
    threads(3, |rank, communicator| {
        let (sent, got) = (Block::of(&brought(rank, 3)), Block::of(&[-1.0f32; 9]));
        let (float, stream) = (element::FLOAT, null_mut());
        let all: Vec<f32> = (0..3).flat_map(|rank| brought(rank, 3)).collect();
        // SAFETY: device memory.
        unsafe {
            ok(HcclAllGather(sent.0, got.0, 3, float, communicator, stream));
            assert_eq!(floats(&got, 9), all);
            ok(HcclScatter(got.0, got.0, 3, float, 2, communicator, stream));
            assert_eq!(floats(&got, 3), brought(rank, 3));
            ok(HcclAlltoAll(sent.0, 1, float, got.0, 1, float, communicator, stream));
            assert_eq!(floats(&got, 3), [rank as f32, 1000.0 + rank as f32, 2000.0 + rank as f32]);
            ok(HcclBroadcast(sent.0, 3, float, 2, communicator, stream));
            assert_eq!(floats(&sent, 3), brought(2, 3));
            ok(HcclBarrier(communicator, stream));
            synchronize().unwrap();
        }
    });
}

#[test]
fn messages_larger_than_a_mailbox_go_round_a_ring() {
    const COUNT: usize = 50_000;
    threads(3, |rank, communicator| {
        let (sent, got) = (Block::of(&brought(rank, COUNT)), Block::new(COUNT * 4));
        let (next, last) = ((rank + 1) % 3, (rank + 2) % 3);
        let (count, float, stream) = (COUNT as u64, element::FLOAT, null_mut());
        // SAFETY: device memory.
        let send = || ok(unsafe { HcclSend(sent.0, count, float, next, communicator, stream) });
        // SAFETY: device memory.
        let receive = || ok(unsafe { HcclRecv(got.0, count, float, last, communicator, stream) });
        // Somebody has to send first.
        if rank == 0 {
            send();
            receive();
        } else {
            receive();
            send();
        }
        assert_eq!(floats(&got, COUNT), brought(last, COUNT));
    });
}

#[test]
fn a_collective_waits_for_what_its_stream_did_before() {
    if !is_child() {
        let test = "collective::a_collective_waits_for_what_its_stream_did_before";
        return alone(test, &[("CRESSET_SIM_DELAY_US", "5000")]);
    }
    threads(2, |rank, communicator| {
        let (stream, block) = (new_stream(), Block::of(&[0i32; 16]));
        let (count, int) = (16, element::INT32);
        // SAFETY: device memory.
        unsafe {
            ok(aclrtMemsetAsync(block.0, 64, rank as i32 + 1, 64, stream));
            ok(HcclAllReduce(block.0, block.0, count, int, operation::SUM, communicator, stream));
            ok(HcclAllReduce(block.0, block.0, count, int, operation::SUM, communicator, stream));
            ok(aclrtSynchronizeStream(stream));
            assert_eq!(block.get::<i32>(16), [0x0606_0606; 16]);
            ok(aclrtDestroyStream(stream));
        }
    });
}

#[test]
fn one_thread_drives_a_group_of_several_devices() {
    if !is_child() {
        let test = "collective::one_thread_drives_a_group_of_several_devices";
        return alone(test, &[("CRESSET_SIM_DEVICES", "2")]);
    }
    let (mut devices, mut communicators) = ([0, 1], [null_mut(); 2]);
    // SAFETY: as many devices and places as there are said to be; device memory.
    unsafe {
        aclInit(std::ptr::null());
        ok(aclrtSetDevice(0));
        ok(HcclCommInitAll(2, devices.as_mut_ptr(), communicators.as_mut_ptr()));
        let mut blocks = Vec::new();
        for device in 0..2 {
            ok(aclrtSetDevice(device));
            let block = Block::of(&[device + 1; 4]);
            let (int, communicator) = (element::INT32, communicators[device as usize]);
            ok(HcclAllReduce(block.0, block.0, 4, int, operation::PRODUCT, communicator, null_mut()));
            blocks.push(block);
        }
        for device in 0..2 {
            ok(aclrtSetDevice(device));
            synchronize().unwrap();
            assert_eq!(blocks[device as usize].get::<i32>(4), [2; 4]);
        }
    }
}

#[test]
fn wrong_arguments_are_refused_with_codes_of_the_library() {
    open();
    let (root, block, mut host) = (root(), Block::new(64), [0f32; 16]);
    let (sum, float) = (operation::SUM, element::FLOAT);
    let mut communicator = null_mut();
    let unknown = RootInfo { bytes: [1; 4108] };
    // SAFETY: wrong on purpose, and only looked at.
    unsafe {
        assert_eq!(failure(HcclGetRootInfo(null_mut())).0, result::POINTER);
        assert_eq!(
            failure(HcclCommInitRootInfo(1, std::ptr::null(), 0, &mut communicator)).0,
            result::POINTER
        );
        assert_eq!(failure(HcclCommInitRootInfo(1, &root, 0, null_mut())).0, result::POINTER);
        assert_eq!(failure(HcclCommInitRootInfo(1, &unknown, 0, &mut communicator)).0, result::PARAMETER);
        let (code, text) = failure(HcclCommInitRootInfo(2, &root, 2, &mut communicator));
        assert_eq!(code, result::PARAMETER);
        assert!(text.contains("rank 2 of 2"), "{text}");

        let alone = join(&root, 0, 1);
        let reduce = |buffer: *mut c_void, dtype, operation, communicator| {
            failure(HcclAllReduce(buffer, buffer, 16, dtype, operation, communicator, null_mut())).0
        };
        assert_eq!(reduce(null_mut(), float, sum, alone), result::POINTER);
        assert_eq!(reduce(host.as_mut_ptr().cast(), float, sum, alone), result::PARAMETER);
        assert_eq!(reduce(block.0, 99, sum, alone), result::NOT_SUPPORT);
        assert_eq!(reduce(block.0, float, 99, alone), result::PARAMETER);
        assert_eq!(reduce(block.0, float, sum, null_mut()), result::POINTER);
        let (float, stream) = (element::FLOAT, null_mut());
        assert_eq!(failure(HcclBroadcast(block.0, 16, float, 1, alone, stream)).0, result::PARAMETER);
        assert_eq!(failure(HcclSend(block.0, 16, float, 7, alone, stream)).0, result::PARAMETER);
        ok(HcclCommDestroy(alone));
        assert_eq!(failure(HcclCommDestroy(alone)).0, result::NOT_FOUND);
        assert_eq!(reduce(block.0, float, sum, alone), result::NOT_FOUND);
    }
}

#[test]
fn a_rank_that_never_joins_is_named_when_time_is_up() {
    if !is_child() {
        let test = "collective::a_rank_that_never_joins_is_named_when_time_is_up";
        return alone(test, &[("HCCL_CONNECT_TIMEOUT", "1")]);
    }
    open();
    let (root, mut communicator) = (root(), null_mut());
    // SAFETY: the places may be read and written.
    let (code, text) = failure(unsafe { HcclCommInitRootInfo(2, &root, 0, &mut communicator) });
    assert_eq!(code, result::TIMEOUT);
    assert!(text.contains("rank 1 did not join within 1 s"), "{text}");
}

#[test]
fn a_rank_that_comes_late_is_named_when_time_is_up() {
    if !is_child() {
        let test = "collective::a_rank_that_comes_late_is_named_when_time_is_up";
        return alone(test, &[("HCCL_EXEC_TIMEOUT", "1")]);
    }
    let barrier = std::sync::Barrier::new(2);
    threads(2, |rank, communicator| {
        if rank == 0 {
            // SAFETY: a plain call.
            ok(unsafe { HcclBarrier(communicator, null_mut()) });
            let (code, text) = synchronize().unwrap_err();
            assert_eq!(code, code::RT_TASK_TIMEOUT);
            assert!(text.contains("HcclBarrier") && text.contains("rank 1 did not come"), "{text}");
            let mut error = 0;
            // SAFETY: the place may be written.
            ok(unsafe { HcclGetCommAsyncError(communicator, &mut error) });
            assert_eq!(error, result::TIMEOUT);
        }
        barrier.wait();
    });
}

/// A folder for one test that several processes work on.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("cresset-sim-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs a test once more per rank, each in a process of its own.
fn processes(test: &str, folder: &Folder, ranks: u32) -> Vec<Child> {
    let spawn = |rank: u32| {
        Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env("CRESSET_SIM_TEST_CHILD", &folder.0)
            .env("CRESSET_SIM_TEST_RANK", rank.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    (0..ranks).map(spawn).collect()
}

#[track_caller]
fn expect_success(child: Child) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stdout));
}

/// This process's rank, and a communicator of all: rank 0 tells the others by a file.
fn join_as_process(ranks: u32) -> (u32, Communicator) {
    open();
    let rank: u32 = std::env::var("CRESSET_SIM_TEST_RANK").unwrap().parse().unwrap();
    let folder = std::env::var_os("CRESSET_SIM_TEST_CHILD").unwrap();
    let (partial, path) = (Path::new(&folder).join("partial"), Path::new(&folder).join("root"));
    if rank == 0 {
        fs::write(&partial, root().bytes).unwrap();
        fs::rename(&partial, &path).unwrap();
    }
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "rank 0 did not start");
        thread::sleep(Duration::from_millis(5));
    }
    let root = RootInfo { bytes: fs::read(path).unwrap().try_into().unwrap() };
    (rank, join(&root, rank, ranks))
}

#[test]
fn processes_reduce_more_than_fits_into_one_round() {
    if !is_child() {
        let folder = Folder::new("reduce");
        let test = "collective::processes_reduce_more_than_fits_into_one_round";
        return processes(test, &folder, 3).into_iter().for_each(expect_success);
    }
    const COUNT: usize = 700_001;
    let (rank, communicator) = join_as_process(3);
    let (sent, got) = (Block::of(&brought(rank, COUNT)), Block::new(COUNT * 4));
    let (count, float) = (COUNT as u64, element::FLOAT);
    // SAFETY: device memory.
    unsafe {
        ok(HcclAllReduce(sent.0, got.0, count, float, operation::SUM, communicator, null_mut()));
        let sums: Vec<f32> = (0..COUNT).map(|at| (3000 + 3 * at) as f32).collect();
        assert!(floats(&got, COUNT) == sums);
        ok(HcclBroadcast(sent.0, count, float, 1, communicator, null_mut()));
        assert!(floats(&sent, COUNT) == brought(1, COUNT));
        ok(HcclCommDestroy(communicator));
    }
}

#[test]
fn a_process_that_dies_is_named_by_the_others() {
    if !is_child() {
        let folder = Folder::new("dies");
        let mut all = processes("collective::a_process_that_dies_is_named_by_the_others", &folder, 3);
        let died = all.remove(1).wait_with_output().unwrap();
        assert_eq!(died.status.code(), Some(7));
        return all.into_iter().for_each(expect_success);
    }
    let (rank, communicator) = join_as_process(3);
    if rank == 1 {
        std::process::exit(7);
    }
    let block = Block::of(&[1f32; 4]);
    let (float, sum) = (element::FLOAT, operation::SUM);
    // SAFETY: device memory.
    ok(unsafe { HcclAllReduce(block.0, block.0, 4, float, sum, communicator, null_mut()) });
    let (_, text) = synchronize().unwrap_err();
    assert!(text.contains("rank 1"), "{text}");
}
