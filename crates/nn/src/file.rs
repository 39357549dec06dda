//! States in files, as safetensors: what torch saves is loaded here, and the other way round.

use crate::Module;
use cresset_tensor::{Cause, DType, Element, Error, Result, Tensor, bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Writes the state of `module` to `path`.
///
/// ```
/// use cresset_nn::{Linear, Module, load, save};
///
/// # let folder = std::env::temp_dir().join(format!("cresset-nn-save-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let path = folder.join("model.safetensors");
/// let (trained, fresh) = (Linear::new(4, 2)?, Linear::new(4, 2)?);
/// save(&trained, &path)?;
/// load(&fresh, &path)?;
/// assert_eq!(trained.weight.tensor().to_vec::<f32>()?, fresh.weight.tensor().to_vec::<f32>()?);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), cresset_nn::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be written; one that was there before is as it was then.
pub fn save(module: &dyn Module, path: impl AsRef<Path>) -> Result<()> {
    save_state(&module.state_dict(), path)
}

/// Overwrites the state of `module` with that in the file `path`.
///
/// # Errors
/// If the file cannot be read, or one error that lists all names that are missing or unknown and all
/// shapes that differ. The module is as before then.
pub fn load(module: &dyn Module, path: impl AsRef<Path>) -> Result<()> {
    module.load_state_dict(&load_state(path)?)
}

/// Writes tensors by name to `path`.
///
/// # Errors
/// If a name is there twice, or the file cannot be written; one that was there before is as it was then.
pub fn save_state(state: &[(String, Tensor)], path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let told = |error: &dyn Display| fault("save", path, error);
    let mut parts: HashMap<&str, (Dtype, &[usize], Vec<u8>)> = HashMap::new();
    for (name, tensor) in state {
        let part = (dtype(tensor.dtype()), tensor.shape(), bytes(tensor)?);
        if parts.insert(name, part).is_some() {
            return Err(told(&format_args!("{name:?} is there twice")));
        }
    }
    let mut views = Vec::new();
    for (name, (dtype, shape, bytes)) in &parts {
        views.push((*name, TensorView::new(*dtype, shape.to_vec(), bytes).map_err(|error| told(&error))?));
    }
    // Other readers of such files ask for whom they were made.
    let about = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let file = safetensors::serialize(views, Some(about)).map_err(|error| told(&error))?;
    replace_file(path, &file).map_err(|error| told(&error))
}

/// Writes a file beside `path` and gives it that name once all of it is on the disk: whoever is interrupted leaves
/// the file of before, never a part of one.
///
/// # Errors
/// If it cannot be written; nothing is left behind then.
#[doc(hidden)]
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else { return Err(io::ErrorKind::IsADirectory.into()) };
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Relaxed));
    let partial = path.with_file_name(format!(".{}.{process}.{count}.partial", name.to_string_lossy()));
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let outcome = written.and_then(|()| fs::rename(&partial, path));
    if outcome.is_err() {
        // The first error is the one to tell; there may be nothing to remove.
        let _ = fs::remove_file(&partial);
    }
    outcome
}

/// The tensors in the file `path`, by name.
///
/// # Errors
/// If the file cannot be read, or is not what it should be.
pub fn load_state(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let told = |error: &dyn Display| fault("load", path, error);
    let file = fs::read(path).map_err(|error| told(&error))?;
    let parsed = SafeTensors::deserialize(&file).map_err(|error| told(&error))?;
    let each = |(name, view): (String, TensorView<'_>)| {
        let tensor = tensor(view.dtype(), view.shape(), view.data());
        Ok((name.clone(), tensor.map_err(|error| told(&format_args!("{name}: {error}")))?))
    };
    parsed.tensors().into_iter().map(each).collect()
}

fn fault(what: &'static str, path: &Path, error: &dyn Display) -> Error {
    Error::new(Cause::Argument, what, format_args!("{}: {error}", path.display()))
}

fn dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

/// The elements in row-major order, least byte first.
fn bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    fn all<T: Element, const N: usize>(tensor: &Tensor, bytes: fn(T) -> [u8; N]) -> Result<Vec<u8>> {
        Ok(tensor.to_vec::<T>()?.into_iter().flat_map(bytes).collect())
    }
    let tensor = &tensor.detach()?;
    match tensor.dtype() {
        DType::Bool => all(tensor, |truth: bool| [u8::from(truth)]),
        DType::U8 => all(tensor, u8::to_le_bytes),
        DType::I8 => all(tensor, i8::to_le_bytes),
        DType::I16 => all(tensor, i16::to_le_bytes),
        DType::I32 => all(tensor, i32::to_le_bytes),
        DType::I64 => all(tensor, i64::to_le_bytes),
        DType::F16 => all(tensor, f16::to_le_bytes),
        DType::BF16 => all(tensor, bf16::to_le_bytes),
        DType::F32 => all(tensor, f32::to_le_bytes),
        DType::F64 => all(tensor, f64::to_le_bytes),
    }
}

fn tensor(dtype: Dtype, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
    fn all<T: Element, const N: usize>(
        bytes: &[u8],
        shape: &[usize],
        element: fn([u8; N]) -> T,
    ) -> Result<Tensor> {
        let (chunks, _) = bytes.as_chunks::<N>();
        Tensor::from_vec(chunks.iter().copied().map(element).collect(), shape)
    }
    match dtype {
        Dtype::BOOL => all(bytes, shape, |[byte]| byte != 0),
        Dtype::U8 => all(bytes, shape, u8::from_le_bytes),
        Dtype::I8 => all(bytes, shape, i8::from_le_bytes),
        Dtype::I16 => all(bytes, shape, i16::from_le_bytes),
        Dtype::I32 => all(bytes, shape, i32::from_le_bytes),
        Dtype::I64 => all(bytes, shape, i64::from_le_bytes),
        Dtype::F16 => all(bytes, shape, f16::from_le_bytes),
        Dtype::BF16 => all(bytes, shape, bf16::from_le_bytes),
        Dtype::F32 => all(bytes, shape, f32::from_le_bytes),
        Dtype::F64 => all(bytes, shape, f64::from_le_bytes),
        other => Err(Error::new(Cause::DType, "load", format_args!("elements of {other:?} are not known"))),
    }
}
