//! Every layer and every loss, called with what does not fit: refused, and in its own name.

use cresset_nn::functional::Fraction;
use cresset_nn::*;

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape, ()).unwrap()
}

fn classes(count: usize) -> Tensor {
    Tensor::new(vec![0i64; count]).unwrap()
}

/// Checks that `layer` refuses `input`, and says who it is.
fn refuses<I: Tensors, L: Forward<I>>(layer: Result<L>, input: I, what: &str) {
    let layer = layer.unwrap();
    let class = layer.class();
    let error = match layer.call(input.lend()) {
        Ok(_) => panic!("{class} takes {what}"),
        Err(error) => error.to_string(),
    };
    assert!(error.starts_with(&format!("{class}: ")), "{class} with {what} says: {error}");
}

/// A line per layer: the shapes of one input that it refuses.
macro_rules! refused_shapes {
    ($($layer:expr => $($shape:expr),+;)*) => {$(
        $({
            let shape: &[usize] = &$shape;
            refuses($layer, ones(shape), &format!("{shape:?}"));
        })+
    )*};
}

#[test]
fn layers_of_windows_refuse_other_ranks_and_channels() {
    refused_shapes! {
        Conv1d::new(4, 6, 3) => [8], [1, 3, 8], [1, 4, 8, 8], [1, 4, 2];
        Conv2d::new(4, 6, 3) => [4, 8], [1, 3, 8, 8], [1, 4, 8, 8, 8], [1, 4, 2, 8];
        Conv3d::new(4, 6, 3) => [4, 8, 8], [1, 3, 8, 8, 8], [1, 4, 8, 8, 2];
        ConvTranspose1d::new(4, 6, 3) => [8], [1, 3, 8], [1, 4, 8, 8];
        ConvTranspose2d::new(4, 6, 3) => [4, 8], [1, 3, 8, 8], [1, 4, 8, 8, 8];
        ConvTranspose3d::new(4, 6, 3) => [4, 8, 8], [1, 3, 8, 8, 8];
        MaxPool1d::new(2) => [8], [1, 2, 8, 8], [1, 2, 1];
        MaxPool2d::new(2) => [8, 8], [1, 1, 2, 8, 8], [1, 2, 1, 8];
        MaxPool3d::new(2) => [8, 8, 8], [1, 2, 1, 8, 8];
        AvgPool1d::new(2) => [8], [1, 2, 8, 8], [1, 2, 1];
        AvgPool2d::new(2) => [8, 8], [1, 1, 2, 8, 8], [1, 2, 1, 8];
        AvgPool3d::new(2) => [8, 8, 8], [1, 2, 1, 8, 8];
        LpPool1d::new(2.0, 2) => [8], [1, 2, 8, 8], [1, 2, 1];
        LpPool2d::new(2.0, 2) => [8, 8], [1, 2, 1, 8];
        LpPool3d::new(2.0, 2) => [8, 8, 8], [1, 2, 1, 8, 8];
        AdaptiveAvgPool1d::new(2) => [8], [1, 2, 8, 8];
        AdaptiveAvgPool2d::new(2) => [8, 8], [1, 1, 2, 8, 8];
        AdaptiveAvgPool3d::new(2) => [8, 8, 8];
        AdaptiveMaxPool1d::new(2) => [8], [1, 2, 8, 8], [1, 2, 0];
        AdaptiveMaxPool2d::new(2) => [8, 8], [1, 2, 0, 8];
        AdaptiveMaxPool3d::new(2) => [8, 8, 8], [1, 2, 8, 8, 0];
        FractionalMaxPool2d::new(2, Fraction::Size([4, 4])) => [8, 8], [1, 2, 4, 8];
        FractionalMaxPool3d::new(2, Fraction::Size([4, 4, 4])) => [8, 8, 8], [1, 2, 8, 8, 4];
        Unfold::new(3) => [8], [2, 8, 8, 8, 8], [1, 2, 2, 8];
        Fold::new(4, 2) => [8], [1, 3, 9], [1, 4, 8];
    }
    for shapes in [[&[1, 2, 4][..], &[1, 2, 5]], [&[4], &[4]]] {
        let what = format!("{shapes:?}");
        let pair = || (ones(shapes[0]), Tensor::zeros(shapes[1], DType::I64).unwrap());
        refuses(MaxUnpool1d::new(2), pair(), &what);
        refuses(MaxUnpool2d::new(2), pair(), &what);
        refuses(MaxUnpool3d::new(2), pair(), &what);
    }
}

