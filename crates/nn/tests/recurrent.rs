//! Recurrent layers as a user sees them. Their numbers are held against torch's recorded ones.

use cresset_nn::{Forward, Gru, Lstm, LstmCell, Module, Rnn, RnnCell, Tensor};
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
    assert_eq!(hidden.to_vec::<f32>().unwrap(), other_hidden.to_vec::<f32>().unwrap());
    assert_eq!(memory.to_vec::<f32>().unwrap(), other_memory.to_vec::<f32>().unwrap());
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
