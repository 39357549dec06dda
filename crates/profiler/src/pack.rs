//! Arguments as bytes: small while recording, turned into [`Input`]s when asked for.
//!
//! Numbers are written seven bits at a time, low bits first, so most dimensions take one
//! byte. A record is its length in four bytes, the FLOPs, the number of its stack (0 if
//! it has none), the overload's name, then each argument.

use cresset_dispatch::observe::{Argument, TensorArgument};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Writes into the free part of an arena, and goes on counting when that is full.
pub(crate) struct Packer<'a> {
    free: &'a [AtomicU8],
    at: usize,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(free: &'a [AtomicU8]) -> Self {
        Packer { free, at: 0 }
    }

    /// Bytes written, or that would have been with room enough.
    pub(crate) fn written(&self) -> usize {
        self.at
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.put(self.at, byte);
        self.at += 1;
    }

    #[inline]
    fn put(&self, at: usize, byte: u8) {
        if let Some(slot) = self.free.get(at) {
            slot.store(byte, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.byte(byte);
        }
    }

    #[inline]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.raw(text.as_bytes());
    }

    /// A whole record. `arguments` may be left out.
    #[inline]
    pub(crate) fn record(
        &mut self,
        flops: u64,
        stack: u64,
        overload: &str,
        arguments: impl FnOnce(&mut dyn FnMut(Argument<'_>)),
    ) {
        let head = self.at;
        self.at += 4;
        self.number(flops);
        self.number(stack);
        self.text(overload);
        arguments(&mut |argument| self.argument(argument));
        let bytes = (self.at - head - 4) as u32;
        for (i, byte) in bytes.to_le_bytes().into_iter().enumerate() {
            self.put(head + i, byte);
        }
    }

    fn argument(&mut self, argument: Argument<'_>) {
        match argument {
            Argument::Tensor(tensor) => self.tensor(&tensor),
            Argument::Tensors(list) => {
                self.header(Tag::Tensors, list.len() as u64);
                list.iter().for_each(|tensor| self.tensor(tensor));
            }
            Argument::Int(value) => self.header(Tag::Int, zigzag(value)),
            Argument::Float(value) => {
                self.byte(Tag::Float as u8);
                self.raw(&value.to_bits().to_le_bytes());
            }
            Argument::Bool(value) => self.header(Tag::Bool, value.into()),
            Argument::Ints(list) => {
                self.header(Tag::Ints, list.len() as u64);
                list.iter().for_each(|&value| self.number(zigzag(value)));
            }
            Argument::Floats(list) => {
                self.header(Tag::Floats, list.len() as u64);
                list.iter().for_each(|value| self.raw(&value.to_bits().to_le_bytes()));
            }
            Argument::Bools(list) => {
                self.header(Tag::Bools, list.len() as u64);
                list.iter().for_each(|&value| self.byte(value.into()));
            }
            Argument::Text(text) => {
                self.byte(Tag::Text as u8);
                self.text(text);
            }
            Argument::None => self.byte(Tag::None as u8),
        }
    }

    fn tensor(&mut self, tensor: &TensorArgument<'_>) {
        self.header(Tag::Tensor, tensor.shape.len() as u64);
        tensor.shape.iter().for_each(|&size| self.number(size as u64));
        for i in 0..tensor.shape.len() {
            self.number(tensor.strides.get(i).map_or(0, |&stride| stride as u64));
        }
        self.text(tensor.dtype);
    }

    #[inline]
    fn header(&mut self, tag: Tag, number: u64) {
        self.byte(tag as u8);
        self.number(number);
    }
}

/// Small numbers for small integers of either sign.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    Tensor,
    Tensors,
    Int,
    Float,
    Bool,
    Ints,
    Floats,
    Bools,
    Text,
    None,
}

impl Tag {
    const ALL: [Tag; 10] = [
        Tag::Tensor,
        Tag::Tensors,
        Tag::Int,
        Tag::Float,
        Tag::Bool,
        Tag::Ints,
        Tag::Floats,
        Tag::Bools,
        Tag::Text,
        Tag::None,
    ];
}

