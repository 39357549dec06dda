//! When a session did not want to see something.

/// Stretches of time, in ticks, in which something was switched off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    /// Beginnings and ends, by turns.
    turns: Vec<u64>,
}

impl Pauses {
    /// Switches on or off at `tick`. What is off already stays off.
    pub(crate) fn turn(&mut self, on: bool, tick: u64) {
        if self.is_paused() == on {
            self.turns.push(tick);
        }
    }

    fn is_paused(&self) -> bool {
        self.turns.len() % 2 == 1
    }

    /// Whether it was off at `tick`.
    pub(crate) fn contain(&self, tick: u64) -> bool {
        self.turns.partition_point(|&turn| turn <= tick) % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_off_and_on_is_contained() {
        let mut pauses = Pauses::default();
        assert!(!pauses.contain(0));
        for (on, tick) in [(true, 5), (false, 10), (false, 15), (true, 20), (true, 25), (false, 30)] {
            pauses.turn(on, tick);
        }
        let off: Vec<u64> = (0..40).step_by(5).filter(|&tick| pauses.contain(tick)).collect();
        assert_eq!(off, [10, 15, 30, 35]);
    }
}
