//! Files of samples: what they hold, and what is said of broken ones.

use cresset_data::{Csv, DType, Dataset, Windows, read_idx};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::PathBuf;

/// A file of this test below the build directory, removed with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Scratch {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Scratch(path)
    }

    /// What reading it as IDX says, without the path.
    fn idx_fault(&self) -> String {
        let text = read_idx(&self.0).unwrap_err().to_string();
        text.replace(&self.0.display().to_string(), "FILE")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const MATRIX: [u8; 18] = [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6];

#[test]
fn idx_files_are_read_plain_and_packed() {
    for file in [Scratch::new("m.idx", &MATRIX), Scratch::new("m.idx.gz", &packed(&MATRIX))] {
        let matrix = read_idx(&file.0).unwrap();
        assert_eq!((matrix.shape(), matrix.dtype()), (&[2, 3][..], DType::U8));
        assert_eq!(matrix.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn idx_elements_have_their_greatest_byte_first() {
    let file = Scratch::new("i32.idx", &[0, 0, 12, 1, 0, 0, 0, 2, 0, 0, 1, 2, 255, 255, 255, 254]);
    assert_eq!(read_idx(&file.0).unwrap().to_vec::<i32>().unwrap(), [258, -2]);
    let file = Scratch::new("f32.idx", &[0, 0, 13, 0, 0x3f, 0xc0, 0, 0]);
    assert_eq!(read_idx(&file.0).unwrap().to_vec::<f32>().unwrap(), [1.5]);
}

#[test]
fn an_idx_file_cut_anywhere_is_an_error_that_says_where() {
    for length in 0..MATRIX.len() {
        let told = Scratch::new(&format!("cut{length}"), &MATRIX[..length]).idx_fault();
        assert!(told.starts_with("read_idx: FILE: byte "), "{told}");
    }
    let told = Scratch::new("short", &MATRIX[..16]).idx_fault();
    assert_eq!(told, "read_idx: FILE: byte 16: ends 2 bytes before the last element of [2, 3]");
}

#[test]
fn an_idx_file_that_promises_too_much_takes_no_memory() {
    let mut hostile = vec![0, 0, 14, 3];
    hostile.extend([0xff; 12]);
    let told = Scratch::new("hostile", &hostile).idx_fault();
    assert!(told.contains("is more than memory can hold"), "{told}");
    let told = Scratch::new("large", &[0, 0, 8, 1, 0x7f, 0xff, 0xff, 0xff, 1]).idx_fault();
    assert!(told.contains("ends 2147483646 bytes before"), "{told}");
    // Nothing to read, and yet no shape that can be counted.
    let nothing = [[0, 0, 8, 3], [0xff; 4], [0; 4], [0xff; 4]].concat();
    let told = Scratch::new("nothing", &nothing).idx_fault();
    assert!(told.starts_with("read_idx: FILE: byte 16: "), "{told}");
}

#[test]
fn other_files_are_no_idx_files() {
    assert_eq!(
        Scratch::new("text", b"hello world").idx_fault(),
        "read_idx: FILE: byte 4: begins with bytes 104 and 101, and an IDX file with two zeros"
    );
    let told = Scratch::new("type", &[0, 0, 10, 0, 0]).idx_fault();
    assert!(told.contains("element type 10 is not known; 8 (u8)"), "{told}");
    let mut longer = MATRIX.to_vec();
    longer.push(7);
    let told = Scratch::new("longer", &longer).idx_fault();
    assert!(told.contains("goes on after the last element of [2, 3]"), "{told}");
    assert!(read_idx("no/such/file").unwrap_err().to_string().contains("no/such/file"));
}

#[test]
fn csv_files_are_read_with_and_without_names() {
    let file = Scratch::new("named.csv.gz", &packed(b"a;b\n1; 2.5\n-3;4e2\n"));
    let table = Csv::default().header(true).delimiter(b';').read(&file.0).unwrap();
    assert_eq!(table.names(), ["a", "b"]);
    assert_eq!(table.values().to_vec::<f32>().unwrap(), [1.0, 2.5, -3.0, 400.0]);
    assert_eq!(table.column("b").unwrap().to_vec::<f32>().unwrap(), [2.5, 400.0]);
    assert_eq!(Csv::default().parse("1,2\n3,4\n").unwrap().values().shape(), [2, 2]);
}

#[test]
fn what_is_wrong_with_a_csv_file_has_a_line_and_a_column() {
    let told = |text: &str| Csv::default().parse(text).err().expect("refused").to_string();
    assert_eq!(told("1,2\n3,x\n"), "Csv: text: line 2, column 2: \"x\" is no number");
    assert!(told("1,2\n3\n").contains("line: 2"), "{}", told("1,2\n3\n"));
    assert_eq!(told(""), "Csv: text: has no samples");
    let table = Csv::default().header(true).parse("a,b\n1,2\n").unwrap();
    let told = table.column("c").unwrap_err().to_string();
    assert_eq!(told, "Csv: no column is called \"c\"; there are a, b");
}

#[test]
fn windows_cover_a_text_and_nothing_beyond_it() {
    let windows = Windows::new((0..10).collect(), 4, 3).unwrap();
    assert_eq!(windows.len(), 2);
    let [now, next] = windows.batch(&[1]).unwrap();
    assert_eq!(now.to_vec::<i64>().unwrap(), [3, 4, 5, 6]);
    assert_eq!(next.to_vec::<i64>().unwrap(), [4, 5, 6, 7]);
    assert_eq!(windows.batch(&[2]).unwrap_err().to_string(), "Windows: there is no sample 2; there are 2");
    assert!(Windows::new(vec![1, 2, 3], 3, 1).is_err());
}
