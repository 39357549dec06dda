//! IDX, the format of MNIST: a code for the element type, the sizes, the elements, greatest byte first.

use super::Source;
use cresset_tensor::{Element, Result, Tensor};
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
    Source::open(READER, path)?.idx()
}

impl Source<'_> {
    fn idx(mut self) -> Result<Tensor> {
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
        let read = self.bytes(bytes, format_args!("the last element of {shape:?}"))?;
        let beyond = self.file.by_ref().read(&mut [0]).map_err(|error| self.fault(error))?;
        if beyond > 0 {
            return Err(self.fault(format_args!("goes on after the last element of {shape:?}")));
        }
        let (chunks, _) = read.as_chunks::<N>();
        let elements = chunks.iter().copied().map(element).collect();
        Tensor::from_vec(elements, shape).map_err(|error| self.fault(error))
    }
}
