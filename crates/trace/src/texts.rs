//! Each text once.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// Texts by number. They lie in one piece: a trace has few that are different, but there may be
/// many, and each would cost an allocation or two.
#[derive(Default)]
pub(crate) struct Texts {
    all: String,
    /// Where each text ends.
    ends: Vec<usize>,
    /// The texts by their hash; one that meets another's is found at the next free number.
    numbers: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    hasher: RandomState,
}

/// A hash of what is one already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        // Only whole numbers are put in.
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Texts {
    /// The number of a text, which is a new one if it was not there.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        let hash = match self.lookup(text) {
            Ok(number) => return number,
            Err(hash) => hash,
        };
        let number = self.ends.len() as u32;
        self.all.push_str(text);
        self.ends.push(self.all.len());
        self.numbers.insert(hash, number);
        number
    }

    /// The number of a text, if it is there.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.lookup(text).ok()
    }

    /// The number of a text, or where it would be.
    fn lookup(&self, text: &str) -> Result<u32, u64> {
        let mut hash = self.hasher.hash_one(text);
        while let Some(&number) = self.numbers.get(&hash) {
            if self.get(number) == text {
                return Ok(number);
            }
            hash = hash.wrapping_add(1);
        }
        Err(hash)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a number.
    pub(crate) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.all[start..self.ends[number]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number() {
        let mut texts = Texts::default();
        let numbers: Vec<u32> = ["a", "", "bc", "a", ""].iter().map(|text| texts.number(text)).collect();
        assert_eq!(numbers, [0, 1, 2, 0, 1]);
        assert_eq!((texts.get(0), texts.get(1), texts.get(2)), ("a", "", "bc"));
    }
}
