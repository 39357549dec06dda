//! Processes that fork, fail or end while a session runs.

use super::{alone, is_alone, start};
use cresset::prelude::*;

/// What a user's program does between start and stop, and how it fails.
fn fails() -> Result<(), Box<dyn std::error::Error>> {
    let _profiler = Profiler::builder().profile_memory(true).start()?;
    let _scope = record_function("the user's");
    Tensor::ones([2, 3], ())?.mm(&Tensor::ones([2, 3], ())?)?;
    Ok(())
}

#[test]
fn a_users_error_between_start_and_stop_is_what_is_told() {
    let name = "processes::a_users_error_between_start_and_stop_is_what_is_told";
    if is_alone(name) {
        let error = fails().unwrap_err();
        eprintln!("{error}");
        std::process::exit(3);
    }
    let output = start(name, &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("aten::mm") && text.contains("[2, 3]"), "{text}");
}

#[test]
fn a_users_panic_between_start_and_stop_is_what_is_told() {
    let name = "processes::a_users_panic_between_start_and_stop_is_what_is_told";
    if is_alone(name) {
        let _profiler = Profiler::builder().start().unwrap();
        Tensor::ones([2], ()).unwrap();
        panic!("the user's own words");
    }
    let output = start(name, &[]);
    assert_eq!(output.status.code(), Some(101), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the user's own words"), "{output:?}");
}

#[test]
fn a_fork_ends_by_itself_and_leaves_the_parents_session_alone() {
    let name = "processes::a_fork_ends_by_itself_and_leaves_the_parents_session_alone";
    alone(name, &[], || {
        let mut profiler = Profiler::builder().start().unwrap();
        let (x, large) = (Tensor::ones([4], ()).unwrap(), Tensor::ones([1 << 20], ()).unwrap());
        // Threads that help with large tensors are there now, and will not be in the child.
        large.exp().unwrap();
        // SAFETY: the child computes, and ends by exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let seen = x.add(1).unwrap().to_vec::<f32>().unwrap();
            let sum = large.neg().unwrap().sum().unwrap().item().unwrap().as_f64();
            let stopped = profiler.stop();
            std::process::exit(if seen == [2.0; 4] && sum == -1048576.0 && stopped.is_ok() { 5 } else { 1 });
        }
        x.mul(2).unwrap();
        let mut status = 0;
        // SAFETY: the result has a place.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 5, "{status}");
        profiler.stop().unwrap();
        let calls: Vec<&str> = profiler.events().unwrap().map(|event| event.name()).collect();
        assert!(calls.contains(&"aten::mul") && !calls.contains(&"aten::add"), "{calls:?}");
    });
}
