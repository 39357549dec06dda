//! A model at a glance: what each module gives, how many parameters it has, and what it costs.
//!
//! The model is run once, and watched as a profiler would: modules are the calls of modules that are
//! seen, and their cost is that of the operators inside.

use crate::{Forward, Members, Module, Tensors, Training, inside};
use cresset_dispatch::observe::{Call, Kind, Observer, Slot};
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// One module of a [`Summary`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryRow {
    /// The class, e.g. `Linear`.
    pub class: String,
    /// The full name; empty for the model itself, and for modules without anything of their own.
    pub name: String,
    /// How many modules it is inside of.
    pub depth: usize,
    /// Shapes of the tensors it gives.
    pub output_shapes: Vec<Vec<usize>>,
    /// How many numbers the parameters of it and of all modules in it are.
    pub num_params: usize,
    /// Floating-point operations of its call, those of the modules in it included.
    pub flops: u64,
    instance: u64,
}

/// What [`summary`] found; shown as a table.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The calls of modules, in the order in which they began.
    pub rows: Vec<SummaryRow>,
    /// How many numbers all parameters are.
    pub total_params: usize,
    /// How many of them are learned.
    pub trainable_params: usize,
    /// Floating-point operations of one call.
    pub total_flops: u64,
    /// Bytes of the input.
    pub input_bytes: usize,
    /// Bytes of what the innermost modules give.
    pub output_bytes: usize,
    /// Bytes of the parameters.
    pub params_bytes: usize,
}

/// Runs `model` once, as in use and without gradients, and tells what each module in it gives and costs.
///
/// ```
/// use cresset_nn::{Linear, Relu, Sequential, Tensor, summary};
///
/// let model = Sequential::new().push(Linear::new(64, 32)?).push(Relu).push(Linear::new(32, 10)?);
/// let summary = summary(&model, &Tensor::ones([8, 64], ())?)?;
/// assert_eq!((summary.total_params, summary.total_flops), (2410, 8 * 2 * (64 * 32 + 32 * 10)));
/// println!("{summary}");
/// # Ok::<(), cresset_nn::Error>(())
/// ```
///
/// # Errors
/// Those of the model.
pub fn summary<I: Tensors, M: Forward<I> + ?Sized>(model: &M, input: I::Ref<'_>) -> Result<Summary> {
    let mut owned = I::own(input);
    let watched = {
        let _eval = Evaluating::new(model);
        let _guard = no_grad();
        Watching::start()?.run(|| model.call(owned.lend()).map(drop))?
    };
    let parameters = model.parameters();
    let bytes = |x: &Tensor| x.numel() * x.dtype().size();
    let mut input_bytes = 0;
    owned.each(&mut |tensor| input_bytes += bytes(tensor));
    let names = names(model);
    let rows: Vec<SummaryRow> = watched.rows.into_iter().map(|row| named(row, &names)).collect();
    Ok(Summary {
        total_params: parameters.iter().map(Tensor::numel).sum(),
        trainable_params: model.num_trainable_parameters(),
        total_flops: rows.first().map_or(0, |row| row.flops),
        input_bytes,
        output_bytes: watched.bytes,
        params_bytes: parameters.iter().map(bytes).sum(),
        rows,
    })
}

/// The name of a module and the number of its parameters, by its class and where it is: a struct may
/// begin where its first field does.
type Names = HashMap<(String, u64), (String, usize)>;

fn names<M: Module + ?Sized>(model: &M) -> Names {
    let address = |module: &dyn Module| std::ptr::from_ref(module).cast::<()>().addr() as u64;
    let all = model.named_modules().into_iter().rev();
    all.map(|(name, module)| ((module.class().to_owned(), address(module)), (name, module.num_parameters())))
        .collect()
}

fn named(mut row: SummaryRow, names: &Names) -> SummaryRow {
    if let Some((name, count)) = names.get(&(row.class.clone(), row.instance)) {
        row.name.clone_from(name);
        row.num_params = *count;
    }
    row
}

/// Makes a model behave as in use, and as before when it drops.
struct Evaluating<'a>(Vec<(&'a Training, bool)>);

impl<'a> Evaluating<'a> {
    fn new(model: &'a (impl Module + ?Sized)) -> Evaluating<'a> {
        let mut flags = Vec::new();
        inside::walk(model.as_module(), "", &mut |_, members: &Members<'a>| {
            flags.extend(members.flags.iter().map(|&flag| (flag, flag.is_on())));
        });
        model.eval();
        Evaluating(flags)
    }
}

impl Drop for Evaluating<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|(flag, on)| flag.set(*on));
    }
}

