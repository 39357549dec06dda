//! Does what a program says, under our profiler.

use super::{Block, Made, MadeOptimizer, Owner, Program, Statement, What};
use crate::arguments::{Arguments, Tensors};
use crate::golden::Passed;
use crate::modules;
use crate::optim::Wanted;
use crate::program::generate::Start;
use cresset_nn::Module;
use cresset_optim::Optimizer;
use cresset_profiler::{Profiler, record_function};
use cresset_tensor::autograd::{self, Pass, in_inference_mode};
use cresset_tensor::{Cause, DType, Device, Error, Result, Tensor, no_grad};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Statements that a program runs, those in loops once for each round: no more, for each is in the profile.
const MOST_STATEMENTS: u64 = 1 << 20;

/// A program that has run.
pub struct Ran {
    /// The profiler, stopped.
    pub profiler: Profiler,
    /// The program's results: shape, element type and elements of each, by name.
    pub results: Json,
}

impl Program {
    /// Runs the program on `device`. Its results and its table of averages are in the trace's metadata
    /// too.
    ///
    /// # Errors
    /// What failed, and which statement it was.
    pub fn run(&self, device: Device) -> std::result::Result<Ran, String> {
        let told = |error: Error| error.to_string();
        let mut machine = Machine::new(self, device).map_err(told)?;
        let mut optimizers = self.make_optimizers(&machine)?;
        machine.block(&self.before, &mut Own { profiler: None, optimizers: &mut optimizers })?;
        let profiler = self.setting.builder().and_then(|builder| builder.start());
        let mut profiler = profiler.map_err(|error| error.to_string())?;
        let mut own = Own { profiler: Some(&mut profiler), optimizers: &mut optimizers };
        let outcome = machine.block(&self.body, &mut own);
        let stopped = profiler.stop().map_err(|error| error.to_string());
        outcome.and(stopped)?;
        let results = self.results(&machine).map_err(told)?;
        let told = |error: cresset_profiler::Error| error.to_string();
        profiler.add_metadata_json("results", &results.to_string()).map_err(told)?;
        let table = profiler.key_averages().map_err(told)?.table().row_limit(None).to_string();
        profiler.add_metadata("table", &table).map_err(told)?;
        Ok(Ran { profiler, results })
    }

    fn results(&self, machine: &Machine) -> Result<Json> {
        let mut results = serde_json::Map::new();
        for (name, number, is_gradient) in &self.results {
            let tensor = machine.tensors.get(number).cloned();
            let tensor = if *is_gradient { tensor.and_then(|tensor| tensor.grad()) } else { tensor };
            results.insert(name.clone(), tensor.map_or(Ok(Json::Null), |tensor| described(&tensor))?);
        }
        Ok(Json::Object(results))
    }
}

/// A tensor as JSON. What is no number there is a text.
fn described(tensor: &Tensor) -> Result<Json> {
    let elements = tensor.detach()?.to(Device::CPU)?.to_dtype(DType::F64)?.to_vec::<f64>()?;
    let element = |element: &f64| match element {
        element if element.is_finite() => json!(element),
        element => json!(element.to_string().to_lowercase()),
    };
    let elements: Vec<Json> = elements.iter().map(element).collect();
    Ok(json!({ "shape": tensor.shape(), "dtype": tensor.dtype().to_string(), "values": elements }))
}

/// The tensors a thread knows, and what all threads share.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) tensors: Tensors,
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    modules: Vec<modules::Made>,
    device: Device,
    /// How many statements have been run, on all threads.
    done: AtomicU64,
}

/// What the program's own thread has, and no other.
pub(super) struct Own<'a> {
    profiler: Option<&'a mut Profiler>,
    optimizers: &'a mut [Box<dyn Optimizer>],
}

impl Own<'_> {
    pub(super) fn nothing() -> Own<'static> {
        Own { profiler: None, optimizers: &mut [] }
    }
}

