//! From JSON to statements.

use super::cursor::{Cursor, Read};
use super::generate::Start;
use super::names::Names;
use super::operation::{Operation, passed};
use super::{Derived, Made, MadeOptimizer, Owner, Program, Setting, Statement, What};
use crate::golden::Passed;
use crate::{modules, optim};
use cresset_optim::Implementation;
use cresset_tensor::{Autocast, DType};
use std::sync::Arc;

/// Blocks inside blocks, threads at once, and rounds of one loop: no more.
const MOST_DEPTH: usize = 32;
const MOST_THREADS: usize = 64;
const MOST_ROUNDS: u64 = 1_000_000;

impl Program {
    pub(super) fn parse(root: &Cursor<'_>) -> Read<Program> {
        root.only(&[
            "program",
            "about",
            "tensors",
            "modules",
            "optimizers",
            "profiler",
            "before",
            "body",
            "results",
        ])?;
        root.need("program")?.count(1)?;
        let mut parser = Parser::default();
        let about = root.member("about").map_or(Ok(""), |about| about.text())?.to_owned();
        let mut tensors = Vec::new();
        for (name, start) in root.member("tensors").map_or(Ok(Vec::new()), |tensors| tensors.members())? {
            let number = parser.define(name, &start)?;
            tensors.push((number, Start::parse(&start)?));
        }
        for (name, made) in root.member("modules").map_or(Ok(Vec::new()), |modules| modules.members())? {
            let made = parser.module(&made)?;
            parser.modules.push((name.to_owned(), made));
        }
        for (name, made) in root.member("optimizers").map_or(Ok(Vec::new()), |all| all.members())? {
            let made = parser.optimizer(&made)?;
            parser.optimizers.push((name.to_owned(), made));
        }
        let profiler = root.member("profiler");
        let setting = profiler.map_or(Ok(Setting::default()), |setting| Setting::parse(&setting))?;
        let before = root.member("before").map_or(Ok(Vec::new()), |block| parser.block(&block, 0))?;
        parser.has_threads = false;
        let body = parser.block(&root.need("body")?, 0)?;
        let mut results = Vec::new();
        for one in root.member("results").map_or(Ok(Vec::new()), |list| list.list())? {
            results.push(parser.result(&one)?);
        }
        let Parser { modules, optimizers, has_threads, .. } = parser;
        // Torch's profiler, which must be told to look at all threads, leaves memory out then.
        let setting = if has_threads { setting.without_memory() } else { setting };
        Ok(Program { about, tensors, modules, optimizers, setting, before, body, results })
    }
}

#[derive(Default)]
struct Parser {
    names: Names,
    modules: Vec<(String, Made)>,
    optimizers: Vec<(String, MadeOptimizer)>,
    has_threads: bool,
}

impl Parser {
    fn define(&mut self, name: &str, at: &Cursor<'_>) -> Read<usize> {
        let text = serde_json::Value::from(name);
        self.names.define(&Cursor::root(&text)).or_else(|fault| at.fault(fault))
    }

    fn module(&self, at: &Cursor<'_>) -> Read<Made> {
        at.only(&["type", "args", "kwargs", "seed", "reach", "training"])?;
        let kind = at.need("type")?;
        let Some((_, entry)) = modules::find(kind.text()?) else {
            return kind.fault(format_args!("there is no module {} that programs can make", kind.json));
        };
        Ok(Made {
            entry,
            passed: passed(at, &self.names)?,
            seed: at.member("seed").map_or(Ok(0), |seed| seed.count(u64::MAX))?,
            reach: at.member("reach").map_or(Ok(0.5), |reach| reach.number())?,
            training: at.member("training").map_or(Ok(true), |truth| truth.truth())?,
        })
    }

