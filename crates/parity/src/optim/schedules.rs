//! Learning rates of schedulers.

use super::expression::Expression;
use crate::golden::{BadFile, text};
use crate::replay::{Outcome, Verdict, failed, guarded, refused};
use crate::report::Row;
use cresset_optim::schedule::{
    Anneal, Chained, Constant, CosineAnnealing, CosineAnnealingWarmRestarts, Cyclic, CyclicMode, Direction,
    Exponential, Lambda, Linear, MultiStep, Multiplicative, OneCycle, Polynomial, ReduceOnPlateau, Schedule,
    Scheduler, Sequential, StepEvery, Swa, Threshold,
};
use cresset_optim::{Group, Optimizer, Setting, Sgd, SgdOptions, Value};
use cresset_tensor::{Error, Tensor};
use serde_json::{Map, Value as Json};
use std::cell::RefCell;
use std::path::Path;

/// How far rates may be apart, as a share of themselves.
const RELATIVE: f64 = 1e-12;
/// What rounding leaves of rates that are 0.
const ABSOLUTE: f64 = 1e-16;

pub(super) fn row(path: &Path) -> Result<Option<Row>, BadFile> {
    let bad = |reason: String| BadFile::new(path, reason);
    let bytes = std::fs::read(path).map_err(|error| bad(error.to_string()))?;
    let json: Json = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    if json["suite"] != "lr_schedulers" {
        return Ok(None);
    }
    let mut row =
        Row { name: "lr_schedulers".to_owned(), category: "schedulers".to_owned(), ..Row::default() };
    for (i, case) in json["cases"].as_array().into_iter().flatten().enumerate() {
        let id = format!("{}.{i:02}", case["name"].as_str().unwrap_or_default());
        row.count(&id, guarded(|| replay(case)));
    }
    Ok(Some(row))
}

/// Recorded keywords, and which of them were asked for.
struct Keywords<'a> {
    all: &'a Map<String, Json>,
    asked: RefCell<Vec<String>>,
}

impl<'a> Keywords<'a> {
    fn new(all: &'a Map<String, Json>) -> Keywords<'a> {
        Keywords { all, asked: RefCell::new(Vec::new()) }
    }

    fn find(&self, name: &str) -> Option<&'a Json> {
        self.asked.borrow_mut().push(name.to_owned());
        self.all.get(name).filter(|value| !value.is_null())
    }

    fn get<T: Setting>(&self, name: &str) -> Outcome<Option<T>> {
        let Some(json) = self.find(name) else { return Ok(None) };
        let value = match json {
            Json::Bool(value) => Value::Bool(*value),
            Json::String(text) => Value::Text(text.clone()),
            json => match (json.as_i64(), json.as_f64()) {
                (Some(int), _) => Value::Int(int),
                (None, Some(float)) => Value::Float(float),
                _ => return Err(Verdict::Unsupported(format!("{name} is {json}"))),
            },
        };
        T::from_value(&value).map(Some).ok_or_else(|| Verdict::Unsupported(format!("{name} is {json}")))
    }

    fn or<T: Setting>(&self, name: &str, default: T) -> Outcome<T> {
        Ok(self.get(name)?.unwrap_or(default))
    }

    fn need<T: Setting>(&self, name: &str) -> Outcome<T> {
        self.get(name)?.ok_or_else(|| Verdict::Unsupported(format!("{name} is missing")))
    }

    /// A number, or one for each group.
    fn numbers(&self, name: &str, default: Vec<f64>) -> Outcome<Vec<f64>> {
        let Some(list) = self.all.get(name).and_then(Json::as_array) else {
            return Ok(self.get(name)?.map_or(default, |number| vec![number]));
        };
        self.find(name);
        list.iter()
            .map(|number| number.as_f64().ok_or_else(|| failed(format!("{name} has {number}"))))
            .collect()
    }

    fn counts(&self, name: &str) -> Outcome<Vec<usize>> {
        let list = self.find(name).and_then(Json::as_array).cloned().unwrap_or_default();
        let count = |json: &Json| json.as_u64().map(|count| count as usize);
        list.iter().map(|json| count(json).ok_or_else(|| failed(format!("{name} has {json}")))).collect()
    }

    fn function(&self, name: &str) -> Outcome<Expression> {
        let text = text(self.find(name).unwrap_or(&Json::Null)).map_err(failed)?;
        Expression::parse(&text).ok_or_else(|| Verdict::Unsupported(format!("function {text}")))
    }

    /// Nothing counts that was made from keywords that nobody asked for.
    fn check(&self) -> Outcome<()> {
        let asked = self.asked.borrow();
        match self.all.keys().find(|name| !asked.contains(name)) {
            Some(name) => Err(Verdict::Unsupported(format!("keyword {name}"))),
            None => Ok(()),
        }
    }
}

fn told(error: Error) -> Verdict {
    refused(&error)
}

fn started(rule: impl Schedule + 'static, optimizer: &mut dyn Optimizer) -> Outcome<Box<dyn Scheduler>> {
    Ok(Box::new(rule.start(optimizer).map_err(told)?))
}

