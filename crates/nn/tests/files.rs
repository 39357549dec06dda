//! States of torch in files: loaded by name they give torch's answers, and come back as they were.
//!
//! The files are made by `tests/golden/state/make.py`.

use cresset_nn::{
    Approximate, BatchNorm2d, Conv2d, DType, Embedding, Forward, Linear, Lstm, Module, Result, Tensor,
    Transform, Transformer, causal_mask, load, load_state, save, save_state,
};
use std::path::PathBuf;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/state").join(name)
}

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("cresset-nn-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Module)]
struct Cnn {
    conv1: Conv2d,
    norm: BatchNorm2d,
    conv2: Conv2d,
    out: Linear,
}

impl Forward for Cnn {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.norm.call(&self.conv1.call(x)?)?.relu()?;
        self.out.call(&self.conv2.call(&x)?.relu()?.mean_dims(&[2, 3], false)?)
    }
}

fn cnn() -> Result<Cnn> {
    Ok(Cnn {
        conv1: Conv2d::new(3, 8, 3)?.padding(1)?,
        norm: BatchNorm2d::new(8)?,
        conv2: Conv2d::new(8, 12, 3)?.stride(2)?.groups(4)?.bias(false)?,
        out: Linear::new(12, 5)?,
    })
}

#[derive(Module)]
struct Tagger {
    words: Embedding,
    lstm: Lstm,
    tags: Linear,
}

impl Forward for Tagger {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (steps, _) = self.lstm.call((&self.words.call(x)?, None))?;
        self.tags.call(&steps)
    }
}

fn tagger() -> Result<Tagger> {
    let lstm = Lstm::new(6, 8)?.num_layers(2)?.bidirectional(true)?.batch_first(true)?.proj_size(4)?;
    Ok(Tagger { words: Embedding::new(20, 6)?, lstm, tags: Linear::new(8, 5)? })
}

#[derive(Module)]
struct Translator {
    words: Embedding,
    transformer: Transformer,
    out: Linear,
}

impl Forward<(Tensor, Tensor)> for Translator {
    type Output = Tensor;

    fn forward(&self, (src, tgt): (&Tensor, &Tensor)) -> Result<Tensor> {
        let (src, tgt) = (self.words.call(src)?, self.words.call(tgt)?);
        let mask = causal_mask(tgt.shape()[1], ())?;
        self.out.call(&self.transformer.call(Transform::new(&src, &tgt).tgt_mask(&mask))?)
    }
}

fn translator() -> Result<Translator> {
    let transformer = Transformer::new(16, 4, 2, 2, 24)?.batch_first(true)?.norm_first(true)?;
    let transformer = transformer.activation(|x| x.gelu(Approximate::None))?;
    Ok(Translator { words: Embedding::new(20, 16)?, transformer, out: Linear::new(16, 20)? })
}

