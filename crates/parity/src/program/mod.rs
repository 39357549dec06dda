//! Parity programs: what to run under two profilers, written in JSON.
//!
//! The language is described in `docs/parity-programs.md`; `parity/torch_runner.py` runs the same
//! file under torch.
//!
//! - `cursor` reads JSON and knows where it stands, `parse` makes statements of it;
//! - `names`, `generate`, `operation` and `signature` are about tensors, how they start, what is called
//!   and with which arguments;
//! - `setting` is how the profiler is set up;
//! - `run` does what the statements say, `function` those with a derivative of their own.

mod cursor;
mod function;
mod generate;
mod names;
mod operation;
mod parse;
mod run;
mod setting;
mod signature;
#[cfg(test)]
mod tests;

pub use cursor::Fault;
pub use run::Ran;

use crate::golden::Passed;
use crate::value::Value;
use crate::{modules, optim};
use cresset_optim::Implementation;
use cresset_tensor::Autocast;
use cursor::Cursor;
use generate::Start;
use operation::Operation;
use setting::Setting;
use std::path::Path;
use std::sync::Arc;

/// No program is larger.
const MOST_BYTES: u64 = 16 << 20;

/// A program that was read and makes sense.
pub struct Program {
    about: String,
    tensors: Vec<(usize, Start)>,
    modules: Vec<(String, Made)>,
    optimizers: Vec<(String, MadeOptimizer)>,
    setting: Setting,
    /// What is done before the profiler starts.
    before: Vec<Statement>,
    body: Vec<Statement>,
    /// What is told of: a text, a tensor, and whether it is the tensor's gradient.
    results: Vec<(String, usize, bool)>,
}

/// How a module is made.
struct Made {
    entry: &'static modules::Entry,
    passed: Passed,
    /// Its parameters are uniform numbers within `reach` of 0.
    seed: u64,
    reach: f64,
    training: bool,
}

/// How an optimizer is made.
struct MadeOptimizer {
    entry: &'static optim::Entry,
    options: Vec<(String, Option<Value>)>,
    implementation: Implementation,
    parameters: Vec<Owner>,
}

/// Where parameters are.
enum Owner {
    Module(usize),
    Tensor(usize),
}

/// Something to do, and where it stands.
#[derive(Clone)]
struct Statement {
    place: String,
    what: What,
}

type Block = Vec<Statement>;

#[derive(Clone)]
enum What {
    Call {
        operation: Operation,
        passed: Passed,
        to: Vec<usize>,
    },
    Module {
        module: usize,
        passed: Passed,
        to: Vec<usize>,
    },
    Backward {
        of: Vec<usize>,
        gradients: Option<Vec<usize>>,
        retain: bool,
        create: bool,
    },
    Gradient {
        of: Vec<usize>,
        gradients: Option<Vec<usize>>,
        wrt: Vec<usize>,
        retain: bool,
        create: bool,
        to: Vec<usize>,
    },
    GradOf {
        of: usize,
        to: usize,
    },
    ClearGrad(Vec<usize>),
    RequiresGrad(Vec<usize>),
    Drop(Vec<usize>),
    Scope(String, Block),
    NoGrad(Block),
    Inference(Block),
    Autocast(Autocast, Block),
    /// It must fail, and what it made until then is gone.
    Fails(Block),
    Repeat(u64, Block),
    Train(usize, bool),
    Step(usize),
    /// And whether gradients are forgotten rather than filled with zeros.
    ZeroGrad(usize, bool),
    ProfilerStep,
    Hook {
        on: usize,
        gradient: usize,
        body: Arc<Block>,
        gives: Option<usize>,
    },
    Checkpoint {
        inputs: Vec<usize>,
        body: Arc<Block>,
        gives: usize,
        to: usize,
    },
    Function {
        inputs: Vec<usize>,
        function: Arc<Derived>,
        to: Vec<usize>,
    },
    Threads(Vec<Block>),
}

/// What a function with a derivative of its own does.
struct Derived {
    inputs: Vec<usize>,
    body: Block,
    gives: Vec<usize>,
    saves: Vec<usize>,
    /// What the gradients of its outputs are called in `backward`.
    gradients: Vec<usize>,
    backward: Block,
    /// The gradient of each input, if it has one.
    slopes: Vec<Option<usize>>,
}

impl Program {
    /// Reads a program from a file.
    ///
    /// # Errors
    /// What is wrong with it, and where in the file.
    pub fn read(path: &Path) -> Result<Program, String> {
        let told = |reason: String| format!("{}: {reason}", path.display());
        let size = std::fs::metadata(path).map_err(|error| told(error.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(told(format!("has {size} bytes; programs have at most {MOST_BYTES}")));
        }
        let bytes = std::fs::read(path).map_err(|error| told(error.to_string()))?;
        Program::from_json(&bytes).map_err(told)
    }

    /// Reads a program from its text.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn from_json(bytes: &[u8]) -> Result<Program, String> {
        let json = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        Program::parse(&Cursor::root(&json)).map_err(|fault| fault.to_string())
    }

    /// What the program says of itself.
    pub fn about(&self) -> &str {
        &self.about
    }
}