thread_local! {
    /// What was seen on this thread so far, while a summary is made here.
    static SEEN: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Seen {
    rows: Vec<SummaryRow>,
    /// The rows of calls that have not returned.
    open: Vec<usize>,
    bytes: usize,
}

/// Notes what the innermost module that is being watched gives.
pub(crate) fn note(output: &mut impl Tensors) {
    SEEN.with_borrow_mut(|seen| {
        let Some(seen) = seen else { return };
        let Some(&at) = seen.open.last() else { return };
        let innermost = at + 1 == seen.rows.len();
        output.each(&mut |tensor| {
            seen.rows[at].output_shapes.push(tensor.shape().to_vec());
            if innermost {
                seen.bytes += tensor.numel() * tensor.dtype().size();
            }
        });
    });
}

struct Watcher;

impl Observer for Watcher {
    fn enter(&self, _id: u64, call: &dyn Call) -> u64 {
        SEEN.with_borrow_mut(|seen| {
            let Some(seen) = seen else { return 0 };
            if call.kind() != Kind::Module {
                let flops = call.flops();
                seen.open.iter().for_each(|&at| seen.rows[at].flops += flops);
                return 0;
            }
            seen.open.push(seen.rows.len());
            seen.rows.push(SummaryRow {
                class: call.name().as_str().to_owned(),
                depth: seen.open.len() - 1,
                instance: call.instance(),
                ..SummaryRow::default()
            });
            1
        })
    }

    fn exit(&self, token: u64, _failed: bool) {
        if token == 1 {
            SEEN.with_borrow_mut(|seen| seen.as_mut().and_then(|seen| seen.open.pop()));
        }
    }
}

/// One summary at a time: they share a slot among the observers.
struct Watching(Slot, #[expect(dead_code, reason = "held")] parking_lot::MutexGuard<'static, ()>);

impl Watching {
    fn start() -> Result<Watching> {
        static SLOT: OnceLock<Option<Slot>> = OnceLock::new();
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock();
        let Some(slot) = *SLOT.get_or_init(|| Slot::claim(&Watcher)) else {
            return Err(Error::new(Cause::Argument, "summary", "all places for observers are taken"));
        };
        slot.set_active(true);
        SEEN.set(Some(Seen::default()));
        Ok(Watching(slot, alone))
    }

    fn run(self, run: impl FnOnce() -> Result<()>) -> Result<Seen> {
        let outcome = run();
        let seen = SEEN.take().unwrap_or_default();
        outcome.map(|()| seen)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.set_active(false);
        SEEN.set(None);
    }
}

impl fmt::Display for Summary {
    /// As torchinfo shows it: a tree of layers with `type (name): depth-number`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.labels();
        let shapes: Vec<String> = self.rows.iter().map(shapes).collect();
        let wide = |list: &[String], head: &str| {
            list.iter().map(|x| x.chars().count()).max().unwrap_or(0).max(head.len())
        };
        const HEADS: [&str; 2] = ["Layer (type (name):depth-idx)", "Output Shape"];
        let [first, second] = [wide(&labels, HEADS[0]), wide(&shapes, HEADS[1])];
        let line = "=".repeat(first + second + 34);
        writeln!(f, "{line}")?;
        writeln!(f, "{:<first$}  {:<second$}  {:>14}  {:>14}", HEADS[0], HEADS[1], "Param #", "FLOPs")?;
        writeln!(f, "{line}")?;
        for ((row, label), shape) in self.rows.iter().zip(&labels).zip(&shapes) {
            let params = if row.num_params == 0 { "--".to_owned() } else { grouped(row.num_params as u64) };
            let flops = if row.flops == 0 { "--".to_owned() } else { grouped(row.flops) };
            writeln!(f, "{label:<first$}  {shape:<second$}  {params:>14}  {flops:>14}")?;
        }
        writeln!(f, "{line}")?;
        writeln!(f, "Total params: {}", grouped(self.total_params as u64))?;
        writeln!(f, "Trainable params: {}", grouped(self.trainable_params as u64))?;
        let frozen = self.total_params - self.trainable_params;
        writeln!(f, "Non-trainable params: {}", grouped(frozen as u64))?;
        writeln!(f, "Total FLOPs: {}", grouped(self.total_flops))?;
        writeln!(f, "{line}")?;
        let megabytes = |bytes: usize| bytes as f64 / 1e6;
        writeln!(f, "Input size (MB): {:.2}", megabytes(self.input_bytes))?;
        // Forwards and backwards: every output has a gradient.
        writeln!(f, "Forward/backward pass size (MB): {:.2}", megabytes(2 * self.output_bytes))?;
        writeln!(f, "Params size (MB): {:.2}", megabytes(self.params_bytes))?;
        let total = self.input_bytes + 2 * self.output_bytes + self.params_bytes;
        writeln!(f, "Estimated Total Size (MB): {:.2}", megabytes(total))?;
        write!(f, "{line}")
    }
}

impl Summary {
    fn labels(&self) -> Vec<String> {
        let mut counts: Vec<usize> = Vec::new();
        let label = |row: &SummaryRow| {
            counts.resize(counts.len().max(row.depth + 1), 0);
            counts[row.depth] += 1;
            let name = row.name.rsplit('.').next().filter(|name| !name.is_empty());
            let name = name.map_or(String::new(), |name| format!(" ({name})"));
            let branch = if row.depth == 0 {
                String::new()
            } else {
                format!("{}├─", "│    ".repeat(row.depth - 1))
            };
            let number =
                if row.depth == 0 { String::new() } else { format!(": {}-{}", row.depth, counts[row.depth]) };
            format!("{branch}{}{name}{number}", row.class)
        };
        self.rows.iter().map(label).collect()
    }
}

fn shapes(row: &SummaryRow) -> String {
    let each: Vec<String> = row.output_shapes.iter().map(|shape| format!("{shape:?}")).collect();
    each.join(", ")
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        (0..digits.len()).rev().step_by(3).map(|end| &digits[end.saturating_sub(2)..=end]).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(",")
}