pub(crate) fn make(
    name: &str,
    all: &Map<String, Json>,
    optimizer: &mut dyn Optimizer,
) -> Outcome<Box<dyn Scheduler>> {
    let k = Keywords::new(all);
    let made = match name {
        "LambdaLR" => {
            let function = k.function("lr_lambda")?;
            started(Lambda::new(move |epoch| function.at(epoch as f64)), optimizer)
        }
        "MultiplicativeLR" => {
            let function = k.function("lr_lambda")?;
            started(Multiplicative::new(move |epoch| function.at(epoch as f64)), optimizer)
        }
        "StepLR" => {
            started(StepEvery { step_size: k.need("step_size")?, gamma: k.or("gamma", 0.1)? }, optimizer)
        }
        "MultiStepLR" => {
            started(MultiStep { milestones: k.counts("milestones")?, gamma: k.or("gamma", 0.1)? }, optimizer)
        }
        "ConstantLR" => {
            let Constant { factor, total_iters } = Constant::default();
            let rule =
                Constant { factor: k.or("factor", factor)?, total_iters: k.or("total_iters", total_iters)? };
            started(rule, optimizer)
        }
        "LinearLR" => {
            let Linear { start_factor, end_factor, total_iters } = Linear::default();
            let rule = Linear {
                start_factor: k.or("start_factor", start_factor)?,
                end_factor: k.or("end_factor", end_factor)?,
                total_iters: k.or("total_iters", total_iters)?,
            };
            started(rule, optimizer)
        }
        "ExponentialLR" => started(Exponential { gamma: k.need("gamma")? }, optimizer),
        "PolynomialLR" => {
            let rule = Polynomial { total_iters: k.or("total_iters", 5)?, power: k.or("power", 1.0)? };
            started(rule, optimizer)
        }
        "CosineAnnealingLR" => {
            let rule = CosineAnnealing { t_max: k.need("T_max")?, eta_min: k.or("eta_min", 0.0)? };
            started(rule, optimizer)
        }
        "CosineAnnealingWarmRestarts" => {
            let (t_0, t_mult) = (k.need("T_0")?, k.or("T_mult", 1)?);
            let rule = CosineAnnealingWarmRestarts { t_0, t_mult, eta_min: k.or("eta_min", 0.0)? };
            started(rule, optimizer)
        }
        "SWALR" => {
            let rule = Swa {
                swa_lr: k.numbers("swa_lr", Vec::new())?,
                anneal_epochs: k.or("anneal_epochs", 10)?,
                anneal_strategy: k.or("anneal_strategy", Anneal::Cos)?,
            };
            started(rule, optimizer)
        }
        "CyclicLR" => started(cyclic(&k)?, optimizer),
        "OneCycleLR" => started(one_cycle(&k)?, optimizer),
        "SequentialLR" => {
            let parts = parts(&k, optimizer)?;
            let made = Sequential::new(parts, k.counts("milestones")?, optimizer).map_err(told)?;
            Ok(Box::new(made) as Box<dyn Scheduler>)
        }
        "ChainedScheduler" => {
            let parts = parts(&k, optimizer)?;
            Ok(Box::new(Chained::new(parts, optimizer).map_err(told)?) as Box<dyn Scheduler>)
        }
        _ => return Err(Verdict::Unsupported("scheduler".to_owned())),
    }?;
    k.check()?;
    Ok(made)
}

fn cyclic(k: &Keywords<'_>) -> Outcome<Cyclic> {
    let base = Cyclic::default();
    Ok(Cyclic {
        base_lr: k.numbers("base_lr", Vec::new())?,
        max_lr: k.numbers("max_lr", Vec::new())?,
        step_size_up: k.or("step_size_up", base.step_size_up)?,
        step_size_down: k.get("step_size_down")?,
        mode: k.or("mode", CyclicMode::Triangular)?,
        gamma: k.or("gamma", base.gamma)?,
        scale: base.scale,
        cycle_momentum: k.or("cycle_momentum", true)?,
        base_momentum: k.numbers("base_momentum", base.base_momentum)?,
        max_momentum: k.numbers("max_momentum", base.max_momentum)?,
    })
}

fn one_cycle(k: &Keywords<'_>) -> Outcome<OneCycle> {
    let base = OneCycle::default();
    let product = k.or("epochs", 0usize)? * k.or("steps_per_epoch", 0usize)?;
    Ok(OneCycle {
        max_lr: k.numbers("max_lr", Vec::new())?,
        total_steps: k.or("total_steps", product)?,
        pct_start: k.or("pct_start", base.pct_start)?,
        anneal_strategy: k.or("anneal_strategy", Anneal::Cos)?,
        cycle_momentum: k.or("cycle_momentum", true)?,
        base_momentum: k.numbers("base_momentum", base.base_momentum)?,
        max_momentum: k.numbers("max_momentum", base.max_momentum)?,
        div_factor: k.or("div_factor", base.div_factor)?,
        final_div_factor: k.or("final_div_factor", base.final_div_factor)?,
        three_phase: k.or("three_phase", false)?,
    })
}