pub(super) type Outcome = std::result::Result<(), String>;

impl Machine {
    fn new(program: &Program, device: Device) -> Result<Machine> {
        let mut tensors = BTreeMap::new();
        for (number, start) in &program.tensors {
            tensors.insert(*number, start.make(device)?);
        }
        let make = |(_, made): &(String, Made)| made.make(&tensors, device);
        let modules = program.modules.iter().map(make).collect::<Result<_>>()?;
        Ok(Machine { tensors, shared: Arc::new(Shared { modules, device, done: AtomicU64::new(0) }) })
    }

    pub(super) fn block(&mut self, block: &[Statement], own: &mut Own<'_>) -> Outcome {
        if self.shared.done.fetch_add(1 + block.len() as u64, Relaxed) > MOST_STATEMENTS {
            return Err(format!("a program runs at most {MOST_STATEMENTS} statements"));
        }
        block.iter().try_for_each(|statement| self.statement(statement, own))
    }

    fn statement(&mut self, statement: &Statement, own: &mut Own<'_>) -> Outcome {
        let told = |error: Error| format!("{}: {error}", statement.place);
        match &statement.what {
            What::Scope(name, block) => record_function(name).run(|| self.block(block, own)),
            What::NoGrad(block) => {
                let _guard = no_grad();
                self.block(block, own)
            }
            What::Inference(block) => in_inference_mode(|| self.block(block, own)),
            What::Autocast(region, block) => {
                let _guard = region.enter().map_err(told)?;
                self.block(block, own)
            }
            What::Repeat(rounds, block) => (0..*rounds).try_for_each(|_| self.block(block, own)),
            What::Fails(block) => match self.clone().block(block, own) {
                Err(_) => Ok(()),
                Ok(()) => Err(format!("{}: was to fail, and did not", statement.place)),
            },
            What::Threads(blocks) => self.threads(blocks),
            What::Step(number) | What::ZeroGrad(number, _) => match own.optimizers.get_mut(*number) {
                Some(optimizer) => change(&mut **optimizer, &statement.what).map_err(told),
                None => Err(format!("{}: optimizers are on the program's own thread only", statement.place)),
            },
            What::ProfilerStep => match &mut own.profiler {
                Some(profiler) => profiler.step().map_err(|error| format!("{}: {error}", statement.place)),
                None => Err(format!("{}: there is no profiler to step here", statement.place)),
            },
            other => self.simple(other).map_err(told),
        }
    }

