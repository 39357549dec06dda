//! Collapsed stacks, for flame graphs: one line per stack, frames from the outermost on, and a weight.

use crate::slices::{Kind, NONE, Slices};
use crate::tree::Tree;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// What a stack is weighed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Host time, without what lies inside.
    #[default]
    Host,
    /// Time of the work that was launched.
    Device,
}

/// What a stack is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// Slices that lie in each other.
    #[default]
    Nesting,
    /// The `Call stack` that was recorded with each operator, and the operator at its end.
    Recorded,
}

/// Stacks with their weights in nanoseconds, by their texts. For [`Frames::Recorded`] the trace
/// must have been read with its stacks.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("cresset-doc-stacks-{}.json", std::process::id()));
/// # let slice = |name, ts, dur| format!(
/// #     r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":{dur}}}"#);
/// # let events = [slice("aten::linear", 0, 10), slice("aten::addmm", 2, 6)].join(",");
/// # std::fs::write(&path, format!("[{events}]"))?;
/// use cresset_trace::{Frames, Keep, Slices, Weight, stacks};
/// let trace = Slices::read(&path, Keep::default())?;
/// let sums = stacks(&trace, Frames::Nesting, Weight::Host);
/// assert_eq!(sums["pid_1_tid_1;aten::linear;aten::addmm"], 6000);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn stacks(trace: &Slices, frames: Frames, weight: Weight) -> BTreeMap<String, i64> {
    let tree = Tree::of(trace);
    let weigh = |i: usize| match weight {
        Weight::Host => tree.self_time(trace, i),
        Weight::Device => tree.own_device_time.get(i).copied().unwrap_or(0),
    };
    match frames {
        Frames::Nesting => nested(trace, &tree, weigh),
        Frames::Recorded => recorded(trace, &tree, weigh),
    }
}

/// What lies deeper counts for the slice at this depth: the texts of a stack of thousands would
/// take more than the file.
const DEEPEST: u32 = 256;

/// Paths through the tree; a path is a number, and knows the path to its parent.
fn nested(trace: &Slices, tree: &Tree, weigh: impl Fn(usize) -> i64) -> BTreeMap<String, i64> {
    let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
    // The outer path or the track, the name, the sum, and how many are outside.
    let mut paths: Vec<(u32, u32, i64, u32)> = Vec::new();
    let mut path_of = vec![NONE; trace.slices.len()];
    let (tracks, names) = (trace.tracks.len() as u32, trace.row_names());
    for &i in tree.order.iter().filter(|&&i| !trace.slices[i as usize].kind.is_on_device()) {
        let (at, slice) = (i as usize, &trace.slices[i as usize]);
        let (outer, depth) = match tree.parent[at] {
            NONE => (slice.track, 0),
            parent => {
                let path = path_of[parent as usize];
                (tracks + path, paths[path as usize].3 + 1)
            }
        };
        if depth == DEEPEST {
            path_of[at] = outer - tracks;
            let sum = &mut paths[path_of[at] as usize].2;
            *sum = sum.saturating_add(weigh(at));
            continue;
        }
        let name = names[slice.name as usize];
        let path = *numbers.entry((outer, name)).or_insert_with(|| {
            paths.push((outer, name, 0, depth));
            paths.len() as u32 - 1
        });
        path_of[at] = path;
        let sum = &mut paths[path as usize].2;
        *sum = sum.saturating_add(weigh(at));
    }
    let mut texts: Vec<String> = Vec::with_capacity(paths.len());
    let mut sums = BTreeMap::new();
    for (outer, name, sum, _) in paths {
        let outer = match outer.checked_sub(tracks) {
            Some(path) => texts[path as usize].clone(),
            None => word(&trace.tracks[outer as usize].label()),
        };
        let text = format!("{outer};{}", word(trace.row_name(name)));
        if sum > 0 {
            add(&mut sums, text.clone(), sum);
        }
        texts.push(text);
    }
    sums
}

fn recorded(trace: &Slices, tree: &Tree, weigh: impl Fn(usize) -> i64) -> BTreeMap<String, i64> {
    let mut sums: HashMap<(u32, u32), i64> = HashMap::new();
    for &i in &tree.order {
        let slice = &trace.slices[i as usize];
        // Calls of Python are what stacks are made of, and have none themselves.
        if slice.stack != NONE && slice.kind != Kind::Python {
            let sum = sums.entry((slice.stack, slice.name)).or_insert(0);
            *sum = sum.saturating_add(weigh(i as usize));
        }
    }
    let mut texts = BTreeMap::new();
    for ((stack, name), sum) in sums.into_iter().filter(|&(_, sum)| sum > 0) {
        let frames = trace.text(stack).rsplit(';').filter(|frame| !frame.is_empty()).map(word);
        let text = frames.chain([word(trace.row_name(name))]).collect::<Vec<_>>().join(";");
        add(&mut texts, text, sum);
    }
    texts
}

fn add(sums: &mut BTreeMap<String, i64>, stack: String, nanos: i64) {
    let sum = sums.entry(stack).or_insert(0);
    *sum = sum.saturating_add(nanos);
}

/// A frame as flame graph tools want it: in one word.
fn word(frame: &str) -> String {
    frame.replace([' ', ';', '\t', '\n', '\r'], "_")
}

/// Writes one line per stack, with its weight in microseconds.
///
/// # Errors
/// `sink` cannot be written to.
pub fn write_stacks(sums: &BTreeMap<String, i64>, sink: &mut dyn Write) -> io::Result<()> {
    // What is there must not round to nothing.
    sums.iter().try_for_each(|(stack, nanos)| {
        writeln!(sink, "{stack} {}", (nanos.saturating_add(500) / 1000).max(1))
    })
}
