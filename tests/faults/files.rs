//! Files of data and weights that are broken, hostile or changed at random: an answer or an error that names the
//! file, in bounded memory, and never a panic.
//!
//! `tests/corpus` keeps files that once were trouble, or could be: `good_` ones are read, `bad_` ones refused.
//! `PROPTEST_CASES` and `PROPTEST_RNG_SEED` look further than the default, which is the same each time.

use super::alone;
use cresset::checkpoint::{Checkpoints, TrainingState};
use cresset::data::{Csv, read_idx, read_npy, read_safetensors};
use cresset::prelude::*;
use cresset::tensor::limit_host_bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// What tensors may hold here, so that a file that asks for more is noticed.
const MOST_BYTES: u64 = 1 << 24;

/// The kept files, and those that other tests hold against the reference readers.
fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = ["corpus", "golden/malicious"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let mut files: Vec<PathBuf> =
        files.map(|file| file.unwrap().path()).filter(|path| !path.ends_with("index.json")).collect();
    files.sort();
    files
}

/// Reads a file as its name says, and looks at all of it.
fn read(path: &Path) -> cresset::Result<()> {
    let name = path.to_string_lossy();
    let look = |tensor: Tensor| tensor.to_dtype(DType::F64)?.sum()?.item().map(drop);
    match name.trim_end_matches(".gz").rsplit('.').next() {
        Some("idx") => look(read_idx(path)?),
        Some("npy") => look(read_npy(path)?),
        Some("csv") => look(Csv::default().header(true).read(path)?.values().clone()),
        _ => read_safetensors(path)?.into_iter().try_for_each(|(_, tensor)| look(tensor)),
    }
}

#[test]
fn kept_files_are_read_or_refused_as_their_names_say() {
    for path in corpus().iter().filter(|path| path.parent().is_some_and(|folder| folder.ends_with("corpus")))
    {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match read(path) {
            Ok(()) => assert!(name.starts_with("good_"), "{name} is to be refused"),
            Err(error) => {
                assert!(name.starts_with("bad_"), "{error}");
                assert!(error.to_string().contains(&name), "{name} is not named: {error}");
            }
        }
    }
}

/// A way to spoil bytes.
#[derive(Clone, Debug)]
enum Change {
    Byte(u8),
    Number(u64),
    Cut,
    Remove(u8),
    Double(u8),
}

fn change() -> impl Strategy<Value = Change> {
    let edges = [0, 1, 0x7fff_ffff, 0xffff_ffff, 1 << 32, 1 << 40, 1 << 62, i64::MAX as u64, u64::MAX];
    prop_oneof![
        4 => any::<u8>().prop_map(Change::Byte),
        2 => proptest::sample::select(edges.to_vec()).prop_map(Change::Number),
        1 => Just(Change::Cut),
        1 => (1u8..9).prop_map(Change::Remove),
        1 => (1u8..9).prop_map(Change::Double),
    ]
}

fn apply(bytes: &mut Vec<u8>, at: usize, change: &Change) {
    let end = |count: usize| (at + count).min(bytes.len());
    match *change {
        Change::Byte(byte) => bytes[at] = byte,
        Change::Number(number) => {
            let count = end(8) - at;
            bytes[at..at + count].copy_from_slice(&number.to_le_bytes()[..count]);
        }
        Change::Cut => bytes.truncate(at.max(1)),
        Change::Remove(count) => drop(bytes.drain(at..end(count.into()))),
        Change::Double(count) => {
            let part = bytes[at..end(count.into())].to_vec();
            bytes.splice(at..at, part);
        }
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}

fn changes() -> impl Strategy<Value = Vec<(Index, Change)>> {
    proptest::collection::vec((any::<Index>(), change()), 1..5)
}

fn spoil(bytes: &mut Vec<u8>, changes: &[(Index, Change)]) {
    for (at, change) in changes {
        let at = at.index(bytes.len());
        apply(bytes, at, change);
    }
}

fn runner() -> TestRunner {
    TestRunner::new(Config { failure_persistence: None, ..Config::default() })
}

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("cresset-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn no_change_of_bytes_makes_a_reader_of_data_panic() {
    alone("files::no_change_of_bytes_makes_a_reader_of_data_panic", &[], || {
        limit_host_bytes(MOST_BYTES);
        let (scratch, files) = (Scratch::new("data"), corpus());
        let files: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|path| {
                (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
            })
            .filter(|(_, bytes)| (1..100_000).contains(&bytes.len()))
            .collect();
        runner()
            .run(&(any::<Index>(), changes()), |(which, changes)| {
                let (name, mut bytes) = files[which.index(files.len())].clone();
                spoil(&mut bytes, &changes);
                let path = scratch.0.join(&name);
                std::fs::write(&path, &bytes).unwrap();
                if let Err(error) = read(&path) {
                    prop_assert!(error.to_string().contains(&name), "{name} is not named: {error}");
                }
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn no_change_of_bytes_makes_a_reader_of_checkpoints_panic() {
    alone("files::no_change_of_bytes_makes_a_reader_of_checkpoints_panic", &[], || {
        let scratch = Scratch::new("checkpoints");
        let model = Linear::new(3, 2).unwrap();
        let mut optimizer = AdamW::new(model.parameters(), AdamWOptions::default()).unwrap();
        model.call(&Tensor::ones([1, 3], ()).unwrap()).unwrap().sum().unwrap().backward().unwrap();
        optimizer.step().unwrap();
        let state = TrainingState::of(1, &optimizer).unwrap();
        let saved = Checkpoints::new(&scratch.0).unwrap().save(&model, &state).unwrap();
        let optimizer = RefCell::new(optimizer);
        limit_host_bytes(MOST_BYTES);
        let names = ["model.safetensors", "training.safetensors", "training.json", "checksums.txt"];
        let whole = names.map(|name| std::fs::read(saved.directory().join(name)).unwrap());
        runner()
            .run(&(0..names.len(), changes()), |(which, changes)| {
                let (path, mut bytes) = (saved.directory().join(names[which]), whole[which].clone());
                spoil(&mut bytes, &changes);
                std::fs::write(&path, &bytes).unwrap();
                // Without the checksums, which let hardly any change through.
                let _ = saved.state();
                let _ = read_safetensors(saved.model());
                let restored = saved.restore(&model, &mut *optimizer.borrow_mut());
                prop_assert!(restored.is_err() || bytes == whole[which] || which == 3, "{:?}", changes);
                std::fs::write(&path, &whole[which]).unwrap();
                Ok(())
            })
            .unwrap();
        saved.restore(&model, &mut *optimizer.borrow_mut()).unwrap();
    });
}