    /// Each block on a thread of its own, with tensors of its own from here on.
    fn threads(&self, blocks: &[Block]) -> Outcome {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for block in blocks {
                let mut machine = self.clone();
                threads.push(scope.spawn(move || machine.block(block, &mut Own::nothing())));
            }
            // All are waited for before the first fault is told.
            let panicked = |_| Err("a thread panicked".to_owned());
            let ended =
                |thread: std::thread::ScopedJoinHandle<'_, Outcome>| thread.join().unwrap_or_else(panicked);
            let outcomes: Vec<Outcome> = threads.into_iter().map(ended).collect();
            outcomes.into_iter().collect()
        })
    }

    fn simple(&mut self, what: &What) -> Result<()> {
        match what {
            What::Call { operation, passed, to } if operation.in_place => {
                let passed = operation.ordered(passed, &self.tensors);
                let mut target = self.first(&passed)?;
                let change = operation.entry.change().ok_or_else(|| fault("has no form in place"))?;
                let arguments = Arguments::new(&passed, &self.tensors, self.shared.device).fresh();
                arguments.skip_first();
                checked(change(&mut target, &arguments), &arguments)?;
                // Some change what their handle sees, and not its elements.
                self.put_first(&passed, &target);
                self.give(to, vec![target])
            }
            What::Call { operation, passed, to } => {
                let passed = operation.ordered(passed, &self.tensors);
                let arguments = Arguments::new(&passed, &self.tensors, self.shared.device).fresh();
                let given = checked(operation.entry.call(&arguments), &arguments)?;
                self.give(to, given)
            }
            What::Module { module, passed, to } => {
                let arguments = Arguments::new(passed, &self.tensors, self.shared.device);
                let given = checked((self.shared.modules[*module].call)(&arguments), &arguments)?;
                self.give(to, given)
            }
            What::Backward { of, gradients, retain, create } => {
                self.backward(of, gradients, *retain, *create)
            }
            What::Gradient { of, gradients, wrt, retain, create, to } => {
                let (roots, gradients) = (self.all(of)?, self.all(gradients.as_deref().unwrap_or(&[]))?);
                let inputs = self.all(wrt)?;
                let inputs: Vec<&Tensor> = inputs.iter().collect();
                let given = autograd::grad(&paired(&roots, &gradients), &inputs, pass(*retain, *create))?;
                self.give(to, given.into_iter().flatten().collect())
            }
            What::GradOf { of, to } => {
                let gradient = self.get(*of)?.grad().ok_or_else(|| fault("has no gradient"))?;
                self.give(&[*to], vec![gradient])
            }
            What::ClearGrad(list) => list.iter().try_for_each(|number| {
                self.get(*number)?.clear_grad();
                Ok(())
            }),
            What::RequiresGrad(list) => {
                list.iter().try_for_each(|number| self.get(*number)?.set_requires_grad(true))
            }
            What::Drop(list) => {
                list.iter().for_each(|number| drop(self.tensors.remove(number)));
                Ok(())
            }
            What::Train(module, on) => {
                self.shared.modules[*module].module.set_training(*on);
                Ok(())
            }
            What::Function { inputs, function, to } => {
                let given = self.function(inputs, function)?;
                self.give(to, given)
            }
            What::Hook { on, gradient, body, gives } => self.hook(*on, *gradient, body, *gives),
            What::Checkpoint { inputs, body, gives, to } => {
                let given = self.checkpoint(inputs, body, *gives)?;
                self.give(&[*to], vec![given])
            }
            _ => Ok(()),
        }
    }

    fn backward(
        &self,
        of: &[usize],
        gradients: &Option<Vec<usize>>,
        retain: bool,
        create: bool,
    ) -> Result<()> {
        let (roots, gradients) = (self.all(of)?, self.all(gradients.as_deref().unwrap_or(&[]))?);
        autograd::backward(&paired(&roots, &gradients), pass(retain, create))
    }

    fn hook(&self, on: usize, gradient: usize, body: &Arc<Block>, gives: Option<usize>) -> Result<()> {
        let (machine, body) = (self.clone(), body.clone());
        self.get(on)?.register_hook(move |incoming| {
            let mut machine = machine.clone();
            machine.tensors.insert(gradient, incoming.clone());
            machine.block(&body, &mut Own::nothing()).map_err(fault)?;
            gives.map(|number| machine.get(number)).transpose()
        })?;
        Ok(())
    }

    fn checkpoint(&self, inputs: &[usize], body: &Arc<Block>, gives: usize) -> Result<Tensor> {
        let given = inputs.iter().map(|number| self.get(*number)).collect::<Result<Vec<_>>>()?;
        let (machine, body, numbers) = (self.clone(), body.clone(), inputs.to_vec());
        let again = move |inputs: &[Tensor]| {
            let mut machine = machine.clone();
            machine.tensors.extend(numbers.iter().copied().zip(inputs.iter().cloned()));
            machine.block(&body, &mut Own::nothing()).map_err(fault)?;
            machine.get(gives)
        };
        autograd::checkpoint(again, &given)
    }

    pub(super) fn get(&self, number: usize) -> Result<Tensor> {
        self.tensors.get(&number).cloned().ok_or_else(|| fault("a tensor that is not there any more"))
    }

    fn all(&self, numbers: &[usize]) -> Result<Vec<Tensor>> {
        numbers.iter().map(|number| self.get(*number)).collect()
    }

    fn first(&self, passed: &Passed) -> Result<Tensor> {
        match passed.args.first() {
            Some(crate::value::Value::Same(number)) => self.get(*number),
            _ => Err(fault("what is changed in place is the first argument, a tensor")),
        }
    }

    fn put_first(&mut self, passed: &Passed, target: &Tensor) {
        if let Some(crate::value::Value::Same(number)) = passed.args.first() {
            self.tensors.insert(*number, target.clone());
        }
    }

    fn give(&mut self, to: &[usize], given: Vec<Tensor>) -> Result<()> {
        if to.len() > given.len() {
            return Err(fault(format_args!("gives {} tensors, not {}", given.len(), to.len())));
        }
        self.tensors.extend(to.iter().copied().zip(given));
        Ok(())
    }
}

