//! Arguments by position, where the operator in torch's library and the public function take them
//! in another order.

use crate::golden::Passed;
use crate::value::Value;
use cresset_tensor::Scalar;

/// What losses take after their input and target, in the operator's order.
const LOSSES: [(&str, &[&str]); 9] = [
    ("mse_loss", &["reduction"]),
    ("l1_loss", &["reduction"]),
    ("smooth_l1_loss", &["reduction", "beta"]),
    ("huber_loss", &["reduction", "delta"]),
    ("kl_div", &["reduction"]),
    ("binary_cross_entropy", &["weight", "reduction"]),
    ("binary_cross_entropy_with_logits", &["weight", "pos_weight", "reduction"]),
    ("nll_loss", &["weight", "reduction", "ignore_index"]),
    ("cross_entropy", &["weight", "reduction", "ignore_index", "label_smoothing"]),
];

/// How the operators number what the functions name.
const REDUCTIONS: [&str; 3] = ["none", "mean", "sum"];

/// Norms with the switch for a library at the end, which the functions do not take.
const NORMS: [(&str, usize); 4] =
    [("layer_norm", 6), ("group_norm", 6), ("batch_norm", 9), ("instance_norm", 9)];

/// Turns the arguments of the operator that has the public function `name` into the function's.
pub(super) fn of_function(name: &str, passed: &mut Passed) {
    let name = name.trim_start_matches("nn.functional.");
    if let Some((_, names)) = LOSSES.iter().find(|(loss, _)| *loss == name) {
        let given = passed.args.split_off(passed.args.len().min(2));
        // More than the operator takes stays where it is, and is refused there.
        let mut left = given.into_iter();
        passed.kwargs.extend(names.iter().map(|name| (*name).to_owned()).zip(left.by_ref()));
        passed.args.extend(left);
    }
    if let Some((_, reduction)) = passed.kwargs.iter_mut().find(|(name, _)| name == "reduction")
        && let Value::Scalar(Scalar::Int(number)) = reduction
        && let Some(text) = usize::try_from(*number).ok().and_then(|number| REDUCTIONS.get(number))
    {
        *reduction = Value::Text((*text).to_owned());
    }
    if NORMS.contains(&(name, passed.args.len())) {
        passed.args.pop();
        if name.starts_with("batch") || name.starts_with("instance") {
            // Weight and bias come before the running statistics there.
            passed.args[1..5].rotate_left(2);
        }
    }
    // One index per dimension, not one index that is a list.
    if name == "__getitem__"
        && let Some(Value::List(list)) = passed.args.get_mut(1)
    {
        passed.args[1] = Value::Tuple(std::mem::take(list));
    }
}
