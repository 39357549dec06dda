//! Arguments as bytes: small while recording, turned into [`Input`]s when asked for.
//!
//! Numbers are written seven bits at a time, low bits first, so most dimensions take one
//! byte. A record is its length in four bytes, the FLOPs, the number of its stack (0 if
//! it has none), the overload's name, then each argument, then what processes exchange or what the call owns. A tensor's
//! identity stands before it where that is wanted.

use crate::communication::Communication;
use crate::varint;
use cresset_dispatch::observe::{self, Argument, Identity, Role, TensorArgument};
use cresset_dispatch::{Device, Key};

/// Writes into the free part of an arena, and goes on counting when that is full.
pub(crate) struct Packer<'a> {
    free: &'a mut [u8],
    at: usize,
    /// Whether to write down which tensors they are.
    identities: bool,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(free: &'a mut [u8]) -> Self {
        Packer { free, at: 0, identities: false }
    }

    /// Bytes written, or that would have been with room enough.
    pub(crate) fn written(&self) -> usize {
        self.at
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.free.get_mut(self.at) {
            *place = byte;
        }
        self.at += 1;
    }

    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.put(self.at, bytes);
        self.at += bytes.len();
    }

    #[inline]
    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.free.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    #[inline]
    fn number(&mut self, number: u64) {
        varint::write(number, |byte| self.byte(byte));
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.raw(text.as_bytes());
    }

    /// A whole record; `write` writes the arguments.
    #[inline]
    pub(crate) fn record(&mut self, flops: u64, stack: u64, overload: &str, write: impl FnOnce(&mut Self)) {
        let head = self.at;
        self.at += 4;
        self.number(flops);
        self.number(stack);
        self.text(overload);
        write(self);
        let bytes = (self.at - head - 4) as u32;
        self.put(head, &bytes.to_le_bytes());
    }

    /// Whether from here on it is written down which tensors they are.
    pub(crate) fn identify(&mut self, on: bool) {
        self.identities = on;
    }

    /// What processes exchange in a call, after its arguments.
    pub(crate) fn communication(&mut self, given: &observe::Communication<'_>) {
        self.byte(Tag::Communication as u8);
        for text in [given.collective, given.dtype, given.group] {
            self.text(text);
        }
        let peer = |rank: Option<u32>| rank.map_or(0, |rank| u64::from(rank) + 1);
        let numbers = [given.elements_in, given.elements_out, given.rank.into(), given.sequence];
        numbers.into_iter().chain([peer(given.source), peer(given.target)]).for_each(|one| self.number(one));
        self.number(given.ranks.len() as u64);
        given.ranks.iter().for_each(|&rank| self.number(rank.into()));
    }

    /// A tensor that a call owns, after its arguments.
    pub(crate) fn owned(&mut self, role: Role, tensor: &TensorArgument<'_>) {
        self.byte(Tag::Owned as u8);
        self.byte(role as u8);
        self.tensor(tensor);
    }

    #[inline]
    pub(crate) fn argument(&mut self, argument: Argument<'_>) {
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
            // Torch's traces do not tell where a call was to put its result.
            Argument::Device(_) | Argument::None => self.byte(Tag::None as u8),
        }
    }

    fn tensor(&mut self, tensor: &TensorArgument<'_>) {
        if self.identities {
            self.identity(tensor);
        }
        if let Some((sizes, word)) = small(tensor)
            && let Some(place) = self.free.get_mut(self.at..self.at + SMALL)
        {
            let [a, b, c, d] = word;
            let rank = tensor.shape.len();
            place[..6].copy_from_slice(&[Tag::Tensor as u8, rank as u8, a, b, c, d]);
            // All eight, so that the length is known; what is too much is written over.
            place[6..].copy_from_slice(&sizes.to_le_bytes());
            self.at += 6 + 2 * rank;
            return;
        }
        self.header(Tag::Tensor, tensor.shape.len() as u64);
        self.dtype(tensor.dtype);
        tensor.shape.iter().for_each(|&size| self.number(size as u64));
        for i in 0..tensor.shape.len() {
            self.number(tensor.strides.get(i).map_or(0, |&stride| stride as u64));
        }
    }

    /// Names of element types have four letters at most: one store, where text takes a call. Any
    /// other is text after four bytes that no name has.
    #[inline]
    fn dtype(&mut self, name: &str) {
        let word = word(name);
        self.raw(&word);
        if word == LONG {
            self.text(name);
        }
    }

    #[cold]
    fn identity(&mut self, tensor: &TensorArgument<'_>) {
        let Some(identity) = tensor.source.and_then(|source| source.identity()) else { return };
        self.byte(Tag::Identity as u8);
        let backend = Key::backends().position(|key| key == identity.device.key).unwrap_or(0);
        for number in [identity.tensor, identity.storage, identity.offset, backend] {
            self.number(number as u64);
        }
        self.number(identity.version);
        self.byte(identity.device.index);
    }

    #[inline]
    fn header(&mut self, tag: Tag, number: u64) {
        self.byte(tag as u8);
        self.number(number);
    }
}

