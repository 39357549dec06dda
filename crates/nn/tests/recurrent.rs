//! Recurrent layers as a user sees them. Their numbers are held against torch's recorded ones.

use cresset_nn::{
    DType, Forward, Gru, Lstm, LstmCell, Module, Rnn, RnnCell, Tensor, pack_padded_sequence, pack_sequence,
    pad_packed_sequence,
};
use cresset_tensor::autograd::{Pass, grad};
use cresset_tensor::manual_seed;

fn shapes(module: &dyn Module) -> Vec<(String, Vec<usize>)> {
    module.named_parameters().into_iter().map(|(name, tensor)| (name, tensor.shape().to_vec())).collect()
}

#[test]
fn parameters_have_the_names_and_shapes_of_torch() {
    let lstm = Lstm::new(3, 4).unwrap().num_layers(2).unwrap().bidirectional(true).unwrap();
    let shapes = shapes(&lstm.proj_size(2).unwrap());
    let names: Vec<&str> = shapes.iter().map(|(name, _)| name.as_str()).collect();
    let first = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"];
    assert_eq!(names[..5], first);
    assert_eq!(names[5..10], first.map(|name| format!("{name}_reverse")));
    assert_eq!(names[10..15], first.map(|name| name.replace("l0", "l1")));
    let sizes: Vec<&[usize]> = shapes.iter().map(|(_, shape)| shape.as_slice()).collect();
    assert_eq!(sizes[..5], [&[16, 3][..], &[16, 2], &[16], &[16], &[2, 4]]);
    assert_eq!(sizes[10..12], [&[16, 4][..], &[16, 2]]);
}

#[test]
fn weights_start_within_the_root_of_the_hidden_size() {
    let gru = Gru::new(3, 16).unwrap();
    for (name, tensor) in gru.named_parameters() {
        let numbers = tensor.to_vec::<f32>().unwrap();
        let most = numbers.iter().fold(0f32, |most, x| most.max(x.abs()));
        assert!(most <= 0.25 && most > 0.2, "{name} reaches {most}");
    }
}

#[test]
fn options_keep_the_weights_that_still_fit() {
    let rnn = Rnn::new(2, 3).unwrap();
    let before = rnn.named_parameters()[0].1.to_vec::<f32>().unwrap();
    let rnn = rnn.num_layers(2).unwrap().bidirectional(true).unwrap().bias(false).unwrap();
    assert_eq!(rnn.named_parameters()[0].1.to_vec::<f32>().unwrap(), before);
}

#[test]
fn a_stack_of_one_step_is_a_cell() {
    let (lstm, cell) = (Lstm::new(2, 3).unwrap(), LstmCell::new(2, 3).unwrap());
    let state: Vec<_> =
        lstm.state_dict().into_iter().map(|(name, tensor)| (name.replace("_l0", ""), tensor)).collect();
    cell.load_state_dict(&state).unwrap();
    let x = Tensor::randn([1, 4, 2], ()).unwrap();
    let (_, (hidden, memory)) = lstm.call((&x, None)).unwrap();
    let (other_hidden, other_memory) = cell.call((&x.select(0, 0).unwrap(), None)).unwrap();
    // A layer adds up both biases first.
    close(&numbers(&hidden), &numbers(&other_hidden), 1e-6);
    close(&numbers(&memory), &numbers(&other_memory), 1e-6);
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

fn close(found: &[f64], wanted: &[f64], within: f64) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= within * (1.0 + wanted.abs()), "{found} is not {wanted}");
    }
}

/// A stack of two layers in both directions.
fn stack(bias: bool) -> Lstm {
    let lstm = Lstm::new(3, 4).unwrap().num_layers(2).unwrap().bidirectional(true).unwrap();
    lstm.bias(bias).unwrap().batch_first(true).unwrap()
}