    fn optimizer(&self, at: &Cursor<'_>) -> Read<MadeOptimizer> {
        at.only(&["type", "parameters", "kwargs", "implementation"])?;
        let kind = at.need("type")?;
        let Ok(entry) = optim::find(kind.text()?) else {
            return kind.fault(format_args!("there is no optimizer {} that programs can make", kind.json));
        };
        let implementation = match at.member("implementation") {
            None => Implementation::Fused,
            Some(name) => match name.text()? {
                "fused" => Implementation::Fused,
                "foreach" => Implementation::Foreach,
                "single" => Implementation::Single,
                _ => return name.fault("expected \"fused\", \"foreach\" or \"single\""),
            },
        };
        let owner = |at: &Cursor<'_>| match self.known_module(at) {
            Ok(module) => Ok(Owner::Module(module)),
            Err(_) => self.names.known(at).map(Owner::Tensor),
        };
        let parameters = at.need("parameters")?.list()?.iter().map(owner).collect::<Read<_>>()?;
        let options = passed(at, &self.names)?.kwargs.into_iter().map(|(name, value)| (name, Some(value)));
        Ok(MadeOptimizer { entry, options: options.collect(), implementation, parameters })
    }

    fn known_optimizer(&self, at: &Cursor<'_>) -> Read<usize> {
        let name = at.text()?;
        match self.optimizers.iter().position(|(known, _)| known == name) {
            Some(number) => Ok(number),
            None => at.fault(format_args!("no optimizer is called {name:?}")),
        }
    }

    fn known_module(&self, at: &Cursor<'_>) -> Read<usize> {
        let name = at.text()?;
        match self.modules.iter().position(|(known, _)| known == name) {
            Some(number) => Ok(number),
            None => at.fault(format_args!("no module is called {name:?}")),
        }
    }

    /// A tensor, or `name.grad`.
    fn result(&self, at: &Cursor<'_>) -> Read<(String, usize, bool)> {
        let text = at.text()?;
        let (name, grad) = text.strip_suffix(".grad").map_or((text, false), |name| (name, true));
        match self.names.number(name) {
            Some(number) => Ok((text.to_owned(), number, grad)),
            None => at.fault(format_args!("no tensor is called {name:?}")),
        }
    }

    fn block(&mut self, at: &Cursor<'_>, depth: usize) -> Read<Vec<Statement>> {
        if depth > MOST_DEPTH {
            return at.fault(format_args!("blocks lie at most {MOST_DEPTH} deep"));
        }
        at.list()?.iter().map(|one| self.statement(one, depth)).collect()
    }

    fn statement(&mut self, at: &Cursor<'_>, depth: usize) -> Read<Statement> {
        let members = at.members()?;
        let known = KINDS.iter().find(|(kind, _)| members.iter().any(|(name, _)| name == kind));
        let Some((kind, others)) = known else {
            let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            return at.fault(format_args!("is no statement; one has a member {}", kinds.join(" or ")));
        };
        at.only(&[&[*kind], *others].concat())?;
        let main = at.need(kind)?;
        let what = self.what(kind, at, &main, depth)?;
        Ok(Statement { place: at.clone().into_place(), what })
    }

    fn what(&mut self, kind: &str, at: &Cursor<'_>, main: &Cursor<'_>, depth: usize) -> Read<What> {
        let truth = |name: &str| at.member(name).map_or(Ok(false), |truth| truth.truth());
        let inner = |parser: &mut Parser| parser.block(&at.need("do")?, depth + 1);
        Ok(match kind {
            "call" => {
                let mut passed = passed(at, &self.names)?;
                let operation = Operation::find(main, &mut passed)?;
                What::Call { operation, passed, to: self.names.define_all(at.member("to"))? }
            }
            "module" => {
                let (module, passed): (_, Passed) = (self.known_module(main)?, passed(at, &self.names)?);
                What::Module { module, passed, to: self.names.define_all(at.member("to"))? }
            }
            "backward" => What::Backward {
                of: self.names.known_all(main)?,
                gradients: at.member("gradients").map(|list| self.names.known_all(&list)).transpose()?,
                retain: truth("retain_graph")?,
                create: truth("create_graph")?,
            },
            "gradient" => What::Gradient {
                of: self.names.known_all(main)?,
                gradients: at.member("gradients").map(|list| self.names.known_all(&list)).transpose()?,
                wrt: self.names.known_all(&at.need("wrt")?)?,
                retain: truth("retain_graph")?,
                create: truth("create_graph")?,
                to: self.names.define_all(at.member("to"))?,
            },
            "grad_of" => {
                What::GradOf { of: self.names.known(main)?, to: self.names.define(&at.need("to")?)? }
            }
            "clear_grad" => What::ClearGrad(self.names.known_all(main)?),
            "requires_grad" => What::RequiresGrad(self.names.known_all(main)?),
            "drop" => What::Drop(self.names.known_all(main)?),
            "scope" => What::Scope(main.text()?.to_owned(), inner(self)?),
            "no_grad" => What::NoGrad(self.block(main, depth + 1)?),
            "inference" => What::Inference(self.block(main, depth + 1)?),
            "autocast" => {
                let enabled = at.member("enabled").map_or(Ok(true), |truth| truth.truth())?;
                What::Autocast(Autocast::to(lower(main)?).enabled(enabled), inner(self)?)
            }
            "fails" => What::Fails(self.block(main, depth + 1)?),
            "repeat" => What::Repeat(main.count(MOST_ROUNDS)?, inner(self)?),
            "train" => What::Train(self.known_module(main)?, true),
            "eval" => What::Train(self.known_module(main)?, false),
            "profiler_step" => What::ProfilerStep,
            "step" => What::Step(self.known_optimizer(main)?),
            "zero_grad" => {
                let forget = at.member("set_to_none").map_or(Ok(true), |truth| truth.truth())?;
                What::ZeroGrad(self.known_optimizer(main)?, forget)
            }
            "hook" => What::Hook {
                on: self.names.known(main)?,
                gradient: self.names.define(&at.need("as")?)?,
                body: Arc::new(inner(self)?),
                gives: at.member("gives").map(|name| self.names.known(&name)).transpose()?,
            },
            "checkpoint" => {
                let inputs = self.names.known_all(main)?;
                let (body, gives) = (Arc::new(inner(self)?), self.names.known(&at.need("gives")?)?);
                What::Checkpoint { inputs, body, gives, to: self.names.define(&at.need("to")?)? }
            }
            "function" => {
                let (inputs, function) = self.function(at, main, depth)?;
                What::Function {
                    inputs,
                    function: Arc::new(function),
                    to: self.names.define_all(at.member("to"))?,
                }
            }
            _ => {
                self.has_threads = true;
                let blocks = main.list()?;
                if blocks.len() > MOST_THREADS {
                    return main.fault(format_args!("there are at most {MOST_THREADS} threads"));
                }
                What::Threads(blocks.iter().map(|block| self.block(block, depth + 1)).collect::<Read<_>>()?)
            }
        })
    }
}