/// In place of an element type's name: it follows as text.
const LONG: [u8; 4] = [0xff; 4];

#[inline]
fn word(name: &str) -> [u8; 4] {
    match *name.as_bytes() {
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        [a, b, c, d] => [a, b, c, d],
        _ => LONG,
    }
}

/// The room that a [`small`] tensor takes: tag, rank, type, and at most eight sizes and strides.
const SMALL: usize = 6 + size_of::<u64>();

/// The sizes and strides of a tensor whose numbers take a byte each, and its type. Put together in
/// a register: bytes that are written one by one and read at once make the processor wait.
#[inline]
fn small(tensor: &TensorArgument<'_>) -> Option<(u64, [u8; 4])> {
    let (rank, name) = (tensor.shape.len(), word(tensor.dtype));
    if rank > 4 || tensor.strides.len() != rank || name == LONG {
        return None;
    }
    let (mut sizes, mut strides, mut all) = (0, 0, 0);
    for (i, (&size, &stride)) in tensor.shape.iter().zip(tensor.strides).enumerate() {
        sizes |= (size as u64) << (8 * i);
        strides |= (stride as u64) << (8 * i);
        all |= size | stride;
    }
    (all < 0x80).then_some((sizes | strides << (8 * rank), name))
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
    Identity,
    Owned,
    Communication,
}

impl Tag {
    const ALL: [Tag; 13] = [
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
        Tag::Identity,
        Tag::Owned,
        Tag::Communication,
    ];
}

/// One recorded argument of a call, in the order of the operator's schema.
///
/// ```
/// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
/// use cresset_profiler::{Input, Profiler};
/// let (_, profiler) =
///     Profiler::builder().record_shapes(true).run(|_| operator("aten::t").shape(&[2, 3]).run(|| ()))?;
/// let inputs = profiler.events()?.next().unwrap().inputs().unwrap();
/// assert!(matches!(&inputs[..], [Input::Tensor(tensor)] if tensor.shape == [2, 3]));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
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
///
/// ```
/// use cresset_profiler::TensorInput;
/// let (shape, dtype) = (vec![2, 3], "f32".to_owned());
/// let tensor = TensorInput { shape, strides: vec![3, 1], dtype, identity: None };
/// assert_eq!(tensor.shape.iter().product::<u64>(), 6);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInput {
    /// Size of each dimension.
    pub shape: Vec<u64>,
    /// Elements from one index to the next, per dimension.
    pub strides: Vec<u64>,
    /// Short name of the element type, e.g. `f32`.
    pub dtype: String,
    /// Which tensor it was; known with `record_shapes`, `profile_memory` and `with_stack`
    /// together, and for what is a tensor.
    pub identity: Option<Identity>,
}

impl TensorInput {
    /// The size of an element.
    pub(crate) fn element_bytes(&self) -> u64 {
        element_bytes(&self.dtype)
    }
}