/// What a stack with these weights gives, its gradients, and gradients of a sum of those.
fn lstm_in(dtype: DType, bias: bool, weights: &[(String, Tensor)], inputs: &[Tensor; 3]) -> Vec<Vec<f64>> {
    let lstm = stack(bias);
    lstm.load_state_dict(weights).unwrap();
    lstm.to(dtype).unwrap();
    let leaf = |tensor: &Tensor| tensor.to_dtype(dtype).unwrap().detach().unwrap().with_grad().unwrap();
    let [x, hidden, memory] = inputs.each_ref().map(leaf);
    let (out, (last, kept)) = lstm.call((&x, Some((&hidden, &memory)))).unwrap();
    let loss = out.mul(&out).unwrap().sum().unwrap();
    let loss = loss.add(&last.sum().unwrap()).unwrap().add(&kept.mul(&kept).unwrap().sum().unwrap()).unwrap();
    let parameters = lstm.named_parameters();
    let mut inputs: Vec<&Tensor> = parameters.iter().map(|(_, tensor)| tensor).collect();
    inputs.extend([&x, &hidden, &memory]);
    let once = Pass { retain_graph: true, ..Pass::default() };
    let first = grad(&[(&loss, None)], &inputs, once).unwrap();
    let twice = Pass { create_graph: true, ..Pass::default() };
    let again = grad(&[(&loss, None)], &inputs, twice).unwrap();
    let square = |grad: &Option<Tensor>| grad.as_ref().unwrap().pow(2.0).unwrap().sum().unwrap();
    let sum = again.iter().map(square).reduce(|a, b| a.add(&b).unwrap()).unwrap();
    let second = grad(&[(&sum, None)], &inputs, Pass::default()).unwrap();
    let grads = first.iter().chain(&again).chain(&second).flatten();
    [&out, &last, &kept].into_iter().chain(grads).map(numbers).collect()
}

/// Of `f32` each layer is one operator, of `f64` it is run step by step.
#[test]
fn one_operator_for_a_layer_gives_what_its_steps_give_up_to_second_gradients() {
    for bias in [true, false] {
        let weights = stack(bias).state_dict();
        let inputs = [[2, 5, 3], [4, 2, 4], [4, 2, 4]].map(|shape| Tensor::randn(shape, ()).unwrap());
        let run = |dtype| lstm_in(dtype, bias, &weights, &inputs);
        let (one, steps) = (run(DType::F32), run(DType::F64));
        assert_eq!(one.len(), steps.len());
        one.iter().zip(&steps).for_each(|(one, steps)| close(one, steps, 1e-4));
    }
}

#[test]
fn a_layer_whose_states_alone_are_used_has_gradients() {
    let lstm = Lstm::new(2, 3).unwrap();
    let x = Tensor::ones([4, 1, 2], ()).unwrap().with_grad().unwrap();
    let (_, (_, memory)) = lstm.call((&x, None)).unwrap();
    memory.sum().unwrap().backward().unwrap();
    assert!(numbers(&x.grad().unwrap()).iter().all(|grad| *grad != 0.0));
}

#[test]
fn dropout_acts_between_layers_and_in_training_only() {
    manual_seed(1);
    let x = Tensor::randn([5, 2, 3], ()).unwrap();
    let gru = Gru::new(3, 4).unwrap().num_layers(2).unwrap().dropout(0.5).unwrap();
    let run = || gru.call((&x, None)).unwrap().0.to_vec::<f32>().unwrap();
    assert_ne!(run(), run());
    gru.eval();
    assert_eq!(run(), run());
    let single = Gru::new(3, 4).unwrap().dropout(0.5).unwrap();
    let run = || single.call((&x, None)).unwrap().0.to_vec::<f32>().unwrap();
    assert_eq!(run(), run());
}

#[test]
fn what_does_not_fit_is_refused_with_the_name_of_the_layer() {
    let ones = |shape: &[usize]| Tensor::ones(shape, ()).unwrap();
    let gru = Gru::new(3, 4).unwrap();
    let told = |input: &Tensor, hidden: Option<&Tensor>| gru.call((input, hidden)).unwrap_err().to_string();
    assert_eq!(
        told(&ones(&[5, 2, 4]), None),
        "Gru: input is [5, 2, 4], expected [steps, batch, 3] or [steps, 3]"
    );
    assert_eq!(
        told(&ones(&[5, 2, 3]), Some(&ones(&[1, 1, 4]))),
        "Gru: h_0 is f32 [1, 1, 4], expected f32 [1, 2, 4]"
    );
    let cell = RnnCell::new(3, 4).unwrap();
    assert_eq!(
        cell.call((&ones(&[2, 3]), Some(&ones(&[3, 4])))).unwrap_err().to_string(),
        "RnnCell: hidden is [3, 4] with an input of [2, 3], expected [batch, 4] or [4]"
    );
    assert_eq!(Lstm::new(3, 0).err().unwrap().to_string(), "Lstm: hidden_size is 0, expected at least 1");
    assert_eq!(
        Lstm::new(3, 4).unwrap().proj_size(4).err().unwrap().to_string(),
        "Lstm: proj_size is 4, expected below the hidden_size of 4"
    );
}

