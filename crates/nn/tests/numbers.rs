//! Layers and functions that no recorded file has, beside the numbers of torch 2.15.

use cresset_nn::functional::{self, Fraction};
use cresset_nn::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Numbers that are easily made in torch too.
fn wave(phase: f64, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    Tensor::from_vec((0..count).map(|i| (i as f64 * 0.7 + phase).sin()).collect::<Vec<f64>>(), shape).unwrap()
}

fn close(got: &Tensor, expected: &[f64]) {
    let got =
        got.detach().unwrap().contiguous().unwrap().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let near = got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near && got.len() == expected.len(), "{got:?} is not {expected:?}");
}

#[test]
fn a_spectral_norm_is_torch_s_step_by_step() {
    let layer = SpectralNorm::new(Linear::new(3, 2).unwrap()).unwrap().n_power_iterations(2).unwrap();
    layer.to(DType::F64).unwrap();
    let unit = |phase, size| wave(phase, &[size]).normalize(2.0, 0, 1e-12).unwrap();
    let state = [
        ("bias", wave(0.3, &[2])),
        ("parametrizations.weight.original", wave(0.1, &[2, 3])),
        ("parametrizations.weight.0._u", unit(0.5, 2)),
        ("parametrizations.weight.0._v", unit(0.9, 3)),
    ];
    layer.load_state_dict(&state.map(|(name, tensor)| (name.to_owned(), tensor))).unwrap();
    let x = wave(0.2, &[4, 3]);
    let y = layer.call(&x).unwrap();
    close(
        &y,
        &[
            1.5928883293171379,
            0.7639837139770194,
            0.005590249589190632,
            1.557300355210271,
            -0.7091078971251026,
            0.1961909172271591,
            1.5998153332697413,
            0.7771758713936582,
        ],
    );
    y.pow(2.0).unwrap().sum().unwrap().backward().unwrap();
    let grads = [
        0.874652604093423,
        -0.46684334710834197,
        -1.588775577536536,
        2.006709815745739,
        1.5492562186468,
        0.3631632141220901,
    ];
    close(&layer.parameters()[1].grad().unwrap(), &grads);
    layer.eval();
    let before = layer.named_buffers()[0].1.to_vec::<f64>().unwrap();
    close(&layer.call(&x).unwrap().narrow(0, 0, 1).unwrap(), &[1.5928883293171379, 0.7639837139770194]);
    assert_eq!(layer.named_buffers()[0].1.to_vec::<f64>().unwrap(), before, "it changes in training only");
    let plain = layer.remove().unwrap();
    assert!(plain.weight.tensor().is_leaf() && plain.parameters().len() == 2);
    let transposed = SpectralNorm::new(ConvTranspose1d::new(2, 3, 2).unwrap()).unwrap();
    let shapes: Vec<Vec<usize>> =
        transposed.named_buffers().iter().map(|(_, tensor)| tensor.shape().to_vec()).collect();
    assert_eq!(shapes, [[3], [4]], "outputs are counted along the second dimension");
}

#[test]
fn one_length_for_all_of_a_weight_has_no_dimensions() {
    let layer = WeightNorm::new(Linear::new(3, 2).unwrap(), None).unwrap();
    let shapes: Vec<Vec<usize>> =
        layer.parameters().iter().map(|parameter| parameter.shape().to_vec()).collect();
    assert_eq!(shapes, [vec![2], vec![], vec![2, 3]]);
    let x = Tensor::ones([1, 3], ()).unwrap();
    let before = layer.call(&x).unwrap();
    let plain = layer.remove().unwrap();
    close(
        &plain.call(&x).unwrap(),
        &before.detach().unwrap().to_vec::<f32>().unwrap().iter().map(|&x| x.into()).collect::<Vec<f64>>(),
    );
}

