//! What is trained, on which data, and how it is judged.

use super::super::Outcome;
use clap::ValueEnum;
use cresset::Result;
use cresset::data::{self, Characters, Dataset, TensorDataset, Windows};
use cresset::models::{Cnn, Gpt, GptOptions, Rnn, mlp};
use cresset::nn::Layer;
use cresset::prelude::*;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A model that can be trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Model {
    /// Three linear layers on 8 × 8 pixels of handwritten digits
    Mlp,
    /// Two convolutions on handwritten digits
    Cnn,
    /// An LSTM that reads handwritten digits row by row
    Rnn,
    /// A small transformer that learns to write like Melville, character by character
    Gpt,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Model::Mlp => "mlp",
            Model::Cnn => "cnn",
            Model::Rnn => "rnn",
            Model::Gpt => "gpt",
        })
    }
}

impl Model {
    pub(super) fn epochs(self) -> usize {
        match self {
            Model::Mlp | Model::Rnn => 20,
            Model::Cnn => 15,
            Model::Gpt => 2,
        }
    }

    pub(super) fn batch(self) -> usize {
        if self == Model::Gpt { 16 } else { 64 }
    }

    fn make(self, characters: usize) -> Result<Box<Layer>> {
        Ok(match self {
            Model::Mlp => Box::new(mlp()?),
            Model::Cnn => Box::new(Cnn::new()?),
            Model::Rnn => Box::new(Rnn::new()?),
            Model::Gpt => Box::new(Gpt::new(GptOptions {
                vocabulary: characters,
                context: CONTEXT,
                layers: 3,
                features: 96,
                heads: 4,
                dropout: 0.1,
            })?),
        })
    }
}

/// Characters that gpt looks at.
const CONTEXT: usize = 64;
/// Characters of a sampled text.
const SAMPLED: usize = 300;
/// What a sampled text begins with.
const PROMPT: &str = "The whale ";

/// Samples to train with or to judge by: features and classes.
pub(super) enum Samples {
    Digits(TensorDataset<2>),
    Text(Windows),
}

impl Dataset for Samples {
    type Batch = [Tensor; 2];

    fn len(&self) -> usize {
        match self {
            Samples::Digits(digits) => digits.len(),
            Samples::Text(text) => text.len(),
        }
    }

    fn batch(&self, numbers: &[usize]) -> Result<[Tensor; 2]> {
        match self {
            Samples::Digits(digits) => digits.batch(numbers),
            Samples::Text(text) => text.batch(numbers),
        }
    }
}

/// A model and its data.
pub(crate) struct Task {
    pub(super) kind: Model,
    pub(crate) model: Arc<Layer>,
    pub(super) training: Arc<Samples>,
    held_out: Samples,
    /// What the numbers of a text stand for.
    characters: Option<Characters>,
}

impl Task {
    /// The model with weights by chance, and the data that come along, split by chance.
    pub(crate) fn new(kind: Model) -> Outcome<Task> {
        let (training, held_out, characters) = match kind {
            Model::Gpt => text()?,
            _ => digits()?,
        };
        let model = Arc::from(kind.make(characters.as_ref().map_or(0, Characters::len))?);
        Ok(Task { kind, model, training: Arc::new(training), held_out, characters })
    }

