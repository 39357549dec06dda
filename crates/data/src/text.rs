//! Text for language models: characters as numbers, and windows of them.

use crate::Dataset;
use cresset_tensor::{Cause, Error, Result, Tensor};
use std::collections::BTreeSet;

/// The characters of a text, each with a number.
///
/// ```
/// use cresset_data::Characters;
///
/// let characters = Characters::of("to be or not to be")?;
/// let numbers = characters.encode("not to")?;
/// assert_eq!(characters.decode(&numbers)?, "not to");
/// assert_eq!(characters.len(), 7);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Characters {
    /// In order, so that the numbers depend on which there are and on nothing else.
    known: Vec<char>,
}

impl Characters {
    /// The characters that stand in `text`.
    ///
    /// # Errors
    /// If there are none.
    pub fn of(text: &str) -> Result<Characters> {
        let known: Vec<char> = text.chars().collect::<BTreeSet<char>>().into_iter().collect();
        match known.is_empty() {
            true => Err(Error::new(Cause::Argument, "Characters", "the text is empty")),
            false => Ok(Characters { known }),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are none, which [`of`](Characters::of) refuses.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The characters, in the order of their numbers.
    pub fn as_slice(&self) -> &[char] {
        &self.known
    }

    /// The number of each character of `text`.
    ///
    /// # Errors
    /// If one is not known.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>> {
        let number = |(place, character): (usize, char)| match self.known.binary_search(&character) {
            Ok(number) => Ok(number as i64),
            Err(_) => {
                let text = format_args!("{character:?} at byte {place} is none of the {} known", self.len());
                Err(Error::new(Cause::Argument, "Characters", text))
            }
        };
        text.char_indices().map(number).collect()
    }

    /// The text that these numbers stand for.
    ///
    /// # Errors
    /// If a number stands for none.
    pub fn decode(&self, numbers: &[i64]) -> Result<String> {
        let character = |&number: &i64| {
            usize::try_from(number).ok().and_then(|number| self.known.get(number)).copied().ok_or_else(|| {
                let text = format_args!("no character has number {number}; there are {}", self.len());
                Error::new(Cause::Index, "Characters", text)
            })
        };
        numbers.iter().map(character).collect()
    }
}

/// Windows on a long text: sample `i` is the `context` numbers from the `i`-th stride on, and the same one
/// further. A batch is `[numbers, next numbers]`, each of shape `[samples, context]`.
pub struct Windows {
    numbers: Vec<i64>,
    context: usize,
    stride: usize,
}

impl Windows {
    /// Windows of `context` numbers, each `stride` after the one before.
    ///
    /// ```
    /// use cresset_data::{Dataset, Windows};
    ///
    /// let windows = Windows::new(vec![3, 1, 4, 1, 5, 9], 3, 2)?;
    /// let [now, next] = windows.batch(&[0, 1])?;
    /// assert_eq!(now.to_vec::<i64>()?, [3, 1, 4, 4, 1, 5]);
    /// assert_eq!(next.to_vec::<i64>()?, [1, 4, 1, 1, 5, 9]);
    /// # Ok::<(), cresset_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a window or stride is empty, or the text is not longer than a window.
    pub fn new(numbers: Vec<i64>, context: usize, stride: usize) -> Result<Windows> {
        if context == 0 || stride == 0 {
            let text =
                format_args!("a context of {context} and a stride of {stride} are not both at least 1");
            return Err(Error::new(Cause::Argument, "Windows", text));
        }
        if numbers.len() <= context {
            let count = numbers.len();
            let text = format_args!("{count} numbers do not fill a window of {context} and one after it");
            return Err(Error::new(Cause::Argument, "Windows", text));
        }
        Ok(Windows { numbers, context, stride })
    }

    fn rows(&self, samples: &[usize], ahead: usize) -> Result<Tensor> {
        let mut rows = Vec::with_capacity(samples.len() * self.context);
        for &sample in samples {
            let start = sample * self.stride + ahead;
            rows.extend_from_slice(&self.numbers[start..start + self.context]);
        }
        Tensor::from_vec(rows, [samples.len(), self.context])
    }
}

impl Dataset for Windows {
    type Batch = [Tensor; 2];

    fn len(&self) -> usize {
        (self.numbers.len() - self.context - 1) / self.stride + 1
    }

    fn batch(&self, numbers: &[usize]) -> Result<[Tensor; 2]> {
        if let Some(beyond) = numbers.iter().find(|&&number| number >= self.len()) {
            let text = format_args!("there is no sample {beyond}; there are {}", self.len());
            return Err(Error::new(Cause::Index, "Windows", text));
        }
        Ok([self.rows(numbers, 0)?, self.rows(numbers, 1)?])
    }
}
