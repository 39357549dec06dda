//! NPY, NumPy's format for one array: a header that is a literal of Python's, then the elements.
//!
//! The header is read by hand: it has three entries of known form, and whatever else Python could write
//! there, nested or not, is refused where it begins.

use super::{Source, fault};
use cresset_tensor::{Element, Error, Result, Tensor, f16};
use std::path::Path;

const READER: &str = "read_npy";
const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Bytes that a header may have: thousands of times what one needs.
const LONGEST_HEADER: u32 = 1 << 20;
/// Dimensions that NumPy's arrays have at most.
const MOST_DIMENSIONS: usize = 64;

/// The tensor in the NPY file `path`, which `numpy.save` writes.
///
/// Elements of either byte order are read, and arrays whose columns lie together; arrays of objects or of
/// structures are not. What follows the array in the file is left alone, as by NumPy.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("cresset-npy-{}.npy", std::process::id()));
/// # let mut bytes = b"\x93NUMPY\x01\0\x38\0{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1)}".to_vec();
/// # bytes[8] = (bytes.len() - 10) as u8;
/// # bytes.extend([1, 0, 2, 0]);
/// # std::fs::write(&path, bytes).unwrap();
/// let x = cresset_data::read_npy(&path)?;
/// assert_eq!((x.shape(), x.to_vec::<i16>()?), (&[2, 1][..], vec![1, 2]));
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read, is no NPY file, holds what no tensor holds, or ends early.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    Source::open(READER, path)?.npy()
}

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    /// How elements are written, e.g. `<f4`.
    descr: String,
    /// Whether columns lie together rather than rows.
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Source<'_> {
    fn npy(mut self) -> Result<Tensor> {
        let magic = self.array::<6>()?;
        if magic != MAGIC {
            return Err(self.fault("begins otherwise than an NPY file"));
        }
        let [major, minor] = self.array()?;
        let length = match (major, minor) {
            (1, 0) => u32::from(u16::from_le_bytes(self.array()?)),
            (2 | 3, 0) => u32::from_le_bytes(self.array()?),
            _ => {
                let known = "1.0, 2.0 and 3.0 are known";
                return Err(self.fault(format_args!("is of version {major}.{minor}; {known}")));
            }
        };
        if length > LONGEST_HEADER {
            return Err(
                self.fault(format_args!("has a header of {length} bytes; {LONGEST_HEADER} are too many"))
            );
        }
        let start = self.place;
        let text = self.bytes(length as usize, "the end of its header")?;
        let header = Literal { text: &text, at: 0 }
            .header()
            .map_err(|(at, what)| fault(READER, self.path, format_args!("byte {}: {what}", start + at)))?;
        self.npy_elements(&header)
    }

    fn npy_elements(self, header: &Header) -> Result<Tensor> {
        let (order, kind) = header.descr.split_at_checked(1).unwrap_or(("", &header.descr));
        let swapped = match order {
            "<" | "|" => false,
            ">" => true,
            "=" => cfg!(target_endian = "big"),
            _ => return Err(self.unknown(&header.descr)),
        };
        match kind {
            "b1" => self.each(header, swapped, |[byte]| byte != 0),
            "u1" => self.each(header, swapped, u8::from_le_bytes),
            "i1" => self.each(header, swapped, i8::from_le_bytes),
            "i2" => self.each(header, swapped, i16::from_le_bytes),
            "i4" => self.each(header, swapped, i32::from_le_bytes),
            "i8" => self.each(header, swapped, i64::from_le_bytes),
            "f2" => self.each(header, swapped, f16::from_le_bytes),
            "f4" => self.each(header, swapped, f32::from_le_bytes),
            "f8" => self.each(header, swapped, f64::from_le_bytes),
            _ => Err(self.unknown(&header.descr)),
        }
    }

    fn unknown(&self, descr: &str) -> Error {
        self.fault(format_args!(
            "elements of {descr:?} are not known; b1, u1, i1, i2, i4, i8, f2, f4 and f8 are"
        ))
    }

    fn each<T: Element, const N: usize>(
        mut self,
        Header { fortran_order, shape, .. }: &Header,
        swapped: bool,
        element: fn([u8; N]) -> T,
    ) -> Result<Tensor> {
        let is_empty = shape.contains(&0);
        let bytes =
            if is_empty { Some(0) } else { shape.iter().try_fold(N, |all, &size| all.checked_mul(size)) };
        let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
            return Err(self.fault(format_args!("shape {shape:?} is more than memory can hold")));
        };
        let read = self.bytes(bytes, format_args!("the last element of {shape:?}"))?;
        let (chunks, _) = read.as_chunks::<N>();
        let one = |&(mut bytes): &[u8; N]| {
            if swapped {
                bytes.reverse();
            }
            element(bytes)
        };
        let elements = chunks.iter().map(one).collect();
        if !fortran_order {
            return Tensor::from_vec(elements, shape).map_err(|error| self.fault(error));
        }
        let turned: Vec<usize> = shape.iter().rev().copied().collect();
        let dims: Vec<isize> = (0..shape.len() as isize).rev().collect();
        let rows = Tensor::from_vec(elements, turned).map_err(|error| self.fault(error))?;
        rows.permute(&dims)?.contiguous()
    }
}