fn change(optimizer: &mut dyn Optimizer, what: &What) -> Result<()> {
    match what {
        What::ZeroGrad(_, true) => {
            optimizer.zero_grad();
            Ok(())
        }
        What::ZeroGrad(_, false) => optimizer.zero_grad_in_place(),
        _ => optimizer.step(),
    }
}

impl Program {
    fn make_optimizers(&self, machine: &Machine) -> std::result::Result<Vec<Box<dyn Optimizer>>, String> {
        let make = |(name, made): &(String, MadeOptimizer)| {
            made.make(machine).map_err(|reason| format!("optimizers.{name}: {reason}"))
        };
        self.optimizers.iter().map(make).collect()
    }
}

impl MadeOptimizer {
    fn make(&self, machine: &Machine) -> std::result::Result<Box<dyn Optimizer>, String> {
        let mut parameters = Vec::new();
        for owner in &self.parameters {
            match owner {
                Owner::Module(number) => {
                    parameters.extend(machine.shared.modules[*number].module.parameters())
                }
                Owner::Tensor(number) => parameters.extend(machine.tensors.get(number).cloned()),
            }
        }
        let wanted = Wanted {
            options: &self.options,
            implementation: self.implementation,
            groups: vec![(parameters, 1.0)],
        };
        (self.entry.make)(&wanted).map_err(|refusal| refusal.to_string())
    }
}

impl Made {
    fn make(&self, tensors: &Tensors, device: Device) -> Result<modules::Made> {
        let arguments = Arguments::new(&self.passed, tensors, device);
        let made = checked((self.entry.make)(&arguments), &arguments)?;
        for ((_, parameter), number) in made.module.named_parameters().iter().zip(0..) {
            let seeded =
                Start::like(parameter, self.seed.wrapping_add(number), self.reach).make(Device::CPU)?;
            let _guard = no_grad();
            parameter.copy_(&seeded)?;
        }
        made.module.to(device)?;
        made.module.set_training(self.training);
        Ok(made)
    }
}

/// Each root with the gradient that is given for it, if one is.
fn paired<'a>(roots: &'a [Tensor], gradients: &'a [Tensor]) -> Vec<(&'a Tensor, Option<&'a Tensor>)> {
    roots.iter().enumerate().map(|(at, root)| (root, gradients.get(at))).collect()
}

fn pass(retain_graph: bool, create_graph: bool) -> Pass {
    Pass { retain_graph: retain_graph || create_graph, create_graph, allow_unused: true }
}

/// An argument that nobody asked for is an error: it would have no effect.
fn checked<T>(outcome: Result<T>, arguments: &Arguments<'_>) -> Result<T> {
    match arguments.unknown() {
        Some(name) if outcome.is_ok() => Err(fault(format_args!("does not know the argument {name}"))),
        _ => outcome,
    }
}

pub(super) fn fault(reason: impl std::fmt::Display) -> Error {
    Error::new(Cause::Argument, "", reason)
}