    pub(super) fn about(&self) -> &'static str {
        match self.kind {
            Model::Mlp => "an mlp",
            Model::Cnn => "a cnn",
            Model::Rnn => "an rnn",
            Model::Gpt => "a gpt",
        }
    }

    pub(super) fn samples(&self) -> String {
        match &*self.training {
            Samples::Digits(digits) => format!("{} digits", digits.len()),
            Samples::Text(text) => format!("{} windows of {CONTEXT} characters", text.len()),
        }
    }

    /// The mean loss of a batch, by this model or by one that wraps it.
    pub(super) fn loss(&self, model: &Layer, [features, classes]: &[Tensor; 2]) -> Result<Tensor> {
        let scores = model.call(features)?;
        let choices = scores.shape().last().copied().unwrap_or(1);
        scores.reshape([classes.numel(), choices])?.cross_entropy(&classes.reshape([classes.numel()])?)
    }

    /// How good the model is on samples that it has not seen, in words.
    pub(super) fn judge(&self, device: Device) -> Outcome<String> {
        let _guard = no_grad();
        self.model.eval();
        let (mut loss, mut right, mut count) = (0.0, 0.0, 0);
        for start in (0..self.held_out.len()).step_by(JUDGED) {
            let numbers: Vec<usize> = (start..self.held_out.len().min(start + JUDGED)).collect();
            let [features, classes] = self.held_out.batch(&numbers)?;
            let batch = [features.to(device)?, classes.to(device)?];
            loss += self.loss(&*self.model, &batch)?.item()?.as_f64() * numbers.len() as f64;
            count += numbers.len();
            if self.characters.is_none() {
                let [features, classes] = &batch;
                right += self.model.call(features)?.argmax(1, false)?.eq(classes)?.sum()?.item()?.as_f64();
            }
        }
        self.model.train();
        let loss = loss / count as f64;
        Ok(match self.characters {
            None => format!("held-out accuracy {:.2} % of {count} digits", 100.0 * right / count as f64),
            Some(_) => format!("held-out loss {loss:.4}, perplexity {:.3} per character", loss.exp()),
        })
    }

    /// A text by the model, if it writes.
    pub(super) fn sample(&self, device: Device) -> Outcome<Option<String>> {
        self.characters.as_ref().map(|_| self.write(PROMPT, SAMPLED, 0.8, device)).transpose()
    }

    /// `prompt` and `count` characters after it. A higher `temperature` is bolder.
    pub(crate) fn write(
        &self,
        prompt: &str,
        count: usize,
        temperature: f64,
        device: Device,
    ) -> Outcome<String> {
        let characters = self.characters.as_ref().ok_or("only gpt writes text")?;
        let _guard = no_grad();
        self.model.eval();
        let mut numbers = characters.encode(prompt)?;
        if numbers.is_empty() {
            return Err("the prompt is empty; the model needs something to go on from".into());
        }
        for _ in 0..count {
            let seen = &numbers[numbers.len().saturating_sub(CONTEXT)..];
            let seen = Tensor::from_slice(seen, [1, seen.len()])?.to(device)?;
            let scores = self.model.call(&seen)?.select(1, -1)?.reshape([characters.len()])?;
            let shares = scores.div(temperature)?.softmax(-1)?.to(Device::CPU)?.to_vec::<f32>()?;
            numbers.push(pick(&shares, Tensor::rand([1], DType::F64)?.to_vec::<f64>()?[0]));
        }
        self.model.train();
        Ok(characters.decode(&numbers)?)
    }

    /// The class of each row of pixels, and how sure the model is.
    pub(crate) fn classify(&self, pixels: &Tensor) -> Outcome<Vec<(i64, f64)>> {
        if self.characters.is_some() {
            return Err("gpt reads text, not digits; give it a --prompt".into());
        }
        let _guard = no_grad();
        self.model.eval();
        let shares = self.model.call(pixels)?.softmax(-1)?;
        let classes = shares.argmax(1, false)?.to(Device::CPU)?.to_vec::<i64>()?;
        let sure = shares.amax(&[1], false)?.to(Device::CPU)?.to_vec::<f32>()?;
        Ok(classes.into_iter().zip(sure.into_iter().map(f64::from)).collect())
    }
}

/// Samples that are judged at once.
const JUDGED: usize = 256;

/// The first choice at which the shares so far exceed `chance`.
fn pick(shares: &[f32], chance: f64) -> i64 {
    let mut sum = 0.0;
    let found = shares.iter().position(|&share| {
        sum += f64::from(share);
        sum > chance
    });
    found.unwrap_or(shares.len() - 1) as i64
}

/// Four fifths to train with and one to judge by, in random order.
fn digits() -> Outcome<(Samples, Samples, Option<Characters>)> {
    let all = data::digits()?;
    let order: Vec<i64> = Tensor::randperm(all.len())?.to_vec()?;
    let (training, held_out) = order.split_at(all.len() * 4 / 5);
    let part = |index: &[i64]| {
        let part = all.select(&Tensor::from_slice(index, [index.len()])?)?;
        TensorDataset::new([part.features, part.classes]).map(Samples::Digits)
    };
    Ok((part(training)?, part(held_out)?, None))
}

/// Nine tenths of the text to train with, its end to judge by.
fn text() -> Outcome<(Samples, Samples, Option<Characters>)> {
    let text = data::moby_dick()?;
    let characters = Characters::of(&text)?;
    let numbers = characters.encode(&text)?;
    let (training, held_out) = numbers.split_at(numbers.len() / 10 * 9);
    let windows = |part: &[i64]| Windows::new(part.to_vec(), CONTEXT, CONTEXT).map(Samples::Text);
    Ok((windows(training)?, windows(held_out)?, Some(characters)))
}

/// The weights at `path`: a file, a checkpoint, or a directory of checkpoints, of which the newest counts.
pub(crate) fn saved_model(path: &Path) -> Outcome<std::path::PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let inside = path.join("model.safetensors");
    if inside.is_file() {
        return Ok(inside);
    }
    match cresset::checkpoint::Checkpoints::new(path)?.newest()? {
        Some(newest) => Ok(newest.model()),
        None => {
            Err(format!("{}: there is no checkpoint; train with --checkpoint first", path.display()).into())
        }
    }
}
