//! Saving a training state while the disk fails.

use crate::faulty::{Scratch, with_fault};
use cresset::checkpoint::{Checkpoints, TrainingState};
use cresset::nn;
use cresset::prelude::*;

/// A model whose weights are all `value`, and its optimizer.
fn model(value: f64) -> (Linear, AdamW) {
    let model = Linear::new(7, 5).unwrap();
    for weight in model.parameters() {
        let _off = no_grad();
        weight.fill_(value).unwrap();
    }
    let optimizer = AdamW::new(model.parameters(), AdamWOptions::default()).unwrap();
    (model, optimizer)
}

/// The step of the newest checkpoint, and what its weights are.
fn newest(checkpoints: &Checkpoints) -> (u64, f32) {
    let newest = checkpoints.newest().unwrap().expect("one is always whole");
    let (model, mut optimizer) = model(-1.0);
    let state = newest.restore(&model, &mut optimizer).unwrap();
    let weights: Vec<f32> = model.parameters().iter().flat_map(|w| w.to_vec::<f32>().unwrap()).collect();
    assert!(weights.iter().all(|weight| *weight == weights[0]), "weights of two checkpoints are mixed");
    (state.step, weights[0])
}

/// Saves a second checkpoint under the number `step`, with each call failing in turn.
fn fail_each(name: &str, step: u64) {
    let scratch = Scratch::new(name, false);
    let checkpoints = Checkpoints::new(&scratch.0).unwrap();
    let (old, old_optimizer) = model(1.0);
    let (new, new_optimizer) = model(2.0);
    let (before, after) =
        (TrainingState::of(1, &old_optimizer).unwrap(), TrainingState::of(step, &new_optimizer).unwrap());
    for n in 1.. {
        checkpoints.save(&old, &before).unwrap();
        let (outcome, happened) = with_fault(n, || checkpoints.save(&new, &after));
        match (&outcome, newest(&checkpoints)) {
            // The last calls only make sure of what is there already.
            (Err(_), found) => assert!([(1, 1.0), (step, 2.0)].contains(&found), "call {n}: {found:?}"),
            (Ok(_), found) => assert_eq!(found, (step, 2.0), "call {n}"),
        }
        if let Err(error) = &outcome {
            assert!(error.to_string().contains("step-"), "the place is named: {error}");
        }
        assert_eq!(outcome.is_err(), happened, "call {n} failed, and nobody was told");
        // The next save finds everything as it needs it, and tidies up.
        checkpoints.save(&new, &after).unwrap();
        assert_eq!(newest(&checkpoints), (step, 2.0));
        assert!(!scratch.names().iter().any(|name| name.starts_with('.')), "{:?}", scratch.names());
        if !happened {
            assert!(n > 8, "only {n} calls were made");
            return;
        }
        std::fs::remove_dir_all(&scratch.0).unwrap();
        std::fs::create_dir(&scratch.0).unwrap();
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_anywhere_leaves_the_one_before() {
    fail_each("next", 2);
}

#[test]
fn a_checkpoint_that_cannot_be_replaced_stays_as_it_was() {
    fail_each("same", 1);
}

#[test]
fn weights_that_cannot_be_written_anywhere_leave_the_file_before() {
    let scratch = Scratch::new("weights", false);
    let path = scratch.0.join("model.safetensors");
    let ((old, _), (new, _)) = (model(1.0), model(2.0));
    for n in 1.. {
        nn::save(&old, &path).unwrap();
        let (outcome, happened) = with_fault(n, || nn::save(&new, &path));
        let (found, _) = model(-1.0);
        nn::load(&found, &path).unwrap();
        let weight = found.parameters()[0].to_vec::<f32>().unwrap()[0];
        assert!(outcome.is_err() || weight == 2.0, "call {n}");
        assert!(weight == 1.0 || weight == 2.0, "call {n}: {weight}");
        assert_eq!(outcome.is_err(), happened, "call {n} failed, and nobody was told");
        assert_eq!(scratch.names(), ["model.safetensors"]);
        if !happened {
            return;
        }
    }
}

#[test]
fn writes_that_are_cut_in_half_are_gone_on_with() {
    let scratch = Scratch::new("short", true);
    let checkpoints = Checkpoints::new(&scratch.0).unwrap();
    let (model, optimizer) = model(2.0);
    for n in 1..60 {
        let state = TrainingState::of(n, &optimizer).unwrap();
        if let (Ok(saved), _) = with_fault(n as i64, || checkpoints.save(&model, &state)) {
            assert_eq!(newest(&checkpoints), (saved.step(), 2.0));
        }
    }
}
