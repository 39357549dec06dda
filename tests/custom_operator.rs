//! An operator from outside the workspace's crates: the one of `examples/custom_op.rs`.

#[path = "../examples/custom_op.rs"]
mod example;

#[test]
fn an_operator_of_ones_own_runs_and_has_a_gradient() {
    example::main().unwrap();
}