#[test]
fn an_adaptive_softmax_is_torch_s() {
    let loss = AdaptiveLogSoftmaxWithLoss::new(8, 12, [3, 7]).unwrap();
    let loss = loss.div_value(2.0).unwrap().head_bias(true).unwrap();
    loss.to(DType::F64).unwrap();
    let names = [
        "head.weight",
        "head.bias",
        "tail.0.0.weight",
        "tail.0.1.weight",
        "tail.1.0.weight",
        "tail.1.1.weight",
    ];
    let state = loss.state_dict().into_iter().enumerate();
    let state: Vec<(String, Tensor)> =
        state.map(|(i, (name, tensor))| (name, wave(0.1 * (i + 1) as f64, tensor.shape()))).collect();
    assert_eq!(state.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
    loss.load_state_dict(&state).unwrap();
    let (x, classes) = (wave(0.2, &[5, 8]).with_grad().unwrap(), Tensor::new([0i64, 5, 11, 2, 6]).unwrap());
    let (log_probs, mean) = loss.call((&x, &classes)).unwrap();
    let expected = [
        -0.37082767357339935,
        -7.819071357382684,
        -5.487948698641871,
        -1.2692962889377282,
        -10.552177637094216,
    ];
    close(&log_probs, &expected);
    close(&mean, &[5.09986433112598]);
    mean.backward().unwrap();
    let grads = [
        0.14859437001927178,
        0.40667171923565104,
        0.4734850044746057,
        0.31761089370187534,
        0.01235941681404145,
        -0.2987048869226515,
        -0.4692836149470138,
        -0.41915092610304044,
    ];
    close(&x.grad().unwrap().select(0, 1).unwrap(), &grads);
    let all = loss.log_prob(&x.detach().unwrap()).unwrap();
    for (i, &expected) in expected.iter().enumerate() {
        let class = classes.to_vec::<i64>().unwrap()[i] as isize;
        close(&all.select(0, i as isize).unwrap().select(0, class).unwrap(), &[expected]);
    }
    assert_eq!(loss.predict(&x.detach().unwrap()).unwrap().to_vec::<i64>().unwrap(), [0, 1, 2, 5, 10]);
    let (one, _) = loss.call((&x.select(0, 1).unwrap(), &Tensor::new(5i64).unwrap())).unwrap();
    close(&one, &expected[1..2]);
    let narrow = AdaptiveLogSoftmaxWithLoss::new(8, 12, [3, 7]).unwrap();
    assert_eq!(narrow.tail[1].parameters()[1].shape(), [5, 0], "no number is left for the last cluster");
    let even = narrow.log_prob(&Tensor::ones([1, 8], ()).unwrap()).unwrap().narrow(1, 7, 5).unwrap();
    let even = even.detach().unwrap().contiguous().unwrap().to_vec::<f32>().unwrap();
    assert!(even.iter().all(|&share| share.is_finite() && share == even[0]), "{even:?}");
    let error = AdaptiveLogSoftmaxWithLoss::new(8, 12, [7, 3]).err().unwrap().to_string();
    assert_eq!(error, "AdaptiveLogSoftmaxWithLoss: cutoffs are [7, 3], expected rising ones from 1 to 11");
}

#[test]
fn windows_at_random_lie_where_the_samples_say() {
    let line = |count: usize, shape: &[usize]| {
        let numbers: Vec<f32> = (0..count).map(|i| (i as f32 * 1.3).sin()).collect();
        Tensor::from_vec(numbers, shape).unwrap()
    };
    let x = line(84, &[1, 2, 7, 6]);
    let samples = Tensor::new([[[0.1f32, 0.7], [0.9, 0.3]]]).unwrap();
    let [y, places] =
        functional::fractional_max_pool2d(&x, [2, 3], Fraction::Size([4, 3]), Some(&samples)).unwrap();
    assert_eq!(y.shape(), [1, 2, 4, 3]);
    let first = [6, 1, 11, 6, 15, 11, 25, 25, 21, 30, 31, 35];
    let second = [8, 3, 3, 12, 13, 22, 18, 27, 22, 32, 32, 41];
    assert_eq!(places.to_vec::<i64>().unwrap(), [first, second].concat());
    let x = line(210, &[1, 1, 6, 7, 5]);
    let samples = Tensor::new([[[0.1f32, 0.7, 0.4]]]).unwrap();
    let [_, places] =
        functional::fractional_max_pool3d(&x, [2, 3, 2], Fraction::Size([3, 4, 2]), Some(&samples)).unwrap();
    let expected = [
        35, 49, 11, 59, 16, 64, 30, 64, 70, 74, 126, 93, 131, 93, 136, 93, 180, 189, 151, 199, 156, 204, 161,
        209,
    ];
    assert_eq!(places.to_vec::<i64>().unwrap(), expected);
    let error = FractionalMaxPool2d::new(2, Fraction::Ratio([0.5, 1.5])).err().unwrap().to_string();
    assert_eq!(error, "FractionalMaxPool2d: output_ratio is [0.5, 1.5], expected above 0 and below 1");
    let x = x.reshape([1, 1, 42, 5]).unwrap().with_grad().unwrap();
    let pool = FractionalMaxPool2d::new(2, Fraction::Ratio([0.5, 0.6])).unwrap();
    let y = pool.call(&x).unwrap();
    assert_eq!(y.shape(), [1, 1, 21, 3]);
    y.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().sum().unwrap().item().unwrap().as_f64(), 63.0);
}