/// Element types say how many bits they have; a truth value takes a byte.
pub(crate) fn element_bytes(dtype: &str) -> u64 {
    dtype.trim_start_matches(char::is_alphabetic).parse().map_or(1, |bits: u64| bits / 8)
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
        varint::read_byte(&mut self.0)
    }

    fn number(&mut self) -> Option<u64> {
        varint::read(&mut self.0)
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
        let (rank, dtype) = (self.number()?, self.dtype()?);
        let mut numbers = || (0..rank).map(|_| self.number()).collect::<Option<_>>();
        Some(TensorInput { shape: numbers()?, strides: numbers()?, dtype, identity: None })
    }

    fn dtype(&mut self) -> Option<String> {
        let (&word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        if word == LONG {
            return self.text();
        }
        let letters = word.iter().take_while(|&&letter| letter != 0).count();
        Some(String::from_utf8_lossy(&word[..letters]).into_owned())
    }

    /// A tensor with its tag, and its identity if it has one.
    fn tagged_tensor(&mut self) -> Option<TensorInput> {
        let mut identity = None;
        if self.tag()? as u8 == Tag::Identity as u8 {
            let mut part = || usize::try_from(self.number()?).ok();
            let (tensor, storage, offset, backend) = (part()?, part()?, part()?, part()?);
            let (version, index) = (self.number()?, self.byte()?);
            let device = Device { key: Key::backends().nth(backend)?, index };
            identity = Some(Identity { tensor, storage, offset, version, device });
            self.tag()?;
        }
        Some(TensorInput { identity, ..self.tensor()? })
    }

    fn tag(&mut self) -> Option<Tag> {
        Tag::ALL.get(usize::from(self.byte()?)).copied()
    }

    /// What processes exchanged in the call; to be asked when there are no more arguments.
    pub(crate) fn communication(&mut self) -> Option<Communication> {
        if self.tag()? as u8 != Tag::Communication as u8 {
            return None;
        }
        let (collective, dtype, group) = (self.text()?, self.text()?, self.text()?);
        let (elements_in, elements_out) = (self.number()?, self.number()?);
        let (rank, sequence) = (u32::try_from(self.number()?).ok()?, self.number()?);
        let mut peer = || Some(self.number()?.checked_sub(1).and_then(|rank| u32::try_from(rank).ok()));
        let (source, target) = (peer()?, peer()?);
        let ranks = self.many(|list| u32::try_from(list.number()?).ok())?;
        Some(Communication {
            collective,
            elements_in,
            elements_out,
            dtype,
            group,
            ranks,
            rank,
            source,
            target,
            sequence,
        })
    }

    /// The next tensor that the call owns; to be asked when there are no more arguments.
    pub(crate) fn owned(&mut self) -> Option<(Role, TensorInput)> {
        if self.tag()? as u8 != Tag::Owned as u8 {
            return None;
        }
        let role = match self.byte()? {
            0 => Role::Parameter,
            1 => Role::Gradient,
            _ => Role::State,
        };
        Some((role, self.tagged_tensor()?))
    }

    fn input(&mut self) -> Option<Input> {
        let tag = *Tag::ALL.get(usize::from(*self.0.first()?))?;
        match tag {
            Tag::Owned | Tag::Communication => return None,
            Tag::Tensor | Tag::Identity => return self.tagged_tensor().map(Input::Tensor),
            _ => self.byte()?,
        };
        Some(match tag {
            Tag::Tensors => Input::Tensors(self.many(Self::tagged_tensor)?),
            Tag::Int => Input::Int(unzigzag(self.number()?)),
            Tag::Float => Input::Float(f64::from_bits(self.word()?)),
            Tag::Bool => Input::Bool(self.number()? != 0),
            Tag::Ints => Input::Ints(self.many(|list| list.number().map(unzigzag))?),
            Tag::Floats => Input::Floats(self.many(|list| list.word().map(f64::from_bits))?),
            Tag::Bools => Input::Bools(self.many(|list| Some(list.byte()? != 0))?),
            Tag::Text => Input::Text(self.text()?),
            Tag::None | Tag::Tensor | Tag::Identity | Tag::Owned | Tag::Communication => Input::None,
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
    fn what_processes_exchange_comes_back_after_the_arguments() {
        let given = observe::Communication {
            collective: "send",
            elements_in: 300,
            elements_out: 0,
            dtype: "bf16",
            group: "world",
            ranks: &[0, 1, 200],
            rank: 1,
            source: None,
            target: Some(0),
            sequence: 7,
        };
        let mut arena = [0; 128];
        let mut packer = Packer::new(&mut arena);
        packer.argument(Argument::Int(3));
        packer.communication(&given);
        let mut unpacker = Unpacker(&arena);
        assert_eq!(unpacker.by_ref().collect::<Vec<_>>(), [Input::Int(3)]);
        let back = unpacker.communication().unwrap();
        assert_eq!((&*back.collective, &*back.dtype, &*back.group), ("send", "bf16", "world"));
        assert_eq!((back.elements_in, back.elements_out, back.sequence), (300, 0, 7));
        assert_eq!((back.rank, back.source, back.target), (1, None, Some(0)));
        assert_eq!(back.ranks, [0, 1, 200]);
    }

    #[test]
    fn every_kind_of_argument_comes_back() {
        let tensor = TensorArgument { shape: &[2, 300], strides: &[300, 1], dtype: "f32", source: None };
        let mut arena = [0; 512];
        let mut packer = Packer::new(&mut arena);
        packer.record(1 << 40, 7, "out", |packer| {
            let mut visit = |argument: Argument<'_>| packer.argument(argument);
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
        let written = packer.written();
        let bytes = &arena[..written];
        assert_eq!(u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
        let mut unpacker = Unpacker(&bytes[4..]);
        let head = Head { flops: 1 << 40, stack: 7, overload: "out".to_owned() };
        assert_eq!(unpacker.head(), Some(head));
        let back = TensorInput {
            shape: vec![2, 300],
            strides: vec![300, 1],
            dtype: "f32".to_owned(),
            identity: None,
        };
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

    #[test]
    fn tensors_of_all_sizes_come_back_also_where_room_ends() {
        let shapes: [&[usize]; 6] =
            [&[], &[127, 128], &[16383, 1, 1, 1], &[16384], &[1 << 40, 0], &[2, 3, 4, 5, 6]];
        for shape in shapes {
            let tensor = TensorArgument { shape, strides: shape, dtype: "bf16", source: None };
            let mut counted = Packer::new(&mut []);
            counted.argument(Argument::Tensor(tensor));
            // Exactly enough, and more.
            for room in [counted.written(), 512] {
                let mut arena = vec![0; room];
                let mut packer = Packer::new(&mut arena);
                packer.argument(Argument::Tensor(tensor));
                let written = packer.written();
                assert_eq!(written, counted.at);
                let sizes: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
                let back = TensorInput {
                    shape: sizes.clone(),
                    strides: sizes,
                    dtype: "bf16".to_owned(),
                    identity: None,
                };
                assert_eq!(Unpacker(&arena[..written]).next(), Some(Input::Tensor(back)));
            }
        }
    }

    #[test]
    fn identities_and_what_a_call_owns_come_back() {
        struct Known(Identity);
        impl cresset_dispatch::observe::Identified for Known {
            fn identity(&self) -> Option<Identity> {
                Some(self.0)
            }
        }
        let known =
            Known(Identity { tensor: 1 << 40, storage: 4096, offset: 3, version: 300, device: Device::CPU });
        let number = TensorArgument { shape: &[], strides: &[], dtype: "float8_e4m3", source: None };
        let tensor = TensorArgument { shape: &[2], strides: &[1], dtype: "f32", source: Some(&known) };
        let mut arena = [0; 512];
        let mut packer = Packer::new(&mut arena);
        packer.identify(true);
        packer.argument(Argument::Tensor(tensor));
        packer.argument(Argument::Tensors(&[number, tensor]));
        packer.argument(Argument::Int(5));
        packer.owned(Role::State, &tensor);
        let written = packer.written();
        let bytes = &arena[..written];
        let input = |shape: &[u64], strides: &[u64], dtype: &str, identity| TensorInput {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            dtype: dtype.to_owned(),
            identity,
        };
        let back = input(&[2], &[1], "f32", Some(known.0));
        let mut unpacker = Unpacker(bytes);
        let arguments: Vec<Input> = unpacker.by_ref().collect();
        let list = Input::Tensors(vec![input(&[], &[], "float8_e4m3", None), back.clone()]);
        assert_eq!(arguments, [Input::Tensor(back.clone()), list, Input::Int(5)]);
        assert_eq!(unpacker.owned(), Some((Role::State, back)));
        assert_eq!(unpacker.owned(), None);
    }
}
