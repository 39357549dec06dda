//! Data sets that come along, so that nothing has to be downloaded, and loaders for any.

pub use cresset_data::{
    Builder, Characters, Csv, DataLoader, Dataset, Each, Epoch, Pin, Pinned, Table, TensorDataset, Windows,
    read_idx, read_npy,
};
pub use cresset_nn::load_state as read_safetensors;

use crate::{DType, Result, Tensor};
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
    let table = Csv::default().parse(&unpacked(include_bytes!("../data/digits.csv.gz"))?)?;
    let all = table.values();
    let features = all.narrow(1, 0, PIXELS)?.div(16.0)?;
    let classes = all.select(1, PIXELS as isize)?.to_dtype(DType::I64)?;
    Ok(Labelled { features, classes })
}

/// The first 32 chapters of Melville's *Moby-Dick*, in 76 plain characters (source in `data/README.md`).
pub fn moby_dick() -> Result<String> {
    unpacked(include_bytes!("../data/moby-dick.txt.gz"))
}

fn unpacked(packed: &[u8]) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).map_err(|error| {
        Error::new(Cause::Argument, "data", format_args!("what comes along is broken: {error}"))
    })?;
    Ok(text)
}
