//! Trains a recorded model again and compares it with the record all along.

use super::case::Case;
use super::model::{self, Model};
use super::words::{Argument, Call};
use crate::compare::compare_within;
use crate::golden::Golden;
use crate::optim::{Wanted, find, scheduler};
use crate::replay::{Outcome, Verdict, failed, refused};
use crate::value::Value;
use cresset_nn::{Module, clip_grad_norm};
use cresset_optim::schedule::Scheduler;
use cresset_optim::{Implementation, Optimizer};
use cresset_tensor::{DType, Device, Error, Scalar, Tensor};
use serde_json::{Map, Value as Json, json};

/// How far losses may be apart beside what rounding moves: 32 bits or fewer, and 64.
const LOSS: [f64; 2] = [1e-5, 1e-10];

/// What a case describes, ready to train.
struct Run<'a> {
    golden: &'a Golden,
    case: &'a Case,
    device: Device,
    model: std::sync::Arc<dyn Model>,
    optimizer: Box<dyn Optimizer>,
    rest: Rest,
}

/// What belongs to a step beside the optimizer.
#[derive(Default)]
struct Rest {
    max_norm: Option<f64>,
    scheduler: Option<Box<dyn Scheduler>>,
}

fn told(error: Error) -> Verdict {
    refused(&error)
}

pub(super) fn replay(
    golden: &Golden,
    case: &Case,
    implementation: Implementation,
    device: Device,
) -> Outcome<f64> {
    check_loss(case)?;
    let model = model::make(golden, case, device)?;
    model.to((case.dtype, device)).map_err(told)?;
    let mut state = Vec::new();
    for (name, key) in &case.init {
        state.push((name.clone(), golden.tensor(key).map_err(failed)?.clone()));
    }
    model.load_state_dict(&state).map_err(told)?;
    model.train();
    let (optimizer, rest) = optimizer(case, implementation, model.parameters())?;
    let mut run = Run { golden, case, device, model, optimizer, rest };
    let mut worst: f64 = 0.0;
    for step in 0..case.losses.len() {
        worst = worst.max(run.step(step)?);
    }
    Ok(worst.max(run.compare_end()?))
}

/// The mean cross entropy, of batches that take turns.
fn check_loss(case: &Case) -> Outcome<()> {
    let turns = format!("batch s % {};", case.inputs.len());
    match case.loss.starts_with("cross_entropy(mean);") && case.loss.contains(&turns) {
        true => Ok(()),
        false => Err(Verdict::Unsupported(format!("loss {:?}", case.loss))),
    }
}

impl Run<'_> {
    fn step(&mut self, step: usize) -> Outcome<f64> {
        let batch = step % self.case.inputs.len();
        let tensor = |key: &str| self.golden.tensor(key).map_err(failed)?.to(self.device).map_err(told);
        let [x, y] = [tensor(&self.case.inputs[batch])?, tensor(&self.case.targets[batch])?];
        self.optimizer.zero_grad();
        let scores = self.model.scores(&x)?;
        // A target for each place of a sequence.
        let scores = if scores.dim() == 3 { scores.flatten(0, 1).map_err(told)? } else { scores };
        let loss = scores.cross_entropy(&y).map_err(told)?;
        let mut worst = self.compare_loss(step, &loss)?;
        loss.backward().map_err(told)?;
        if step == 0 {
            worst = worst.max(self.compare_grads()?);
        }
        if let Some(max_norm) = self.rest.max_norm {
            clip_grad_norm(&self.model.parameters(), max_norm).map_err(told)?;
        }
        self.optimizer.step().map_err(told)?;
        if let Some(scheduler) = &mut self.rest.scheduler {
            scheduler.step(&mut *self.optimizer).map_err(told)?;
        }
        Ok(worst)
    }

    fn compare_loss(&self, step: usize, loss: &Tensor) -> Outcome<f64> {
        let wide = self.case.dtype == DType::F64;
        let allowed = LOSS[usize::from(wide)] + 4.0 * self.case.noise.loss;
        let (got, expected) = (loss.item().map_err(told)?.as_f64(), self.case.losses[step]);
        let share = (got - expected).abs() / allowed;
        if share.is_nan() || share > 1.0 {
            return Err(failed(format!("the loss of step {step} is {got}, expected {expected}")));
        }
        Ok(share)
    }

    fn compare_grads(&self) -> Outcome<f64> {
        let parameters = self.model.named_parameters();
        let grads = parameters.into_iter().filter_map(|(name, parameter)| Some((name, parameter.grad()?)));
        self.compare("the first gradient of ", &grads.collect::<Vec<_>>(), &self.case.grads, 0.0)
    }

    fn compare_end(&self) -> Outcome<f64> {
        let state = self.model.state_dict();
        let counts = |(name, _): &&(String, String)| !self.model.is_idle(name);
        let expected: Vec<_> = self.case.end.iter().filter(counts).cloned().collect();
        self.compare("at the end ", &state, &expected, self.case.noise.weights)
    }

    fn compare(
        &self,
        what: &str,
        got: &[(String, Tensor)],
        expected: &[(String, String)],
        noise: f64,
    ) -> Outcome<f64> {
        let mut worst: f64 = 0.0;
        for (name, key) in expected {
            let reason = |reason: String| failed(format!("{what}{name} {reason}"));
            let found = got.iter().find(|(other, _)| other == name);
            let (_, got) = found.ok_or_else(|| reason("is none, expected a tensor".to_owned()))?;
            worst = worst.max(compare_within(self.golden, got, key, noise).map_err(reason)?);
        }
        Ok(worst)
    }
}