/// One recorded argument of a call, in the order of the operator's schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A tensor, or a number that stands for one (no dimensions).
    Tensor(TensorInput),
    /// A list of tensors.
    Tensors(Vec<TensorInput>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of floats.
    Floats(Vec<f64>),
    /// A list of truth values.
    Bools(Vec<bool>),
    /// Text.
    Text(String),
    /// An optional argument that was not given.
    None,
}

/// A recorded tensor argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInput {
    /// Size of each dimension.
    pub shape: Vec<u64>,
    /// Elements from one index to the next, per dimension.
    pub strides: Vec<u64>,
    /// Short name of the element type, e.g. `f32`.
    pub dtype: String,
}

/// Reads what a [`Packer`] wrote. Bytes that are none of its records end the reading.
pub(crate) struct Unpacker<'a>(pub(crate) &'a [u8]);

/// What stands before the arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) flops: u64,
    pub(crate) stack: u64,
    pub(crate) overload: String,
}

impl Unpacker<'_> {
    /// Must be read before the arguments.
    pub(crate) fn head(&mut self) -> Option<Head> {
        Some(Head { flops: self.number()?, stack: self.number()?, overload: self.text()? })
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn word(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    fn many<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()?;
        (0..length).map(|_| read(self)).collect()
    }

    fn tensor(&mut self) -> Option<TensorInput> {
        let shape = self.many(Self::number)?;
        let strides = (0..shape.len()).map(|_| self.number()).collect::<Option<_>>()?;
        Some(TensorInput { shape, strides, dtype: self.text()? })
    }

    fn input(&mut self) -> Option<Input> {
        let tag = *Tag::ALL.get(usize::from(self.byte()?))?;
        Some(match tag {
            Tag::Tensor => Input::Tensor(self.tensor()?),
            Tag::Tensors => Input::Tensors(self.many(|list| {
                list.byte()?;
                list.tensor()
            })?),
            Tag::Int => Input::Int(unzigzag(self.number()?)),
            Tag::Float => Input::Float(f64::from_bits(self.word()?)),
            Tag::Bool => Input::Bool(self.number()? != 0),
            Tag::Ints => Input::Ints(self.many(|list| list.number().map(unzigzag))?),
            Tag::Floats => Input::Floats(self.many(|list| list.word().map(f64::from_bits))?),
            Tag::Bools => Input::Bools(self.many(|list| Some(list.byte()? != 0))?),
            Tag::Text => Input::Text(self.text()?),
            Tag::None => Input::None,
        })
    }
}

impl Iterator for Unpacker<'_> {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        self.input()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_argument_comes_back() {
        let tensor = TensorArgument { shape: &[2, 300], strides: &[300, 1], dtype: "f32" };
        let arena: Vec<AtomicU8> = (0..512).map(|_| AtomicU8::new(0)).collect();
        let mut packer = Packer::new(&arena);
        packer.record(1 << 40, 7, "out", |visit| {
            visit(Argument::Tensor(tensor));
            visit(Argument::Tensors(&[tensor, tensor]));
            visit(Argument::Int(-1));
            visit(Argument::Float(0.5));
            visit(Argument::Bool(true));
            visit(Argument::Ints(&[1, -2, i64::MIN, i64::MAX]));
            visit(Argument::Floats(&[f64::INFINITY]));
            visit(Argument::Bools(&[false, true]));
            visit(Argument::Text("sum"));
            visit(Argument::None);
        });
        let bytes: Vec<u8> = arena[..packer.written()].iter().map(|byte| byte.load(Relaxed)).collect();
        assert_eq!(u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
        let mut unpacker = Unpacker(&bytes[4..]);
        let head = Head { flops: 1 << 40, stack: 7, overload: "out".to_owned() };
        assert_eq!(unpacker.head(), Some(head));
        let back = TensorInput { shape: vec![2, 300], strides: vec![300, 1], dtype: "f32".to_owned() };
        assert_eq!(
            unpacker.collect::<Vec<_>>(),
            [
                Input::Tensor(back.clone()),
                Input::Tensors(vec![back.clone(), back]),
                Input::Int(-1),
                Input::Float(0.5),
                Input::Bool(true),
                Input::Ints(vec![1, -2, i64::MIN, i64::MAX]),
                Input::Floats(vec![f64::INFINITY]),
                Input::Bools(vec![false, true]),
                Input::Text("sum".to_owned()),
                Input::None,
            ]
        );
    }
}
