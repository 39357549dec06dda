//! Checkpoints: training goes on bit for bit, and damage is noticed.

use cresset_checkpoint::{Checkpoint, Checkpoints, Result, TrainingState};
use cresset_nn::{Dropout, Forward, Linear, Module, Relu, Sequential};
use cresset_optim::schedule::{CosineAnnealing, Schedule, Scheduled, Scheduler};
use cresset_optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer};
use cresset_tensor::{Tensor, manual_seed, random_state};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Random numbers are the process's: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A directory of one test, removed with the value.
struct Scratch(PathBuf, #[expect(dead_code, reason = "held until the test ends")] MutexGuard<'static, ()>);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path, guard)
    }

    fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A model with chance in it, and all that trains it.
struct Run {
    model: Sequential,
    optimizer: AdamW,
    schedule: Scheduled<CosineAnnealing>,
    scaler: GradScaler,
    step: u64,
}

impl Run {
    fn new() -> Result<Run> {
        let model = Sequential::new()
            .push(Linear::new(6, 8)?)
            .push(Relu)
            .push(Dropout::new(0.5)?)
            .push(Linear::new(8, 3)?);
        let mut optimizer =
            AdamW::new(model.parameters(), AdamWOptions { amsgrad: true, ..Default::default() })?;
        let schedule = CosineAnnealing { t_max: 40, eta_min: 0.0 }.start(&mut optimizer)?;
        Ok(Run {
            model,
            optimizer,
            schedule,
            scaler: GradScaler::new(GradScalerOptions::default())?,
            step: 0,
        })
    }

    fn train(&mut self, steps: u64) -> Result<Vec<u32>> {
        let mut losses = Vec::new();
        for _ in 0..steps {
            self.optimizer.zero_grad();
            let (x, y) =
                (Tensor::randn([5, 6], ())?, Tensor::randint(0, 3, [5], cresset_tensor::DType::I64)?);
            let loss = self.model.call(&x)?.cross_entropy(&y)?;
            self.scaler.scale(&loss)?.backward()?;
            self.scaler.step(&mut self.optimizer)?;
            self.scaler.update()?;
            self.schedule.step(&mut self.optimizer)?;
            self.step += 1;
            losses.push(loss.to_vec::<f32>()?[0].to_bits());
        }
        Ok(losses)
    }

    fn state(&self) -> Result<TrainingState> {
        Ok(TrainingState {
            schedule: Some(self.schedule.state_dict()),
            scaler: Some(self.scaler.state_dict()),
            notes: [("model".to_owned(), "mlp".to_owned())].into(),
            ..TrainingState::of(self.step, &self.optimizer)?
        })
    }

    fn resume(checkpoint: &Checkpoint) -> Result<Run> {
        let mut run = Run::new()?;
        let state = checkpoint.restore(&run.model, &mut run.optimizer)?;
        run.schedule.load_state_dict(&state.schedule.expect("it was saved"))?;
        run.scaler.load_state_dict(state.scaler.expect("it was saved"))?;
        run.step = state.step;
        assert_eq!(state.notes["model"], "mlp");
        Ok(run)
    }

    fn weights(&self) -> Vec<Vec<u32>> {
        let bits = |tensor: &Tensor| tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect();
        self.model.parameters().iter().map(bits).collect()
    }
}

#[test]
fn training_goes_on_bit_for_bit() {
    let scratch = Scratch::new("resume");
    manual_seed(7);
    let mut straight = Run::new().unwrap();
    straight.train(20).unwrap();
    scratch.checkpoints().save(&straight.model, &straight.state().unwrap()).unwrap();
    let expected = straight.train(20).unwrap();

    manual_seed(99);
    let newest = scratch.checkpoints().newest().unwrap().expect("one was saved");
    let mut resumed = Run::resume(&newest).unwrap();
    assert_eq!(resumed.train(20).unwrap(), expected);
    assert_eq!(resumed.weights(), straight.weights());
    assert_eq!(resumed.step, 40);
}

#[test]
fn the_newest_are_kept() {
    let scratch = Scratch::new("keep");
    let checkpoints = scratch.checkpoints().keep(2);
    let mut run = Run::new().unwrap();
    for _ in 0..4 {
        run.train(1).unwrap();
        checkpoints.save(&run.model, &run.state().unwrap()).unwrap();
    }
    let steps: Vec<u64> = checkpoints.all().unwrap().iter().map(Checkpoint::step).collect();
    assert_eq!(steps, [3, 4]);
    // The same step again replaces what was there.
    checkpoints.save(&run.model, &run.state().unwrap()).unwrap();
    assert_eq!(checkpoints.all().unwrap().len(), 2);
    assert!(checkpoints.newest().unwrap().is_some_and(|newest| newest.step() == 4));
}

