//! Whole training runs: from recorded weights and batches, step by step along torch's curve.

mod case;
mod model;
mod replay;
mod transformer;
mod words;

use crate::golden::{BadFile, Golden, told_all};
use crate::replay::guarded;
use crate::report::{Fault, Report, Row, Suite};
use case::{Case, parse_case};
use cresset_optim::Implementation;
use cresset_tensor::Device;
use std::path::Path;

/// Training runs.
pub const TRAININGS: Suite = Suite {
    one: "model",
    list: "models",
    preface: "\
# Training, beside PyTorch

Models that PyTorch trained, trained again here from the same weights with the same batches by

    cresset parity train FOLDER --markdown docs/parity-train.md

A case is one run in one implementation of its optimizer: fused, over lists, and operator by operator. It
passes if the loss of every step is torch's, within 1e-5 and four times what torch's own rounding moved it for
32 bits and within 1e-10 for 64; if all gradients of the first step are; and if the weights and buffers at the
end are. The worst error is a share of the tolerance, so 1 would be its edge. A model or an optimizer whose
description is not understood is unsupported; it never counts as passed.

",
};

/// Trains the models of `folder`, or model `only`, and shows each row when it is done.
///
/// # Errors
/// If a file cannot be read, or there is none.
pub fn replay_training(
    folder: &Path,
    only: Option<&str>,
    device: Device,
    show: impl FnMut(&Row),
) -> Result<Report, Fault> {
    Report::collect(TRAININGS, folder, only, show, |path| row(path, device))
}

fn row(path: &Path, device: Device) -> Result<Option<Row>, BadFile> {
    let Some((json, golden)) = Golden::open(path, "train")? else { return Ok(None) };
    let cases = told_all(&json["cases"], parse_case).map_err(|reason| BadFile::new(path, reason))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut row = Row { name, category: "training".to_owned(), ..Row::default() };
    for case in &cases {
        for implementation in implementations(case) {
            let id = format!("{} {}", case.id, format!("{implementation:?}").to_lowercase());
            row.count(&id, guarded(|| replay::replay(&golden, case, implementation, device)));
        }
    }
    Ok(Some(row))
}

/// All that the optimizer of a case has; one for an optimizer that is not known.
fn implementations(case: &Case) -> Vec<Implementation> {
    let known = words::Call::parse(&case.optimizer)
        .and_then(|(call, _)| Some(crate::optim::find(&call.name).ok()?.implementations.to_vec()));
    known.unwrap_or_else(|| vec![Implementation::Single])
}