/// Schedulers written as calls, e.g. `StepLR(step_size=5)`.
fn parts(k: &Keywords<'_>, optimizer: &mut dyn Optimizer) -> Outcome<Vec<Box<dyn Scheduler>>> {
    let mut parts = Vec::new();
    for call in k.find("schedulers").and_then(Json::as_array).into_iter().flatten() {
        let call = text(call).map_err(failed)?;
        let unknown = || Verdict::Unsupported(format!("scheduler {call}"));
        let (name, rest) = call.split_once('(').ok_or_else(unknown)?;
        let arguments = rest.strip_suffix(')').ok_or_else(unknown)?;
        let mut keywords = Map::new();
        for argument in arguments.split(',').filter(|argument| !argument.trim().is_empty()) {
            let (key, value) = argument.split_once('=').ok_or_else(unknown)?;
            let value = value.trim().replace("True", "true").replace("False", "false").replace('\'', "\"");
            let value = serde_json::from_str(&value).unwrap_or(Json::String(value));
            keywords.insert(key.trim().to_owned(), value);
        }
        parts.push(make(name.trim(), &keywords, optimizer)?);
    }
    Ok(parts)
}

fn optimizer(case: &Json) -> Outcome<Sgd> {
    let base = case["base_lr"].as_f64().ok_or_else(|| failed("base_lr is missing"))?;
    let groups = case["groups"].as_u64().unwrap_or(1) as i32;
    let group = |i: i32| {
        let options = SgdOptions { lr: base * 0.5f64.powi(i), momentum: 0.9, ..SgdOptions::default() };
        Ok(Group { parameters: vec![Tensor::zeros([1], ())?.with_grad()?], options })
    };
    let groups = (0..groups).map(group).collect::<Result<_, Error>>().map_err(told)?;
    Sgd::with_groups(groups).map_err(told)
}

/// Compares one row of numbers.
fn compare(what: &str, step: usize, got: &[f64], expected: &Json) -> Outcome<f64> {
    let expected: Vec<f64> = match expected {
        Json::Array(list) => list.iter().filter_map(Json::as_f64).collect(),
        number => number.as_f64().into_iter().collect(),
    };
    let mut worst: f64 = 0.0;
    if expected.len() != got.len() {
        return Err(failed(format!("{} {what} after {step} steps, expected {}", got.len(), expected.len())));
    }
    for (group, (got, expected)) in got.iter().zip(expected).enumerate() {
        let share = (got - expected).abs() / (RELATIVE * expected.abs() + ABSOLUTE);
        if share.is_nan() || share > 1.0 {
            return Err(failed(format!(
                "{what} of group {group} is {got} after {step} steps, expected {expected}"
            )));
        }
        worst = worst.max(share);
    }
    Ok(worst)
}

fn replay(case: &Json) -> Outcome<f64> {
    let mut optimizer = optimizer(case)?;
    let empty = Map::new();
    let keywords = case["kwargs"].as_object().unwrap_or(&empty);
    let name = case["name"].as_str().unwrap_or_default();
    if name == "ReduceLROnPlateau" {
        return replay_plateau(case, &plateau(&Keywords::new(keywords))?, &mut optimizer);
    }
    let mut scheduler = make(name, keywords, &mut optimizer)?;
    let mut worst: f64 = 0.0;
    for (step, expected) in case["lr"].as_array().into_iter().flatten().enumerate() {
        if step > 0 {
            scheduler.step(&mut optimizer).map_err(told)?;
        }
        worst = worst.max(compare("lr", step, &optimizer.lrs(), expected)?);
        let momentum = &case["momentum"][step];
        if !momentum.is_null() {
            let groups = 0..optimizer.lrs().len();
            let got = groups.filter_map(|group| optimizer.option(group, "momentum")?.as_f64());
            worst = worst.max(compare("momentum", step, &got.collect::<Vec<_>>(), momentum)?);
        }
    }
    Ok(worst)
}

fn plateau(k: &Keywords<'_>) -> Outcome<ReduceOnPlateau> {
    let mut rule = ReduceOnPlateau::default();
    rule.mode = k.or("mode", Direction::Min)?;
    rule.factor = k.or("factor", rule.factor)?;
    rule.patience = k.or("patience", rule.patience)?;
    rule.threshold = k.or("threshold", rule.threshold)?;
    rule.threshold_mode = k.or("threshold_mode", Threshold::Rel)?;
    rule.cooldown = k.or("cooldown", rule.cooldown)?;
    rule.min_lr = k.numbers("min_lr", rule.min_lr)?;
    rule.eps = k.or("eps", rule.eps)?;
    k.check()?;
    Ok(rule)
}

fn replay_plateau(case: &Json, rule: &ReduceOnPlateau, optimizer: &mut Sgd) -> Outcome<f64> {
    let mut rule = rule.clone();
    let mut worst: f64 = 0.0;
    for (step, expected) in case["lr"].as_array().into_iter().flatten().enumerate() {
        if step > 0 {
            let measure = crate::value::float(&case["metrics"][step - 1]).map_err(failed)?;
            rule.step(optimizer, measure).map_err(told)?;
        }
        worst = worst.max(compare("lr", step, &optimizer.lrs(), expected)?);
    }
    Ok(worst)
}