#[test]
fn norms_refuse_other_ranks_and_channels() {
    let tracking = |norm: Result<InstanceNorm1d>| norm.and_then(|norm| norm.affine(true));
    refused_shapes! {
        BatchNorm1d::new(3) => [3], [2, 4], [2, 4, 5], [2, 3, 4, 5], [1, 3];
        BatchNorm2d::new(3) => [2, 3, 4], [2, 4, 5, 5], [1, 3, 1, 1];
        BatchNorm3d::new(3) => [2, 3, 4, 4], [2, 4, 5, 5, 5];
        tracking(InstanceNorm1d::new(3)) => [3], [2, 4, 5], [2, 3, 4, 5], [2, 3, 1];
        InstanceNorm2d::new(3).and_then(|norm| norm.affine(true)) => [3, 4], [2, 4, 5, 5];
        InstanceNorm3d::new(3).and_then(|norm| norm.affine(true)) => [3, 4, 4], [2, 4, 5, 5, 5];
        LayerNorm::new([3, 4]) => [4], [2, 4, 3];
        RmsNorm::new(4) => [3], [2, 3];
        GroupNorm::new(2, 4) => [4], [2, 6, 3];
        LocalResponseNorm::new(2) => [4], [2, 3];
    }
}

#[test]
fn layers_of_vectors_and_steps_refuse_other_sizes() {
    refused_shapes! {
        Linear::new(4, 2) => [], [3], [2, 3];
        Embedding::new(4, 2) => [2];
        Prelu::new().and_then(|layer| layer.num_parameters(3)) => [2, 4], [3];
        Ok(Glu { dim: -1 }) => [3], [];
        Ok(Softmax::new(2)) => [3, 4];
        Ok(LogSoftmax::new(2)) => [3, 4];
        Ok(Softmin::new(2)) => [3, 4];
        Ok(Softmax2d) => [3, 4], [1, 2, 3, 4, 5];
        Dropout1d::new(0.5) => [3], [1, 2, 3, 4];
        Dropout2d::new(0.5) => [3, 3], [1, 2, 3, 4, 5];
        Dropout3d::new(0.5) => [3, 3, 3];
    }
    let outside = Tensor::new([4i64]).unwrap();
    refuses(Embedding::new(4, 2), outside.clone(), "a row that is not there");
    refuses(EmbeddingBag::new(4, 2), (outside, Some(classes(1)), None), "a row that is not there");
    refuses(EmbeddingBag::new(4, 2), (classes(3), None, None), "a vector without offsets");
    refuses(Bilinear::new(3, 4, 2), (ones(&[2, 3]), ones(&[2, 3])), "two of one size");
    refuses(Bilinear::new(3, 4, 2), (ones(&[2, 3]), ones(&[5, 4])), "two batches");
    refuses(Rnn::new(3, 2), (ones(&[5, 1, 4]), None::<Tensor>), "another size");
    refuses(Gru::new(3, 2), (ones(&[5]), None::<Tensor>), "one dimension");
    refuses(Lstm::new(3, 2), (ones(&[5, 1, 4]), None::<(Tensor, Tensor)>), "another size");
    refuses(RnnCell::new(3, 2), (ones(&[1, 4]), None::<Tensor>), "another size");
    refuses(GruCell::new(3, 2), (ones(&[1, 2, 3]), None::<Tensor>), "three dimensions");
    refuses(LstmCell::new(3, 2), (ones(&[1, 4]), None::<(Tensor, Tensor)>), "another size");
    let x = ones(&[5, 2, 4]);
    let narrow = ones(&[5, 2, 3]);
    let layer = MultiheadAttention::new(4, 2).unwrap();
    let error = layer.call(Attend::new(&x, &narrow, &x)).unwrap_err().to_string();
    assert!(error.starts_with("MultiheadAttention: key is"), "{error}");
    let layer = TransformerEncoderLayer::new(4, 2, 8).unwrap();
    let error = layer.call(Encode::new(&narrow)).unwrap_err().to_string();
    assert!(error.starts_with("MultiheadAttention: query is"), "{error}");
    let layer = TransformerDecoderLayer::new(4, 2, 8).unwrap();
    let error = layer.call(Decode::new(&x, &narrow)).unwrap_err().to_string();
    assert!(error.starts_with("MultiheadAttention: key is"), "{error}");
    let whole = Transformer::new(4, 2, 1, 1, 8).unwrap();
    let error = whole.call(Transform::new(&x, &narrow)).unwrap_err().to_string();
    assert!(error.starts_with("Transformer: src and tgt are"), "{error}");
}