#[test]
fn grids_and_distances_are_torch_s() {
    let theta = Tensor::new([[[1.0f32, 0.2, 0.1], [-0.3, 0.9, 0.0]]]).unwrap();
    let grid = |align| functional::affine_grid(&theta, &[1, 1, 2, 3], align).unwrap();
    let apart =
        [-0.6666667, -0.25, 0.0, -0.45, 0.6666667, -0.65, -0.4666667, 0.65, 0.2, 0.45, 0.8666667, 0.25];
    close(&grid(false), &apart);
    close(&grid(true), &[-1.1, -0.6, -0.1, -0.9, 0.9, -1.2, -0.7, 1.2, 0.3, 0.9, 1.3, 0.6]);
    let numbers: Vec<f32> = (0..12).map(|i| i as f32 / 10.0).collect();
    let theta = Tensor::from_vec(numbers, [1, 3, 4]).unwrap();
    let volume = functional::affine_grid(&theta, &[1, 1, 2, 1, 2], false).unwrap();
    close(&volume, &[0.2, 0.2, 0.2, 0.2, 0.6, 1.0, 0.4, 0.8, 1.2, 0.4, 1.2, 2.0]);
    let points: Vec<f64> = (0..12).map(|i| f64::from(i).sin()).collect();
    let points = Tensor::from_vec(points, [4, 3]).unwrap();
    close(
        &functional::pdist(&points, 2.0).unwrap(),
        &[2.46265006, 0.34426331, 2.39474630, 2.44365596, 0.34699061, 2.42448878],
    );
    close(
        &functional::pdist(&points, 1.0).unwrap(),
        &[3.60761523, 0.54396069, 3.70689821, 3.78260707, 0.52484577, 3.88189005],
    );
}

#[test]
fn statistics_are_taken_anew_as_the_mean_of_all_batches() {
    let model = Sequential::new().push(Linear::new(1, 2).unwrap()).push(BatchNorm1d::new(2).unwrap());
    model.apply(&mut |module| module.own_parameters().iter().try_for_each(init::ones_)).unwrap();
    let batch = |a: f32, b: f32| Tensor::new([[a], [b]]).unwrap();
    model.call(&batch(100.0, 900.0)).unwrap();
    model.eval();
    update_bn(&model, [batch(1.0, 3.0), batch(3.0, 5.0), batch(5.0, 13.0)]).unwrap();
    let buffers = model.named_buffers();
    // The layer in front adds 1; variances are 2, 2 and 32.
    assert_eq!(buffers[0].1.to_vec::<f32>().unwrap(), [6.0, 6.0]);
    assert_eq!(buffers[1].1.to_vec::<f32>().unwrap(), [12.0, 12.0]);
    assert_eq!(buffers[2].1.to_vec::<i64>().unwrap(), [3]);
    let y = model.call(&batch(5.0, 5.0)).unwrap();
    assert!(
        y.detach().unwrap().to_vec::<f32>().unwrap().iter().all(|y| (y - 1.0).abs() < 1e-5),
        "it is not in training"
    );
    assert!(update_bn(&model, [Tensor::ones([2, 3], ()).unwrap()]).is_err());
    model.call(&batch(0.0, 1.0)).unwrap();
    assert_eq!(model.named_buffers()[2].1.to_vec::<i64>().unwrap(), [0], "still not in training");
}

#[test]
fn hooks_see_calls_to_a_given_size_too() {
    let layer = ConvTranspose1d::new(1, 1, 3).unwrap().stride(2).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = calls.clone();
    layer
        .register_forward_hook(move |inputs, outputs| {
            seen.fetch_add(inputs.len() + outputs.len(), Relaxed);
            Ok(())
        })
        .unwrap();
    let x = Tensor::ones([1, 1, 4], ()).unwrap();
    assert_eq!(layer.call_to(&x, 10).unwrap().shape(), [1, 1, 10]);
    assert_eq!(calls.load(Relaxed), 2);
    assert_eq!(layer.call_to(&x, 12).unwrap_err().layer(), "ConvTranspose1d");
}
