//! Initialisers, by the distributions they draw from.

use cresset_nn::init::{self, FanMode, Gain};
use cresset_nn::{DType, Result, Tensor};

fn drawn(shape: &[usize], fill: impl FnOnce(&Tensor) -> Result<()>) -> Vec<f64> {
    let tensor = Tensor::zeros(shape, ()).unwrap().with_grad().unwrap();
    fill(&tensor).unwrap();
    assert!(tensor.is_leaf() && tensor.requires_grad(), "an initialiser leaves no trace in the graph");
    tensor.detach().unwrap().to(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn spread(x: &[f64]) -> (f64, f64) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (mean, (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt())
}

/// Checks numbers that are uniform within `bound` of 0.
fn check_uniform(x: &[f64], bound: f64) {
    let largest = x.iter().fold(0f64, |most, x| most.max(x.abs()));
    assert!(largest <= bound * 1.000_001 && largest > 0.99 * bound, "{largest} of {bound}");
    let (mean, std) = spread(x);
    assert!(mean.abs() < 0.03 * bound && (std - bound / 3f64.sqrt()).abs() < 0.02 * bound, "{mean}, {std}");
}

/// Checks numbers that are normally distributed around 0.
fn check_normal(x: &[f64], expected: f64) {
    let (mean, std) = spread(x);
    assert!(
        mean.abs() < 0.03 * expected && (std / expected - 1.0).abs() < 0.03,
        "{mean}, {std} of {expected}"
    );
    let beyond = x.iter().filter(|x| x.abs() > 2.0 * expected).count() as f64 / x.len() as f64;
    assert!((beyond - 0.0455).abs() < 0.01, "{beyond} beyond two deviations");
}

const WEIGHT: [usize; 4] = [64, 32, 3, 3];

#[test]
fn uniform_and_normal_numbers_have_the_bounds_and_moments_asked_for() {
    check_uniform(&drawn(&WEIGHT, |x| init::uniform_(x, -0.3, 0.3)), 0.3);
    check_normal(&drawn(&WEIGHT, |x| init::normal_(x, 0.0, 0.02)), 0.02);
    let (mean, _) = spread(&drawn(&WEIGHT, |x| init::normal_(x, 5.0, 0.1)));
    assert!((mean - 5.0).abs() < 0.01);
}

#[test]
fn xavier_and_kaiming_follow_the_fans() {
    let (fan_in, fan_out) = (32.0 * 9.0, 64.0 * 9.0);
    check_uniform(
        &drawn(&WEIGHT, |x| init::xavier_uniform_(x, 2.0)),
        2.0 * (6.0f64 / (fan_in + fan_out)).sqrt(),
    );
    check_normal(&drawn(&WEIGHT, |x| init::xavier_normal_(x, 1.0)), (2.0f64 / (fan_in + fan_out)).sqrt());
    check_uniform(
        &drawn(&WEIGHT, |x| init::kaiming_uniform_(x, FanMode::In, Gain::LeakyRelu(5f64.sqrt()))),
        (1.0f64 / fan_in).sqrt(),
    );
    check_normal(
        &drawn(&WEIGHT, |x| init::kaiming_normal_(x, FanMode::Out, Gain::Relu)),
        (2.0f64 / fan_out).sqrt(),
    );
    let error = init::xavier_uniform_(&Tensor::zeros([3], ()).unwrap(), 1.0).unwrap_err().to_string();
    assert_eq!(error, "init: expects a weight of at least two dimensions, not shape [3]");
}

#[test]
fn gains_are_torch_s() {
    let gains = [Gain::Linear, Gain::Sigmoid, Gain::Tanh, Gain::Relu, Gain::LeakyRelu(0.2), Gain::Selu];
    let expected = [1.0, 1.0, 1.6666666666666667, std::f64::consts::SQRT_2, 1.3867504905630728, 0.75];
    for (gain, expected) in gains.into_iter().zip(expected) {
        assert!((init::calculate_gain(gain) - expected).abs() < 1e-15, "{gain:?}");
    }
}

#[test]
fn truncated_numbers_stay_within_their_bounds() {
    let x = drawn(&[100, 100], |x| init::trunc_normal_(x, 0.0, 1.0, -1.0, 2.0));
    assert!(x.iter().all(|x| (-1.0..=2.0).contains(x)));
    let (mean, std) = spread(&x);
    // The moments of a normal distribution cut at -1 and 2.
    assert!((mean - 0.2296).abs() < 0.02 && (std - 0.7209).abs() < 0.02, "{mean}, {std}");
}

#[test]
fn orthogonal_rows_or_columns_have_the_length_of_the_gain() {
    for shape in [[5, 12], [12, 5], [7, 7]] {
        let x = Tensor::zeros(shape, DType::F64).unwrap();
        init::orthogonal_(&x, 2.0).unwrap();
        let product =
            if shape[0] <= shape[1] { x.matmul(&x.t().unwrap()) } else { x.t().unwrap().matmul(&x) };
        let few = shape[0].min(shape[1]);
        let difference =
            product.unwrap().sub(&Tensor::eye(few, few, DType::F64).unwrap().mul(4.0).unwrap()).unwrap();
        assert!(difference.abs().unwrap().max().unwrap().item().unwrap().as_f64() < 1e-12, "{shape:?}");
    }
    let kernel = Tensor::zeros([4, 2, 3], ()).unwrap();
    init::orthogonal_(&kernel, 1.0).unwrap();
    let norm = kernel.mul(&kernel).unwrap().sum().unwrap().item().unwrap().as_f64();
    assert!((norm - 4.0).abs() < 1e-5);
}

#[test]
fn constants_identities_and_sparse_columns_are_what_they_say() {
    assert_eq!(drawn(&[2], |x| init::constant_(x, 0.5)), [0.5, 0.5]);
    assert_eq!(drawn(&[2], init::ones_), [1.0, 1.0]);
    assert_eq!(drawn(&[2, 3], init::eye_), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let x = drawn(&[10, 4], |x| init::sparse_(x, 0.25, 0.1));
    for column in 0..4 {
        assert_eq!((0..10).filter(|row| x[row * 4 + column] == 0.0).count(), 3);
    }
}

#[test]
fn a_dirac_kernel_passes_its_input_on() {
    let weight = Tensor::zeros([4, 2, 3, 3], ()).unwrap();
    init::dirac_(&weight, 2).unwrap();
    let conv =
        cresset_nn::Conv2d::new(4, 4, 3).unwrap().groups(2).unwrap().padding(1).unwrap().bias(false).unwrap();
    conv.weight.replace(weight).unwrap();
    let x = Tensor::randn([1, 4, 5, 5], ()).unwrap();
    use cresset_nn::Forward as _;
    let out = conv.call(&x).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
}
