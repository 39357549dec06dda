//! Whole models, as people write them: what the derive and `Forward` are judged by.

use cresset_nn::*;

/// Takes steps down the gradient, and gives the first and the last loss.
fn train(
    model: &impl Module,
    steps: usize,
    lr: f64,
    loss: impl Fn() -> Result<Tensor>,
) -> Result<(f64, f64)> {
    let mut losses = Vec::new();
    for _ in 0..steps {
        model.zero_grad();
        let loss = loss()?;
        loss.backward()?;
        losses.push(loss.item()?.as_f64());
        let _guard = cresset_tensor::no_grad();
        for parameter in model.parameters() {
            if let Some(grad) = parameter.grad() {
                parameter.add_scaled_(&grad, -lr)?;
            }
        }
    }
    Ok((losses[0], losses[steps - 1]))
}

#[derive(Module)]
struct Mlp {
    hidden: Vec<Linear>,
    out: Linear,
}

impl Forward for Mlp {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.hidden.iter().try_fold(x.clone(), |x, layer| layer.call(&x)?.relu())?;
        self.out.call(&x)
    }
}

#[test]
fn a_stack_of_layers_learns() {
    let model = Mlp {
        hidden: vec![Linear::new(4, 16).unwrap(), Linear::new(16, 16).unwrap()],
        out: Linear::new(16, 3).unwrap(),
    };
    let (x, y) = (Tensor::randn([12, 4], ()).unwrap(), Tensor::new([0i64, 1, 2].repeat(4)).unwrap());
    let (first, last) = train(&model, 200, 0.3, || model.call(&x)?.cross_entropy(&y)).unwrap();
    assert!(last < 0.7 * first, "{first} became {last}");
}

#[derive(Module)]
struct Cnn {
    conv: Conv2d,
    norm: BatchNorm2d,
    dropout: Dropout,
    out: Linear,
}

impl Forward for Cnn {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.norm.call(&self.conv.call(x)?)?.relu()?.flatten(1, -1)?;
        self.out.call(&self.dropout.call(&x)?)
    }
}

#[test]
fn a_convolutional_network_learns_and_is_steady_in_use() {
    let model = Cnn {
        conv: Conv2d::new(1, 4, 3).unwrap().padding(1).unwrap().bias(false).unwrap(),
        norm: BatchNorm2d::new(4).unwrap(),
        dropout: Dropout::new(0.1).unwrap(),
        out: Linear::new(4 * 25, 2).unwrap(),
    };
    let (x, y) = (Tensor::randn([8, 1, 5, 5], ()).unwrap(), Tensor::new([0i64, 1].repeat(4)).unwrap());
    let (first, last) = train(&model, 40, 0.05, || model.call(&x)?.cross_entropy(&y)).unwrap();
    assert!(last < 0.7 * first, "{first} became {last}");
    model.eval();
    let twice = [0, 1].map(|_| model.call(&x).unwrap().detach().unwrap().to_vec::<f32>().unwrap());
    assert_eq!(twice[0], twice[1]);
    assert_eq!(model.norm.num_batches_tracked.as_ref().unwrap().tensor().to_vec::<i64>().unwrap(), [40]);
}

#[derive(Module)]
struct Tagger {
    words: Embedding,
    lstm: Lstm,
    tags: Linear,
}

type State = (Tensor, Tensor);

impl Forward<(Tensor, Option<State>)> for Tagger {
    type Output = (Tensor, State);

    fn forward(&self, (words, state): (&Tensor, Option<(&Tensor, &Tensor)>)) -> Result<(Tensor, State)> {
        let (out, state) = self.lstm.call((&self.words.call(words)?, state))?;
        Ok((self.tags.call(&out)?, state))
    }
}

#[test]
fn a_tagger_takes_its_state_along_and_learns() {
    let model = Tagger {
        words: Embedding::new(10, 6).unwrap(),
        lstm: Lstm::new(6, 8).unwrap(),
        tags: Linear::new(8, 3).unwrap(),
    };
    let words = Tensor::new([[1i64, 2], [3, 4], [5, 6]]).unwrap();
    let tags = Tensor::new([0i64, 1, 2, 0, 1, 2]).unwrap();
    let loss = || model.call((&words, None))?.0.reshape([6, 3])?.cross_entropy(&tags);
    let (first, last) = train(&model, 200, 0.5, loss).unwrap();
    assert!(last < 0.7 * first, "{first} became {last}");
    let (_, (hidden, cell)) = model.call((&words, None)).unwrap();
    let (again, _) = model.call((&words, Some((&hidden, &cell)))).unwrap();
    assert_eq!(again.shape(), [3, 2, 3]);
    let names: Vec<String> = model.state_dict().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[..3], ["words.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0"]);
}

#[derive(Module)]
struct Gpt {
    tokens: Embedding,
    places: Parameter,
    layers: TransformerEncoder,
    out: Linear,
}

impl Forward for Gpt {
    type Output = Tensor;

    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let places = self.places.tensor().narrow(0, 0, tokens.shape()[1])?;
        let x = self.tokens.call(tokens)?.add(&places)?;
        self.out.call(&self.layers.call(Encode::new(&x).is_causal(true))?)
    }
}

#[test]
fn a_transformer_learns_what_comes_next_and_does_not_look_ahead() {
    let layer = || TransformerEncoderLayer::new(16, 2, 32)?.batch_first(true)?.norm_first(true)?.dropout(0.0);
    let layers = (0..2).map(|_| layer()).collect::<Result<Vec<_>>>().unwrap();
    let model = Gpt {
        tokens: Embedding::new(8, 16).unwrap(),
        places: Parameter::new(Tensor::zeros([6, 16], ()).unwrap()).unwrap(),
        layers: TransformerEncoder::new(layers).unwrap(),
        out: Linear::new(16, 8).unwrap(),
    };
    let tokens = Tensor::new([[0i64, 1, 2, 3, 4, 5], [7, 6, 5, 4, 3, 2]]).unwrap();
    let next = Tensor::new([1i64, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1]).unwrap();
    let loss = || model.call(&tokens)?.reshape([12, 8])?.cross_entropy(&next);
    let (first, last) = train(&model, 60, 0.1, loss).unwrap();
    assert!(last < 0.5 * first, "{first} became {last}");
    let whole = model.call(&tokens).unwrap().narrow(1, 0, 3).unwrap().detach().unwrap();
    let part = model.call(&tokens.narrow(1, 0, 3).unwrap()).unwrap().detach().unwrap();
    let pairs =
        whole.contiguous().unwrap().to_vec::<f32>().unwrap().into_iter().zip(part.to_vec::<f32>().unwrap());
    assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-4));
    assert_eq!(model.named_parameters()[0].0, "places");
}