#[test]
fn layers_that_move_elements_refuse_what_they_cannot_move() {
    refused_shapes! {
        Ok(ReflectionPad1d::new(1)) => [4], [1, 2, 3, 4], [1, 2, 1];
        Ok(ReflectionPad2d::new(1)) => [4, 4], [1, 2, 1, 4];
        Ok(ReflectionPad3d::new(1)) => [4, 4, 4], [1, 2, 1, 4, 4];
        Ok(ReplicationPad1d::new(1)) => [4], [1, 2, 3, 4];
        Ok(ReplicationPad2d::new(1)) => [4, 4];
        Ok(ReplicationPad3d::new(1)) => [4, 4, 4];
        Ok(CircularPad1d::new(1)) => [4], [1, 2, 3, 4];
        Ok(CircularPad2d::new(1)) => [4, 4];
        Ok(CircularPad3d::new(5)) => [4, 4, 4], [1, 2, 4, 4, 4];
        Ok(ZeroPad1d::new(-3)) => [4];
        Ok(ZeroPad2d::new(1)) => [4];
        Ok(ZeroPad3d::new(1)) => [4, 4];
        Ok(ConstantPad1d::new(-3, 1.0)) => [4];
        Ok(ConstantPad2d::new(1, 1.0)) => [4];
        Ok(ConstantPad3d::new(1, 1.0)) => [4, 4];
        PixelShuffle::new(2) => [1, 6, 4, 4], [4, 4];
        PixelUnshuffle::new(2) => [1, 1, 3, 4], [4, 4];
        ChannelShuffle::new(2) => [1, 3, 4, 4], [4];
        Ok(Upsample::by(2.0)) => [4, 4], [1, 1, 1, 4, 4, 4];
        Ok(Flatten::new(1, 3)) => [2, 3];
        Ok(Unflatten::new(1, [2, 2])) => [2, 3], [2];
    }
    let pair = |a: &[usize], b: &[usize]| (ones(a), ones(b));
    refuses(Ok(CosineSimilarity::default()), pair(&[2, 3], &[2, 4]), "two sizes");
    refuses(Ok(PairwiseDistance::default()), pair(&[2, 3], &[2, 4]), "two sizes");
}

#[test]
fn losses_refuse_targets_of_another_shape() {
    let pair = |a: &[usize], b: &[usize]| (ones(a), ones(b));
    let what = "[2, 3] and [4, 5]";
    let apart = || pair(&[2, 3], &[4, 5]);
    refuses(Ok(MseLoss::new()), apart(), what);
    refuses(Ok(L1Loss::new()), apart(), what);
    refuses(Ok(SmoothL1Loss::new()), apart(), what);
    refuses(Ok(HuberLoss::new()), apart(), what);
    refuses(Ok(CrossEntropyLoss::new()), (ones(&[2, 3]), classes(3)), "three classes for two samples");
    refuses(Ok(CrossEntropyLoss::new()), (ones(&[2, 3]), Tensor::new([0i64, 3]).unwrap()), "class 3 of 3");
    refuses(Ok(NllLoss::new()), (ones(&[2, 3]), classes(3)), "three classes for two samples");
    refuses(Ok(MultiMarginLoss::new()), (ones(&[2, 3]), classes(3)), "three classes for two samples");
    refuses(Ok(MultiLabelMarginLoss::new()), (ones(&[2, 3]), classes(3)), "three classes for two samples");
    refuses(Ok(MultiLabelSoftMarginLoss::new()), apart(), what);
    refuses(Ok(BceLoss::new()), apart(), what);
    refuses(Ok(BceWithLogitsLoss::new()), apart(), what);
    refuses(Ok(KlDivLoss::new()), apart(), what);
    refuses(Ok(PoissonNllLoss::new()), apart(), what);
    refuses(Ok(GaussianNllLoss::new()), (ones(&[2, 3]), ones(&[4, 5]), ones(&[2, 3])), what);
    refuses(Ok(SoftMarginLoss::new()), apart(), what);
    refuses(Ok(HingeEmbeddingLoss::new()), apart(), what);
    refuses(Ok(CosineEmbeddingLoss::new()), (ones(&[2, 3]), ones(&[4, 5]), ones(&[2])), what);
    refuses(Ok(MarginRankingLoss::new()), (ones(&[2, 3]), ones(&[4, 5]), ones(&[2, 3])), what);
    refuses(Ok(TripletMarginLoss::new()), (ones(&[2, 3]), ones(&[4, 5]), ones(&[2, 3])), what);
    let by_distance = TripletMarginWithDistanceLoss::default();
    refuses(Ok(by_distance), (ones(&[2, 3]), ones(&[4, 5]), ones(&[2, 3])), what);
    refuses(LinearCrossEntropyLoss::new(4, 3), (ones(&[2, 5]), classes(2)), "another size");
    let adaptive = || AdaptiveLogSoftmaxWithLoss::new(4, 9, [2, 5]);
    refuses(adaptive(), (ones(&[2, 5]), classes(2)), "another size");
    refuses(adaptive(), (ones(&[2, 4]), classes(3)), "three classes for two samples");
    refuses(adaptive(), (ones(&[2, 4]), Tensor::new([0i64, 9]).unwrap()), "class 9 of 9");
    let lengths = (classes(2), classes(2));
    refuses(Ok(CtcLoss::new()), (ones(&[5, 3, 4]), classes(6), lengths.0, lengths.1), "two lengths of three");
}