/// The elements, none of which is lost in double precision.
fn exact(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// Loads torch's state into `model`, compares what it answers, and writes the state back.
fn check<M: Module>(name: &str, model: M, answer: impl Fn(&M, &[Tensor]) -> Result<Tensor>) {
    let file = golden(&format!("{name}.safetensors"));
    load(&model, &file).unwrap();
    model.eval();
    let mut ends = load_state(golden(&format!("{name}.ends.safetensors"))).unwrap();
    ends.sort_by(|a, b| a.0.cmp(&b.0));
    let ends: Vec<Tensor> = ends.into_iter().map(|(_, tensor)| tensor).collect();
    let (expected, inputs) = ends.split_last().unwrap();
    let got = answer(&model, inputs).unwrap();
    assert_eq!(got.shape(), expected.shape());
    let numbers = |tensor: &Tensor| tensor.to_vec::<f32>().unwrap();
    for (got, expected) in numbers(&got).into_iter().zip(numbers(expected)) {
        assert!((got - expected).abs() <= 1e-5 + 1.3e-6 * expected.abs(), "{name}: {got} is not {expected}");
    }
    let folder = Folder::new(name);
    let back = folder.0.join("back.safetensors");
    save(&model, &back).unwrap();
    let sorted = |path| {
        let mut state = load_state(path).unwrap();
        state.sort_by(|a, b| a.0.cmp(&b.0));
        state.into_iter().map(|(name, tensor)| (name, tensor.dtype(), exact(&tensor))).collect::<Vec<_>>()
    };
    assert_eq!(sorted(back), sorted(file));
}

#[test]
fn a_cnn_of_torch_is_loaded_and_written_back() {
    check("cnn", cnn().unwrap(), |model, inputs| model.call(&inputs[0]));
}

#[test]
fn an_lstm_of_torch_is_loaded_and_written_back() {
    check("tagger", tagger().unwrap(), |model, inputs| model.call(&inputs[0]));
}

#[test]
fn a_transformer_of_torch_is_loaded_and_written_back() {
    check("translator", translator().unwrap(), |model, inputs| model.call((&inputs[0], &inputs[1])));
}

#[test]
fn a_state_of_another_model_changes_nothing_and_all_that_is_wrong_is_told() {
    let model = tagger().unwrap();
    let before = model.tags.weight.tensor().to_vec::<f32>().unwrap();
    let error = load(&model, golden("cnn.safetensors")).unwrap_err().to_string();
    assert!(
        error.contains("words.weight is missing") && error.contains("conv1.weight is unknown"),
        "{error}"
    );
    assert_eq!(model.tags.weight.tensor().to_vec::<f32>().unwrap(), before);
}

#[test]
fn files_that_are_broken_are_errors_that_name_them() {
    let folder = Folder::new("broken");
    let path = folder.0.join("broken.safetensors");
    let whole = std::fs::read(golden("cnn.safetensors")).unwrap();
    let huge = [&u64::MAX.to_le_bytes()[..], b"{}"].concat();
    for bytes in [&[][..], &whole[..4], &whole[..whole.len() - 1], &huge, b"not a file of tensors at all"] {
        std::fs::write(&path, bytes).unwrap();
        let error = load_state(&path).unwrap_err().to_string();
        assert!(error.starts_with("load: ") && error.contains("broken.safetensors"), "{error}");
    }
    assert!(load_state(folder.0.join("none.safetensors")).is_err());
}

#[test]
fn every_element_type_comes_back_and_a_failed_save_keeps_the_file() {
    let folder = Folder::new("types");
    let path = folder.0.join("types.safetensors");
    let state: Vec<(String, Tensor)> = [
        Tensor::new([true, false]),
        Tensor::new([1u8, 2]),
        Tensor::new([-1i8, 2]),
        Tensor::new([-1i16, 2]),
        Tensor::new([-1i32, 2]),
        Tensor::new([-1i64, 2]),
        Tensor::new([-1.5f32, 2.0]),
        Tensor::new([-1.5f64, 2.0]),
        Tensor::new([-1.5f32, 2.0]).unwrap().to_dtype(DType::F16),
        Tensor::new([-1.5f32, 2.0]).unwrap().to_dtype(DType::BF16),
        Tensor::zeros([0, 3], ()),
        Tensor::new(7.0f32),
    ]
    .into_iter()
    .enumerate()
    .map(|(i, tensor)| (format!("t{i:02}"), tensor.unwrap()))
    .collect();
    save_state(&state, &path).unwrap();
    let twice = [state[0].clone(), state[0].clone()];
    assert!(save_state(&twice, &path).unwrap_err().to_string().contains("\"t00\" is there twice"));
    let mut back = load_state(&path).unwrap();
    back.sort_by(|a, b| a.0.cmp(&b.0));
    for ((name, tensor), (other_name, other)) in state.iter().zip(&back) {
        assert_eq!((name, tensor.dtype(), tensor.shape()), (other_name, other.dtype(), other.shape()));
        assert_eq!(exact(tensor), exact(other));
    }
    assert_eq!(back.len(), state.len());
}
