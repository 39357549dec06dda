//! Losses as a user sees them.

use cresset_nn::{
    CrossEntropyLoss, CtcLoss, Forward, HuberLoss, KlDivLoss, LinearCrossEntropyLoss, Module, MseLoss,
    MultiMarginLoss, Reduction, Tensor, TripletMarginLoss, TripletMarginWithDistanceLoss,
};

fn number(loss: cresset_nn::Result<Tensor>) -> f64 {
    loss.unwrap().item().unwrap().as_f64()
}

#[test]
fn the_mean_is_taken_unless_said_otherwise() {
    let (x, target) = (Tensor::new([1.0f64, 2.0]).unwrap(), Tensor::new([0.0f64, 4.0]).unwrap());
    assert_eq!(number(MseLoss::new().call((&x, &target))), 2.5);
    assert_eq!(number(MseLoss::new().reduction(Reduction::Sum).unwrap().call((&x, &target))), 5.0);
    let each = MseLoss::new().reduction(Reduction::None).unwrap().call((&x, &target)).unwrap();
    assert_eq!(each.to_vec::<f64>().unwrap(), [1.0, 4.0]);
    let divergence = KlDivLoss::new().batch_mean(true).unwrap();
    assert_eq!(number(divergence.call((&x, &target))), (4.0 * 4f64.ln() - 8.0) / 2.0);
}

#[test]
fn weights_are_part_of_the_state_and_not_learned() {
    let loss = CrossEntropyLoss::new().weight(&Tensor::new([1.0f32, 2.0]).unwrap()).unwrap();
    assert!(loss.parameters().is_empty());
    assert_eq!(loss.state_dict()[0].0, "weight");
    assert!(CrossEntropyLoss::new().state_dict().is_empty());
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let told = |error: cresset_nn::Error| error.to_string();
    assert_eq!(
        told(CrossEntropyLoss::new().label_smoothing(1.5).err().unwrap()),
        "CrossEntropyLoss: label_smoothing is 1.5, expected from 0 to 1"
    );
    assert_eq!(told(HuberLoss::new().delta(0.0).err().unwrap()), "HuberLoss: delta is 0, expected above 0");
    assert_eq!(told(MultiMarginLoss::new().p(3).err().unwrap()), "MultiMarginLoss: p is 3, expected 1 or 2");
    let weight = Tensor::ones([3], ()).unwrap();
    assert_eq!(
        told(LinearCrossEntropyLoss::new(5, 2).unwrap().weight(&weight).err().unwrap()),
        "LinearCrossEntropyLoss: weight is [3], expected [2]"
    );
}

#[test]
fn lengths_that_are_no_counts_are_refused() {
    let log_probs = Tensor::zeros([4, 1, 3], ()).unwrap();
    let labels = Tensor::new([[1i64, 2]]).unwrap();
    let call = |steps: Tensor| {
        CtcLoss::new()
            .call((&log_probs, &labels, &steps, &Tensor::new([2i64]).unwrap()))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(call(Tensor::new([4.0f32]).unwrap()), "CtcLoss: input_lengths is of f32, expected integers");
    assert_eq!(call(Tensor::new([-1i64]).unwrap()), "CtcLoss: input_lengths is [-1], expected at least 0");
}

#[test]
fn a_distance_of_ones_own_takes_the_place_of_the_norm() {
    let row = |values: [f64; 2]| Tensor::new([values]).unwrap();
    let (anchor, positive, negative) = (row([0.0, 0.0]), row([3.0, 4.0]), row([1.0, 1.0]));
    let triple = (&anchor, &positive, &negative);
    let by_norm = number(TripletMarginLoss::new().swap(true).unwrap().call(triple));
    assert_eq!(number(TripletMarginWithDistanceLoss::default().swap(true).unwrap().call(triple)), by_norm);
    let by_city_block = TripletMarginWithDistanceLoss::new(|a, b| a.sub(b)?.abs()?.sum_dims(&[-1], false));
    assert_eq!(number(by_city_block.margin(2.0).unwrap().call(triple)), 7.0 - 2.0 + 2.0);
}