/// What torch packs of the same numbers.
#[test]
fn sequences_are_packed_step_by_step_the_longest_first() {
    let x = Tensor::arange(24).unwrap().add(1).unwrap().to(DType::F32).unwrap().reshape([4, 3, 2]).unwrap();
    let packed = pack_padded_sequence(&x, &[2, 4, 1], false, false).unwrap();
    assert_eq!(
        packed.data().to_vec::<f32>().unwrap(),
        [3.0, 4.0, 1.0, 2.0, 5.0, 6.0, 9.0, 10.0, 7.0, 8.0, 15.0, 16.0, 21.0, 22.0]
    );
    assert_eq!(packed.batch_sizes(), [3, 2, 1, 1]);
    assert_eq!(packed.sorted_indices(), Some(&[1, 0, 2][..]));
    let (padded, lengths) = pad_packed_sequence(&packed, false, -1.0, Some(5)).unwrap();
    assert_eq!((padded.shape(), lengths), (&[5, 3, 2][..], vec![2, 4, 1]));
    assert_eq!(padded.select(1, 0).unwrap().to_vec::<f32>().unwrap()[..6], [1.0, 2.0, 7.0, 8.0, -1.0, -1.0]);
    let turned = pack_padded_sequence(&x.transpose(0, 1).unwrap(), &[2, 4, 1], true, false).unwrap();
    assert_eq!(turned.data().to_vec::<f32>().unwrap(), packed.data().to_vec::<f32>().unwrap());
}

#[test]
fn packed_sequences_are_read_as_if_each_were_alone() {
    let lengths = [2usize, 5, 3];
    let x = Tensor::randn([5, 3, 4], DType::F64).unwrap();
    let alone = |i: usize| x.narrow(1, i as isize, 1).unwrap().narrow(0, 0, lengths[i]).unwrap();
    let near = |a: &Tensor, b: &Tensor| {
        let difference = a.detach().unwrap().sub(&b.detach().unwrap()).unwrap().abs().unwrap();
        assert_eq!(a.shape(), b.shape());
        assert!(difference.max().unwrap().item().unwrap().as_f64() < 1e-12, "{a} {b}");
    };
    let packed = pack_padded_sequence(&x, &lengths, false, false).unwrap();
    let lstm = Lstm::new(4, 3).unwrap().num_layers(2).unwrap().bidirectional(true).unwrap();
    lstm.to(DType::F64).unwrap();
    let (output, (hidden, memory)) = lstm.call_packed(&packed, None).unwrap();
    let (padded, _) = pad_packed_sequence(&output, false, 0.0, None).unwrap();
    let gru = Gru::new(4, 3).unwrap();
    gru.to(DType::F64).unwrap();
    let states = Tensor::randn([1, 3, 3], DType::F64).unwrap();
    let (gated, last) = gru.call_packed(&packed, Some(&states)).unwrap();
    let (gated, _) = pad_packed_sequence(&gated, false, 0.0, None).unwrap();
    for (i, &length) in lengths.iter().enumerate() {
        let one = |x: &Tensor| x.narrow(1, i as isize, 1).unwrap();
        let (expected, (h, c)) = lstm.call((&alone(i), None)).unwrap();
        near(&one(&padded).narrow(0, 0, length).unwrap(), &expected);
        near(&one(&hidden), &h);
        near(&one(&memory), &c);
        let (expected, h) = gru.call((&alone(i), Some(&one(&states)))).unwrap();
        near(&one(&gated).narrow(0, 0, length).unwrap(), &expected);
        near(&one(&last), &h);
    }
    padded.sum().unwrap().backward().unwrap();
    assert!(lstm.parameters().iter().all(|weight| weight.grad().is_some()));
}

#[test]
fn lengths_that_cannot_be_packed_are_refused() {
    let x = Tensor::ones([4, 3, 2], ()).unwrap();
    let refused =
        |lengths: &[usize]| pack_padded_sequence(&x, lengths, false, true).expect_err("an error").to_string();
    assert_eq!(
        refused(&[2, 4, 1]),
        "pack_padded_sequence: lengths are [2, 4, 1], expected the longest first, or enforce_sorted to be off"
    );
    for lengths in [&[4, 2, 0][..], &[5, 2, 1], &[4, 2]] {
        let expected =
            format!("pack_padded_sequence: lengths are {lengths:?}, expected 3 of them, each from 1 to 4");
        assert_eq!(refused(lengths), expected);
    }
    let packed =
        pack_sequence(&[&Tensor::ones([3, 2], ()).unwrap(), &Tensor::ones([1, 2], ()).unwrap()], true);
    let packed = packed.unwrap();
    assert_eq!(packed.batch_sizes(), [2, 1, 1]);
    let short = pad_packed_sequence(&packed, false, 0.0, Some(2)).expect_err("an error").to_string();
    assert_eq!(short, "pad_packed_sequence: total_length is 2, expected at least 3, the longest sequence");
    let wide = Gru::new(5, 2).unwrap().call_packed(&packed, None).expect_err("an error").to_string();
    assert!(wide.starts_with("Gru: input is [4, 2]"), "{wide}");
    assert!(pack_sequence(&[], true).is_err());
}
