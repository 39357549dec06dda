//! IDX, the format of MNIST: a code for the element type, the sizes, the elements, greatest byte first.

use super::{fault, open};
use cresset_tensor::{Element, Error, Result, Tensor};
use std::fmt::Display;
use std::io::Read;
use std::path::Path;

const READER: &str = "read_idx";

/// The tensor in the IDX file `path`, e.g. `train-images-idx3-ubyte.gz`.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("cresset-idx-{}", std::process::id()));
/// # std::fs::write(&path, [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]).unwrap();
/// let images = cresset_data::read_idx(&path)?;
/// assert_eq!(images.shape(), [2, 3]);
/// assert_eq!(images.to_vec::<u8>()?, [1, 2, 3, 4, 5, 6]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read, is no IDX file, ends early or goes on after its last element.
pub fn read_idx(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    Source { path, file: open(READER, path)?, place: 0 }.read()
}

/// A file, and how much of it was read.
struct Source<'a> {
    path: &'a Path,
    file: Box<dyn Read>,
    place: usize,
}

impl Source<'_> {
    fn read(mut self) -> Result<Tensor> {
        let [zero, zero2, code, rank] = self.array()?;
        if (zero, zero2) != (0, 0) {
            let found = format_args!("begins with bytes {zero} and {zero2}, and an IDX file with two zeros");
            return Err(self.fault(found));
        }
        let mut shape = Vec::new();
        for _ in 0..rank {
            shape.push(u32::from_be_bytes(self.array()?) as usize);
        }
        match code {
            0x08 => self.elements(&shape, u8::from_be_bytes),
            0x09 => self.elements(&shape, i8::from_be_bytes),
            0x0b => self.elements(&shape, i16::from_be_bytes),
            0x0c => self.elements(&shape, i32::from_be_bytes),
            0x0d => self.elements(&shape, f32::from_be_bytes),
            0x0e => self.elements(&shape, f64::from_be_bytes),
            _ => {
                let known = "8 (u8), 9 (i8), 11 (i16), 12 (i32), 13 (f32) and 14 (f64)";
                Err(self.fault(format_args!("element type {code} is not known; {known} are")))
            }
        }
    }

    fn elements<T: Element, const N: usize>(
        mut self,
        shape: &[usize],
        element: fn([u8; N]) -> T,
    ) -> Result<Tensor> {
        let bytes = shape.iter().try_fold(N, |bytes, &size| bytes.checked_mul(size));
        let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
            return Err(self.fault(format_args!("shape {shape:?} is more than memory can hold")));
        };
        // Grows as bytes arrive: what the file promises is not believed beforehand.
        let mut read = Vec::new();
        self.file.by_ref().take(bytes as u64).read_to_end(&mut read).map_err(|error| self.fault(error))?;
        self.place += read.len();
        if read.len() < bytes {
            let missing = bytes - read.len();
            return Err(self.fault(format_args!("ends {missing} bytes before the last element of {shape:?}")));
        }
        let beyond = self.file.by_ref().read(&mut [0]).map_err(|error| self.fault(error))?;
        if beyond > 0 {
            return Err(self.fault(format_args!("goes on after the last element of {shape:?}")));
        }
        let (chunks, _) = read.as_chunks::<N>();
        Tensor::from_vec(chunks.iter().copied().map(element).collect(), shape)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|error| self.fault(error))?;
        self.place += N;
        Ok(bytes)
    }

    fn fault(&self, what: impl Display) -> Error {
        fault(READER, self.path, format_args!("byte {}: {what}", self.place))
    }
}