#[test]
fn what_an_interrupted_run_left_is_ignored_and_then_removed() {
    let scratch = Scratch::new("left");
    let checkpoints = scratch.checkpoints();
    let left = scratch.0.join(".step-0000000009.1.partial");
    std::fs::create_dir(&left).unwrap();
    assert!(checkpoints.newest().unwrap().is_none());
    let run = Run::new().unwrap();
    checkpoints.save(&run.model, &run.state().unwrap()).unwrap();
    assert!(!left.exists());
}

/// Overwrites one byte of a file.
fn damage(path: &Path, place: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[place] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
    let scratch = Scratch::new("damaged");
    let checkpoints = scratch.checkpoints();
    let mut run = Run::new().unwrap();
    for _ in 0..2 {
        run.train(1).unwrap();
        checkpoints.save(&run.model, &run.state().unwrap()).unwrap();
    }
    let all = checkpoints.all().unwrap();
    damage(&all[1].model(), 600);
    assert_eq!(checkpoints.newest().unwrap().map(|newest| newest.step()), Some(1));
    damage(&all[0].directory().join("training.json"), 5);
    let told = checkpoints.newest().unwrap_err().to_string();
    assert!(
        told.ends_with("step-0000000002/model.safetensors: is not what was saved: its checksum differs"),
        "{told}"
    );
}

#[test]
fn every_damage_is_an_error_and_changes_nothing() {
    let scratch = Scratch::new("every");
    let mut run = Run::new().unwrap();
    run.train(1).unwrap();
    let saved = scratch.checkpoints().save(&run.model, &run.state().unwrap()).unwrap();
    let (weights, random) = (run.weights(), random_state());
    for name in ["model.safetensors", "training.safetensors", "training.json", "checksums.txt"] {
        let path = saved.directory().join(name);
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(whole.len() / 20 + 1) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(saved.restore(&run.model, &mut run.optimizer).is_err(), "{name} cut to {length}");
            std::fs::write(&path, &whole).unwrap();
            damage(&path, length);
            assert!(saved.restore(&run.model, &mut run.optimizer).is_err(), "{name} changed at {length}");
            std::fs::write(&path, &whole).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
        assert!(saved.restore(&run.model, &mut run.optimizer).is_err(), "without {name}");
        std::fs::write(&path, &whole).unwrap();
    }
    assert_eq!((run.weights(), random_state()), (weights, random));
    saved.restore(&run.model, &mut run.optimizer).unwrap();
}

#[test]
fn another_model_is_refused_with_all_that_differs() {
    let scratch = Scratch::new("other");
    let run = Run::new().unwrap();
    let saved = scratch.checkpoints().save(&run.model, &run.state().unwrap()).unwrap();
    let other =
        Sequential::new().push(Linear::new(6, 9).unwrap()).push(Relu).push(Linear::new(9, 3).unwrap());
    let mut optimizer = AdamW::new(other.parameters(), AdamWOptions::default()).unwrap();
    let told = saved.restore(&other, &mut optimizer).unwrap_err().to_string();
    assert!(told.contains("0.weight") && told.contains("2.weight is missing"), "{told}");
}

/// Writes checksums that fit what is in `directory`, as somebody would who changed it on purpose.
fn sign(directory: &Path) {
    let line = |name: &str| {
        let bytes = std::fs::read(directory.join(name)).unwrap();
        format!("{}:{:08x} {name}\n", bytes.len(), crc32fast::hash(&bytes))
    };
    let lines = ["model.safetensors", "training.safetensors", "training.json"].map(line);
    std::fs::write(directory.join("checksums.txt"), lines.concat()).unwrap();
}

#[test]
fn kept_files_of_checkpoints_are_taken_or_refused_as_their_names_say() {
    let scratch = Scratch::new("kept");
    let mut run = Run::new().unwrap();
    run.train(1).unwrap();
    let saved = scratch.checkpoints().save(&run.model, &run.state().unwrap()).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut kept: Vec<PathBuf> =
        std::fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
    kept.sort();
    assert!(kept.len() > 20);
    for path in kept {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Which file of a checkpoint it takes the place of stands behind the first dot.
        let (_, place) = name.split_once('.').unwrap();
        let place = saved.directory().join(place);
        let whole = std::fs::read(&place).unwrap();
        let before = (run.weights(), random_state());
        std::fs::copy(&path, &place).unwrap();
        if !place.ends_with("checksums.txt") {
            sign(saved.directory());
        }
        match saved.restore(&run.model, &mut run.optimizer) {
            Ok(_) => assert!(name.starts_with("good_"), "{name} is to be refused"),
            Err(error) => {
                assert!(name.starts_with("bad_"), "{name}: {error}");
                assert_eq!((run.weights(), random_state()), before, "{name} changed something");
            }
        }
        std::fs::write(&place, whole).unwrap();
        sign(saved.directory());
    }
    saved.restore(&run.model, &mut run.optimizer).unwrap();
}