/// E.g. `Adam(lr=3e-3), clip_grad_norm_(1.0) each step, CosineAnnealingLR(T_max=STEPS) stepped after each step`.
fn optimizer(
    case: &Case,
    implementation: Implementation,
    parameters: Vec<Tensor>,
) -> Outcome<(Box<dyn Optimizer>, Rest)> {
    let unknown = |text: &str| Verdict::Unsupported(format!("optimizer {text:?}"));
    let (call, mut text) = Call::parse(&case.optimizer).ok_or_else(|| unknown(&case.optimizer))?;
    let options = call.passed(|name| name, |_| None).filter(|passed| passed.args.is_empty());
    let options = options.ok_or_else(|| unknown(&case.optimizer))?.kwargs;
    let options: Vec<_> = options.into_iter().map(|(name, value)| (name, Some(value))).collect();
    let groups = vec![(parameters, 1.0)];
    let made = (find(&call.name)?.make)(&Wanted { options: &options, implementation, groups });
    let mut optimizer = made.map_err(crate::optim::Refusal::verdict)?;
    let mut rest = Rest::default();
    while let Some(more) = text.strip_prefix(',') {
        let (call, after) = Call::parse(more).ok_or_else(|| unknown(more))?;
        match (call.name.as_str(), call.passed.as_slice()) {
            ("clip_grad_norm_", [Argument::Value(Value::Scalar(max_norm))]) => {
                rest.max_norm = Some(max_norm.as_f64());
                text = after.strip_prefix("each step").ok_or_else(|| unknown(after))?;
            }
            (name, arguments) => {
                let keywords = keywords(arguments, case.losses.len()).ok_or_else(|| unknown(more))?;
                rest.scheduler = Some(scheduler(name, &keywords, &mut *optimizer)?);
                text = after.strip_prefix("stepped after each step").ok_or_else(|| unknown(after))?;
            }
        }
    }
    match text {
        "" => Ok((optimizer, rest)),
        text => Err(unknown(text)),
    }
}

/// The keywords of a scheduler, where `STEPS` stands for the length of the run.
fn keywords(arguments: &[Argument], steps: usize) -> Option<Map<String, Json>> {
    let each = |argument: &Argument| {
        let Argument::Named(name, value) = argument else { return None };
        let value = match value {
            Value::Text(word) if word == "STEPS" => json!(steps),
            Value::Text(word) => json!(word),
            Value::Scalar(Scalar::Int(number)) => json!(number),
            Value::Scalar(Scalar::Float(number)) => json!(number),
            Value::Scalar(Scalar::Bool(yes)) => json!(yes),
            _ => return None,
        };
        Some((name.clone(), value))
    };
    arguments.iter().map(each).collect()
}
