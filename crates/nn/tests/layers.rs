//! Layers: what parity cannot see, such as options that are refused and numbers that are drawn.

use cresset_nn::*;

fn refused<T>(result: Result<T>) -> String {
    result.err().expect("an error").to_string()
}

fn numbers(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, ()).unwrap()
}

#[test]
fn options_that_make_no_sense_are_refused_by_name_and_range() {
    let conv = || Conv2d::new(4, 6, 3).unwrap();
    let told = [
        (refused(Conv2d::new(0, 6, 3)), "Conv2d: in_channels is 0, expected at least 1"),
        (
            refused(Conv2d::new(4, 6, (3, 0))),
            "Conv2d: kernel_size is [3, 0], expected at least 1 in each dimension",
        ),
        (refused(conv().stride(0)), "Conv2d: stride is [0, 0], expected at least 1 in each dimension"),
        (
            refused(conv().groups(4)),
            "Conv2d: groups is 4, expected a divisor of in_channels 4 and out_channels 6",
        ),
        (
            refused(conv().stride(2).unwrap().padding_same()),
            "Conv2d: stride is [2, 2], expected 1 for an output of the same size",
        ),
        (
            refused(ConvTranspose1d::new(1, 1, 3).unwrap().output_padding(1)),
            "ConvTranspose1d: output_padding is [1], expected less than 1 in dimension 0: the larger of stride and \
             dilation",
        ),
        (
            refused(MaxPool2d::new(3).unwrap().padding(2)),
            "MaxPool2d: padding is 2, expected at most 1 in dimension 0: half of a window",
        ),
        (refused(Dropout::new(1.5)), "Dropout: p is 1.5, expected a probability from 0 to 1"),
        (
            refused(BatchNorm1d::new(3).unwrap().eps(0.0)),
            "BatchNorm1d: eps is 0, expected a finite number above 0",
        ),
        (
            refused(GroupNorm::new(3, 4)),
            "GroupNorm: num_groups is 3, expected a divisor of num_channels, which is 4",
        ),
        (
            refused(Embedding::new(4, 2).unwrap().padding_idx(-5)),
            "Embedding: padding_idx is -5, expected a row of 4, counted from the back if negative",
        ),
    ];
    for (found, expected) in told {
        assert_eq!(found, expected);
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused_in_the_name_of_the_layer() {
    let told = [
        (
            refused(Conv2d::new(4, 6, 3).unwrap().call(&ones(&[1, 3, 8, 8]))),
            "Conv2d: expects 4 channels in dimension 1 of its input, not 3: its shape is [1, 3, 8, 8]",
        ),
        (
            refused(Conv1d::new(4, 6, 3).unwrap().call(&ones(&[1, 3, 8, 8]))),
            "Conv1d: expects an input of 2 or 3 dimensions, not one of shape [1, 3, 8, 8]",
        ),
        (
            refused(BatchNorm2d::new(3).unwrap().call(&ones(&[2, 3, 8]))),
            "BatchNorm2d: expects an input of 4 dimensions, not one of shape [2, 3, 8]",
        ),
        (
            refused(LayerNorm::new(4).unwrap().call(&ones(&[2, 3]))),
            "LayerNorm: expects an input whose shape ends with [4], not one of [2, 3]",
        ),
        (
            refused(Linear::new(4, 2).unwrap().call(&ones(&[2, 3]))),
            "Linear: expects 4 features in dimension 1 of its input, not 3: its shape is [2, 3]",
        ),
    ];
    for (found, expected) in told {
        assert_eq!(found, expected);
    }
}

#[test]
fn groups_and_biases_change_the_parameters_that_there_are() {
    let conv = Conv2d::new(4, 8, (3, 1)).unwrap().groups(2).unwrap();
    assert_eq!(conv.weight.tensor().shape(), [8, 2, 3, 1]);
    let conv = conv.bias(false).unwrap();
    assert_eq!(conv.parameters().len(), 1);
    assert_eq!(conv.bias(true).unwrap().parameters().len(), 2);
    let transposed = ConvTranspose2d::new(4, 8, 3).unwrap().groups(2).unwrap();
    assert_eq!(transposed.weight.tensor().shape(), [4, 4, 3, 3]);
}

#[test]
fn a_transposed_convolution_gives_one_of_the_sizes_that_lead_back() {
    let conv = ConvTranspose1d::new(1, 1, 3).unwrap().stride(2).unwrap();
    let x = ones(&[1, 1, 4]);
    assert_eq!(conv.call(&x).unwrap().shape(), [1, 1, 9]);
    assert_eq!(conv.call_to(&x, 10).unwrap().shape(), [1, 1, 10]);
    let error = refused(conv.call_to(&x, 11));
    assert_eq!(error, "ConvTranspose1d: output_size in dimension 0 is 11, expected 9 to 10");
}

#[test]
fn layers_start_within_torch_s_bounds() {
    let within = |x: &Tensor, bound: f32| {
        let x = numbers(x);
        assert!(x.iter().all(|x| x.abs() <= bound), "beyond {bound}");
        assert!(
            x.iter().any(|x| *x > 0.8 * bound) && x.iter().any(|x| *x < -0.8 * bound),
            "not spread to {bound}"
        );
    };
    let linear = Linear::new(16, 64).unwrap();
    within(&linear.weight.tensor(), 0.25);
    within(&linear.bias.unwrap().tensor(), 0.25);
    let conv = Conv2d::new(8, 64, 4).unwrap().groups(2).unwrap();
    within(&conv.weight.tensor(), 0.125);
    within(&conv.bias.unwrap().tensor(), 0.125);
    let norm = BatchNorm2d::new(3).unwrap();
    assert_eq!(numbers(&norm.weight.as_ref().unwrap().tensor()), [1.0; 3]);
    assert_eq!(numbers(&norm.running_var.as_ref().unwrap().tensor()), [1.0; 3]);
    let table = Embedding::new(100, 100).unwrap().padding_idx(-1).unwrap().weight.tensor();
    assert!((table.var().unwrap().item().unwrap().as_f64() - 1.0).abs() < 0.1);
    assert_eq!(numbers(&table.select(0, 99).unwrap()), [0.0; 100]);
}

#[test]
fn dropout_keeps_the_mean_and_leaves_a_share_out() {
    let x = ones(&[40_000]);
    let thin = numbers(&Dropout::new(0.2).unwrap().call(&x).unwrap());
    let left_out = thin.iter().filter(|x| **x == 0.0).count() as f64 / 40_000.0;
    assert!((left_out - 0.2).abs() < 0.02, "{left_out}");
    assert!(thin.iter().all(|x| *x == 0.0 || (*x - 1.25).abs() < 1e-6));
    assert_eq!(numbers(&Dropout::new(1.0).unwrap().call(&ones(&[3])).unwrap()), [0.0; 3]);
    let none = Dropout::new(0.0).unwrap().call(&x).unwrap();
    assert!(none.same_as(&x), "nothing is copied where nothing is left out");
}

#[test]
fn dropout_of_channels_takes_all_of_a_channel() {
    let out = Dropout2d::default().call(&ones(&[50, 20, 3, 3])).unwrap();
    let channels = numbers(&out);
    assert!(channels.chunks(9).all(|channel| channel.iter().all(|x| *x == channel[0])));
    assert!(channels.contains(&0.0) && channels.contains(&2.0));
}

#[test]
fn alpha_dropout_keeps_mean_and_variance() {
    let x = Tensor::randn([100_000], ()).unwrap();
    let out = AlphaDropout::new(0.3).unwrap().call(&x).unwrap();
    let (mean, variance) = (out.mean().unwrap().item().unwrap(), out.var().unwrap().item().unwrap());
    assert!(mean.as_f64().abs() < 0.03, "{mean:?}");
    assert!((variance.as_f64() - 1.0).abs() < 0.05, "{variance:?}");
}

#[test]
fn a_dropped_element_has_no_gradient() {
    let x = ones(&[64]).with_grad().unwrap();
    let out = Dropout::default().call(&x).unwrap();
    out.sum().unwrap().backward().unwrap();
    assert_eq!(numbers(&x.grad().unwrap()), numbers(&out.detach().unwrap()));
}

#[test]
fn a_momentum_of_none_averages_all_batches() {
    let norm = BatchNorm1d::new(1).unwrap().momentum(None).unwrap();
    for value in [1.0, 2.0, 6.0] {
        norm.call(&Tensor::full([4, 1], value, ()).unwrap()).unwrap();
    }
    assert_eq!(numbers(&norm.running_mean.as_ref().unwrap().tensor()), [3.0]);
}

#[test]
fn an_embedding_shortens_the_rows_it_picks() {
    let table = Tensor::new([[3.0f32, 4.0], [6.0, 8.0]]).unwrap();
    let layer = Embedding::from_pretrained(&table).unwrap().max_norm(1.0).unwrap();
    let row = numbers(&layer.call(&Tensor::new([1i64]).unwrap()).unwrap());
    assert!((row[0] - 0.6).abs() < 1e-4 && (row[1] - 0.8).abs() < 1e-4, "{row:?}");
    assert_eq!(numbers(&layer.weight.tensor())[..2], [3.0, 4.0], "the other row is as it was");
    assert!(!layer.weight.tensor().requires_grad());
}

#[test]
fn bags_are_what_their_rows_are() {
    let table = Tensor::new([[1.0f32], [10.0], [100.0]]).unwrap();
    let bag = || EmbeddingBag::from_pretrained(&table).unwrap();
    let (indices, offsets) = (Tensor::new([0i64, 1, 2]).unwrap(), Tensor::new([0i64, 2]).unwrap());
    let sums = bag().mode(Bagging::Sum).unwrap().call((&indices, Some(&offsets), None)).unwrap();
    assert_eq!(numbers(&sums), [11.0, 100.0]);
    let ends = Tensor::new([0i64, 1, 3]).unwrap();
    let means = bag().include_last_offset(true).unwrap().call((&indices, Some(&ends), None)).unwrap();
    assert_eq!(numbers(&means), [1.0, 55.0]);
}

#[test]
fn what_pooling_found_can_be_put_back() {
    let x = Tensor::arange(16).unwrap().to(DType::F32).unwrap().reshape([1, 1, 4, 4]).unwrap();
    let (largest, places) = MaxPool2d::new(2).unwrap().return_indices().call(&x).unwrap();
    let back = MaxUnpool2d::new(2).unwrap().call((&largest, &places)).unwrap();
    let expected: Vec<f32> =
        (0..16).map(|i| if [5, 7, 13, 15].contains(&i) { i as f32 } else { 0.0 }).collect();
    assert_eq!(numbers(&back), expected);
    let wider = MaxUnpool2d::new(2).unwrap().call_to(&largest, &places, (5, 4)).unwrap();
    assert_eq!(wider.shape(), [1, 1, 5, 4]);
}

#[test]
fn the_largest_of_a_volume_is_found_where_it_first_is() {
    let x = Tensor::new([[[[1.0f32, 5.0], [5.0, 0.0]], [[5.0, 2.0], [3.0, 5.0]]]]).unwrap();
    let (out, places) = AdaptiveMaxPool3d::new(1).unwrap().return_indices().call(&x).unwrap();
    assert_eq!((numbers(&out), places.to_vec::<i64>().unwrap()), (vec![5.0], vec![1]));
    assert_eq!(places.shape(), [1, 1, 1, 1]);
}

#[test]
fn a_random_rectifier_draws_slopes_only_while_it_trains() {
    let (layer, x) = (Rrelu::default(), Tensor::full([1000], -1.0, ()).unwrap());
    let out = numbers(&layer.call(&x).unwrap());
    assert!(out.iter().all(|x| (-0.3334..=-0.125).contains(x)) && out.iter().any(|x| *x != out[0]));
    layer.eval();
    let out = numbers(&layer.call(&x).unwrap());
    assert!(out.iter().all(|x| (x + (0.125 + 1.0 / 3.0) / 2.0).abs() < 1e-6));
}

#[test]
fn lists_and_dictionaries_of_layers_name_what_they_hold() {
    let list = ModuleList::new().push(Linear::new(1, 2).unwrap()).push(Relu);
    let dict = ModuleDict::new().with("a", Linear::new(1, 2).unwrap().bias(false).unwrap()).with("b", Relu);
    let names = |module: &dyn Module| -> Vec<String> {
        module.named_parameters().into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(&list), ["0.weight", "0.bias"]);
    assert_eq!(names(&dict), ["a.weight"]);
    assert_eq!(dict.get("b").unwrap().class(), "Relu");
    assert_eq!(list.iter().map(|layer| layer.class()).collect::<Vec<_>>(), ["Linear", "Relu"]);
}

#[test]
fn what_fails_inside_a_layer_is_told_in_its_name_and_the_operator_s() {
    let loss = refused(MseLoss::new().call((&ones(&[2, 3]), &ones(&[4, 5]))));
    assert_eq!(loss, "MseLoss: aten::mse_loss: shapes [2, 3] and [4, 5] do not broadcast");
    let model = Sequential::new().push(Glu { dim: -1 }).push(Relu);
    let error = model.call(&ones(&[2, 3])).unwrap_err();
    assert_eq!((error.layer(), error.op()), ("Glu", "aten::glu"));
    let layer = Sequential::new().push(Linear::new(4, 2).unwrap()).call(&ones(&[2, 3])).unwrap_err();
    assert!(layer.to_string().starts_with("Linear: expects 4 features"), "{layer}");
    assert_eq!(ones(&[2]).mse_loss(&ones(&[3]), Reduction::Mean).unwrap_err().layer(), "");
}

#[test]
fn layers_write_over_their_input_on_demand() {
    let [random, random_in_place] = [Rrelu::default(), Rrelu::default()];
    random.eval();
    random_in_place.eval();
    let layers: [(Box<Layer>, Box<Layer>); 7] = [
        (Box::new(random), Box::new(random_in_place.inplace())),
        (Box::new(Relu), Box::new(Relu.inplace())),
        (Box::new(Silu), Box::new(Silu.inplace())),
        (Box::new(Elu { alpha: 0.5 }), Box::new(Elu { alpha: 0.5 }.inplace())),
        (Box::new(Hardtanh::default()), Box::new(Hardtanh::default().inplace())),
        (Box::new(LeakyRelu::default()), Box::new(LeakyRelu::default().inplace())),
        (Box::new(Threshold::new(0.5, 9.0)), Box::new(Threshold::new(0.5, 9.0).inplace())),
    ];
    for (layer, in_place) in &layers {
        let x = Tensor::new([-2.0f32, -0.25, 0.5, 3.0]).unwrap();
        let (expected, kept) = (numbers(&layer.call(&x).unwrap()), numbers(&x));
        assert_eq!(kept, [-2.0, -0.25, 0.5, 3.0]);
        let y = in_place.call(&x).unwrap();
        assert_eq!((numbers(&y), numbers(&x)), (expected.clone(), expected), "{}", layer.class());
        assert_eq!(in_place.class(), layer.class());
    }
    let leaf = ones(&[2]).with_grad().unwrap();
    assert!(Relu.inplace().call(&leaf).is_err(), "a leaf that requires grad stays as it is");
}

#[test]
fn dropout_in_place_stops_with_the_training() {
    let (dropout, x) = (Dropout::new(0.5).unwrap().inplace(), ones(&[64]));
    let y = dropout.call(&x).unwrap();
    assert_eq!(numbers(&y), numbers(&x));
    assert!(numbers(&x).iter().all(|&x| x == 0.0 || x == 2.0) && numbers(&x).contains(&0.0));
    dropout.eval();
    let x = ones(&[64]);
    dropout.call(&x).unwrap();
    assert_eq!(numbers(&x), [1.0; 64]);
}

#[test]
fn a_batch_of_nothing_leaves_running_statistics_alone() {
    let norm = BatchNorm1d::new(2).unwrap();
    norm.call(&Tensor::new([[1.0f32, 2.0], [3.0, 6.0]]).unwrap()).unwrap();
    let before: Vec<_> = norm.named_buffers().iter().map(|(_, x)| x.to_vec::<f32>().ok()).collect();
    let y = norm.call(&ones(&[0, 2])).unwrap();
    assert_eq!(y.shape(), [0, 2]);
    y.sum().unwrap().backward().unwrap();
    let after: Vec<_> = norm.named_buffers().iter().map(|(_, x)| x.to_vec::<f32>().ok()).collect();
    assert_eq!(before, after);
    assert_eq!(
        norm.parameters().iter().map(|x| numbers(&x.grad().unwrap())).collect::<Vec<_>>(),
        [[0.0; 2]; 2]
    );
}
