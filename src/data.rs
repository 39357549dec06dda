//! Data sets that come along, so that nothing has to be downloaded, and loaders for any.

pub use cresset_data::{Builder, DataLoader, Dataset, Each, Epoch, TensorDataset};

use crate::{Result, Tensor};
use cresset_tensor::{Cause, Error};
use flate2::read::GzDecoder;
use std::io::Read;

/// Samples and their classes.
pub struct Labelled {
    /// One row of features per sample, `f32`.
    pub features: Tensor,
    /// The class of each sample, `i64`.
    pub classes: Tensor,
}

impl Labelled {
    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.classes.numel()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples that `index` names, in its order.
    pub fn select(&self, index: &Tensor) -> Result<Labelled> {
        Ok(Labelled {
            features: self.features.index_select(0, index)?,
            classes: self.classes.index_select(0, index)?,
        })
    }
}

/// Pixels of a digit.
const PIXELS: usize = 64;

/// 1 797 handwritten digits, 8 × 8 pixels from 0 to 1 (source and licence in `data/README.md`).
pub fn digits() -> Result<Labelled> {
    let broken = |what: &dyn std::fmt::Display| {
        Error::new(Cause::Argument, "digits", format_args!("the embedded data is broken: {what}"))
    };
    let mut text = String::new();
    let packed: &[u8] = include_bytes!("../data/digits.csv.gz");
    GzDecoder::new(packed).read_to_string(&mut text).map_err(|error| broken(&error))?;
    let (mut features, mut classes) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let numbers: Vec<f32> = line
            .split(',')
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| broken(&error))?;
        let [pixels @ .., digit] = &numbers[..] else { return Err(broken(&"an empty line")) };
        if pixels.len() != PIXELS {
            return Err(broken(&format_args!("a line of {} pixels", pixels.len())));
        }
        features.extend(pixels.iter().map(|pixel| pixel / 16.0));
        classes.push(*digit as i64);
    }
    let features = Tensor::from_slice(&features, [classes.len(), PIXELS])?;
    let classes = Tensor::from_slice(&classes, [classes.len()])?;
    Ok(Labelled { features, classes })
}