impl Parser {
    /// A function with a derivative of its own, and what it is called with.
    fn function(&mut self, at: &Cursor<'_>, main: &Cursor<'_>, depth: usize) -> Read<(Vec<usize>, Derived)> {
        let inputs = self.names.known_all(main)?;
        let body = self.block(&at.need("do")?, depth + 1)?;
        let gives = self.names.known_all(&at.need("gives")?)?;
        let saves = at.member("saves").map_or(Ok(Vec::new()), |list| self.names.known_all(&list))?;
        let back = at.need("backward")?;
        back.only(&["gradients", "do", "gives"])?;
        let named = back.need("gradients")?;
        let gradients = self.names.define_all(Some(named.clone()))?;
        if gradients.len() != gives.len() {
            return named.fault(format_args!(
                "names {} gradients of {} outputs",
                gradients.len(),
                gives.len()
            ));
        }
        let backward = self.block(&back.need("do")?, depth + 1)?;
        let given = back.need("gives")?;
        let slope = |one: &Cursor<'_>| match one.json {
            serde_json::Value::Null => Ok(None),
            _ => self.names.known(one).map(Some),
        };
        let slopes: Vec<Option<usize>> = given.list()?.iter().map(slope).collect::<Read<_>>()?;
        if slopes.len() != inputs.len() {
            return given.fault(format_args!("has {} gradients for {} inputs", slopes.len(), inputs.len()));
        }
        let function = Derived { inputs: inputs.clone(), body, gives, saves, gradients, backward, slopes };
        Ok((inputs, function))
    }
}

/// An element type that autocast can cast to.
fn lower(at: &Cursor<'_>) -> Read<DType> {
    match at.text()? {
        "bf16" => Ok(DType::BF16),
        "f16" => Ok(DType::F16),
        other => at.fault(format_args!("{other:?} is nothing to cast to, \"bf16\" and \"f16\" are")),
    }
}

/// The kinds of statements: the member that tells, and those that may stand beside it.
const KINDS: [(&str, &[&str]); 23] = [
    ("call", &["args", "kwargs", "to"]),
    ("module", &["args", "kwargs", "to"]),
    ("gradient", &["wrt", "gradients", "retain_graph", "create_graph", "to"]),
    ("grad_of", &["to"]),
    ("clear_grad", &[]),
    ("requires_grad", &[]),
    ("drop", &[]),
    ("scope", &["do"]),
    ("no_grad", &[]),
    ("inference", &[]),
    ("autocast", &["do", "enabled"]),
    ("fails", &[]),
    ("repeat", &["do"]),
    ("train", &[]),
    ("eval", &[]),
    ("profiler_step", &[]),
    ("step", &[]),
    ("zero_grad", &["set_to_none"]),
    ("function", &["do", "gives", "saves", "backward", "to"]),
    ("backward", &["gradients", "retain_graph", "create_graph"]),
    ("hook", &["as", "do", "gives"]),
    ("checkpoint", &["do", "gives", "to"]),
    ("threads", &[]),
];