/// The text of a header, and where in it we are.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

/// Where something is wrong, and what.
type Wrong = (usize, String);

impl Literal<'_> {
    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, entries in any order.
    fn header(mut self) -> std::result::Result<Header, Wrong> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while self.peek() != Some(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key.as_str() {
                "descr" => descr = Some(self.string()?),
                "fortran_order" => fortran_order = Some(self.truth()?),
                "shape" => shape = Some(self.sizes()?),
                _ => return Err(self.wrong(format!("an entry {key:?} is not known"))),
            }
            if self.peek() != Some(b'}') {
                self.expect(b',')?;
            }
        }
        self.expect(b'}')?;
        if self.peek().is_some() {
            return Err(self.wrong("expected nothing after the entries".into()));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape }),
            _ => Err(self.wrong("expected entries 'descr', 'fortran_order' and 'shape'".into())),
        }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> std::result::Result<(), Wrong> {
        if self.peek() != Some(byte) {
            return Err(self.wrong(format!("expected {:?}", char::from(byte))));
        }
        self.at += 1;
        Ok(())
    }

    /// Text in quotes, without escapes: no element type needs one.
    fn string(&mut self) -> std::result::Result<String, Wrong> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            return Err(self.wrong("expected text in quotes".into()));
        };
        let rest = &self.text[self.at + 1..];
        let end = rest.iter().position(|&byte| byte == quote);
        let Some(text) =
            end.and_then(|end| str::from_utf8(&rest[..end]).ok()).filter(|text| !text.contains('\\'))
        else {
            return Err(self.wrong("expected text in quotes".into()));
        };
        self.at += text.len() + 2;
        Ok(text.to_owned())
    }

    fn truth(&mut self) -> std::result::Result<bool, Wrong> {
        self.peek();
        for (word, truth) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(truth);
            }
        }
        Err(self.wrong("expected True or False".into()))
    }

    /// `()`, `(2,)`, `(2, 3)`.
    fn sizes(&mut self) -> std::result::Result<Vec<usize>, Wrong> {
        let mut sizes = Vec::new();
        self.expect(b'(')?;
        while self.peek() != Some(b')') {
            sizes.push(self.size()?);
            // Python takes one in brackets for a number unless a comma follows.
            if self.peek() != Some(b')') || sizes.len() == 1 {
                self.expect(b',')?;
            }
            if sizes.len() > MOST_DIMENSIONS {
                return Err(self.wrong(format!("expected at most {MOST_DIMENSIONS} dimensions")));
            }
        }
        self.expect(b')')?;
        Ok(sizes)
    }

    fn size(&mut self) -> std::result::Result<usize, Wrong> {
        self.peek();
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = str::from_utf8(&self.text[self.at..][..digits]).unwrap_or_default();
        match text.parse() {
            Ok(size) => {
                self.at += digits;
                // What Python 2 wrote after long numbers.
                self.at += usize::from(self.text.get(self.at) == Some(&b'L'));
                Ok(size)
            }
            Err(_) => Err(self.wrong("expected a size that is not negative".into())),
        }
    }

    fn wrong(&self, what: String) -> Wrong {
        (self.at, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> std::result::Result<Header, Wrong> {
        Literal { text: text.as_bytes(), at: 0 }.header()
    }

    #[test]
    fn headers_of_numpy_are_read() {
        let expected = Header { descr: "<f4".into(), fortran_order: true, shape: vec![2, 30] };
        let text = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 30), }          \n";
        assert_eq!(header(text), Ok(expected));
        assert_eq!(header("{'shape':(),'descr':\"|b1\",'fortran_order':False}").unwrap().shape, []);
        assert_eq!(header("{'shape':(7L,),'descr':'|u1','fortran_order':False}").unwrap().shape, [7]);
    }

    #[test]
    fn what_is_no_header_is_told_with_its_place() {
        let wrong = |text: &str| header(text).unwrap_err();
        assert_eq!(wrong("{'descr': [('x', '<f4')]}"), (10, "expected text in quotes".into()));
        assert_eq!(wrong("{'shape': (-2,)}"), (11, "expected a size that is not negative".into()));
        assert_eq!(wrong("{'shape': (2)}"), (12, "expected ','".into()));
        assert_eq!(wrong("{'fortran_order': 1}"), (18, "expected True or False".into()));
        assert_eq!(wrong("{'more': 1}"), (8, "an entry \"more\" is not known".into()));
        assert_eq!(wrong("{'descr': '<f4'}").1, "expected entries 'descr', 'fortran_order' and 'shape'");
        assert_eq!(wrong("{").1, "expected text in quotes");
        assert_eq!(wrong(&"{".repeat(100_000)), (1, "expected text in quotes".into()));
    }

    /// A file as NumPy writes it.
    fn written(name: &str, descr: &str, order: &str, shape: &str, elements: &[u8]) -> Result<Tensor> {
        let path = std::env::temp_dir().join(format!("cresset-npy-{name}-{}.npy", std::process::id()));
        let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        let bytes = [&MAGIC[..], &[1, 0], &length, header.as_bytes(), elements].concat();
        std::fs::write(&path, bytes).unwrap();
        let read = read_npy(&path);
        std::fs::remove_file(path).unwrap();
        read
    }

    #[test]
    fn either_order_of_bytes_and_of_elements_is_read() {
        let read = |name, descr, order, bytes: &[u8]| written(name, descr, order, "(2, 2)", bytes).unwrap();
        let little = read("little", "<i2", "False", &[1, 0, 2, 0, 3, 0, 4, 0]);
        let big = read("big", ">i2", "False", &[0, 1, 0, 2, 0, 3, 0, 4]);
        let columns = read("columns", "<i2", "True", &[1, 0, 3, 0, 2, 0, 4, 0]);
        for x in [little, big, columns] {
            assert_eq!(x.to_vec::<i16>().unwrap(), [1, 2, 3, 4]);
        }
    }

    #[test]
    fn what_a_shape_promises_must_be_there() {
        let error = written("short", "<f4", "False", "(1000,)", &[0; 8]).unwrap_err().to_string();
        assert!(error.ends_with("ends 3992 bytes before the last element of [1000]"), "{error}");
        let huge = "(1099511627776, 1099511627776)";
        let error = written("huge", "<f4", "False", huge, &[]).unwrap_err().to_string();
        assert!(error.ends_with("is more than memory can hold"), "{error}");
        let error = written("objects", "|O", "False", "(2,)", &[0; 16]).unwrap_err().to_string();
        assert!(error.contains("elements of \"|O\" are not known"), "{error}");
        assert_eq!(written("none", "<f8", "False", "(0, 3)", &[]).unwrap().shape(), [0, 3]);
    }
}
