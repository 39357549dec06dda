//! Observers see every call, from outside.
//!
//! A [`Call`] is asked, not told: who wants no shapes pays for none. With no observer
//! active, a call pays one relaxed load and one branch.

use crate::Device;
use crate::slots::{SLOTS, Slots};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// What a call is, for those who treat kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// An operator.
    Operator,
    /// The engine at work on one node of the backward graph; named like the node.
    Evaluate,
    /// The derivative of a node, inside [`Kind::Evaluate`].
    Backward,
    /// A range that a program or an optimizer named.
    Scope,
    /// A module's forward call.
    Module,
    /// Something that several processes do together; it can be asked for its [`Communication`].
    Communication,
}

/// What processes exchange in a call, and which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Communication<'a> {
    /// What is done, by torch's name, e.g. `allreduce`.
    pub collective: &'a str,
    /// Elements that this process gives.
    pub elements_in: u64,
    /// Elements that it gets.
    pub elements_out: u64,
    /// Short name of their type, e.g. `f32`.
    pub dtype: &'a str,
    /// The name of the group.
    pub group: &'a str,
    /// All ranks of the group.
    pub ranks: &'a [u32],
    /// Which of them this process is.
    pub rank: u32,
    /// Of a message between two, who sends it.
    pub source: Option<u32>,
    /// Of a message between two, who receives it.
    pub target: Option<u32>,
    /// How many calls the group made before.
    pub sequence: u64,
}

/// A call's name: known when the program was compiled, or made up while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// Kept by reference.
    Static(&'static str),
    /// Must be copied to be kept.
    Borrowed(&'a str),
}

impl<'a> Name<'a> {
    /// The name as text.
    pub fn as_str(self) -> &'a str {
        match self {
            Name::Static(name) => name,
            Name::Borrowed(name) => name,
        }
    }
}

/// Which tensor an argument is, and which memory it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The tensor: no other has the same number while it lives.
    pub tensor: usize,
    /// Where its memory begins.
    pub storage: usize,
    /// Elements from there to its first.
    pub offset: usize,
    /// How often the memory was changed in place before the call.
    pub version: u64,
    /// Where the memory is.
    pub device: Device,
}

/// Something that can be told apart from others of its kind; only who wants to know asks.
pub trait Identified {
    /// Which tensor it is; `None` if it has no memory.
    fn identity(&self) -> Option<Identity>;
}

/// What a tensor is to an optimizer or a module that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// It is learned.
    Parameter,
    /// It is the gradient of a parameter.
    Gradient,
    /// It is kept from step to step.
    State,
}

/// A tensor as observers see it.
#[derive(Clone, Copy)]
pub struct TensorArgument<'a> {
    /// Size of each dimension.
    pub shape: &'a [usize],
    /// Elements from one index to the next, per dimension.
    pub strides: &'a [usize],
    /// Short name of the element type, e.g. `f32`.
    pub dtype: &'static str,
    /// Which tensor it is; `None` for a number that stands for one.
    pub source: Option<&'a dyn Identified>,
}

impl PartialEq for TensorArgument<'_> {
    /// Whether they look the same; they may be different tensors.
    fn eq(&self, other: &Self) -> bool {
        (self.shape, self.strides, self.dtype) == (other.shape, other.strides, other.dtype)
    }
}

impl fmt::Debug for TensorArgument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// One argument of a call, in the order of the operator's schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// A tensor, or a number that stands for one (no dimensions).
    Tensor(TensorArgument<'a>),
    /// A list of tensors.
    Tensors(&'a [TensorArgument<'a>]),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A list of integers.
    Ints(&'a [i64]),
    /// A list of floats.
    Floats(&'a [f64]),
    /// A list of truth values.
    Bools(&'a [bool]),
    /// Text.
    Text(&'a str),
    /// A device.
    Device(Device),
    /// An optional argument that was not given.
    None,
}

/// Links a backward call to the forward call that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// On a forward call, the number of the next node to be recorded; on a backward
    /// call, the number of its node.
    pub number: u64,
    /// On a backward call, the [thread](crate::thread::number) the forward ran on; else 0.
    pub forward_thread: u32,
}

/// What an observer can ask about a call, while it is being entered.
pub trait Call {
    /// The public name, e.g. `aten::add`.
    fn name(&self) -> Name<'_>;
    /// The operator's public signature, e.g. `aten::add.Tensor(Tensor self, …) -> Tensor`; empty if
    /// there is none. Looked up, so only for those who ask for it.
    fn schema(&self) -> &'static str {
        ""
    }
    /// For a module's call, a number that stays the same for all calls of one module; 0 if
    /// there is none.
    fn instance(&self) -> u64 {
        0
    }
    /// What the call is.
    fn kind(&self) -> Kind {
        Kind::Operator
    }
    /// Where its tensors live; `None` if it has none.
    fn device(&self) -> Option<Device> {
        None
    }
    /// Visits the arguments in the order of the schema.
    fn arguments(&self, _visit: &mut dyn FnMut(Argument<'_>)) {}
    /// Visits the tensors that an optimizer or a module owns, which are no arguments.
    fn owned(&self, _visit: &mut dyn FnMut(Role, TensorArgument<'_>)) {}
    /// What processes exchange in it; asked of calls of that [kind](Kind::Communication) only.
    fn communication(&self) -> Option<Communication<'_>> {
        None
    }
    /// Floating-point operations the call performs, its children's not counted.
    fn flops(&self) -> u64 {
        0
    }
    /// The link between forward and backward, where autograd is involved.
    fn sequence(&self) -> Option<Sequence> {
        None
    }
}

/// Watches calls, on the thread that makes them. An observer is a static.
pub trait Observer: Sync {
    /// Call number `id` starts. The token comes back in [`exit`](Observer::exit).
    fn enter(&self, id: u64, call: &dyn Call) -> u64;
    /// The call gives these tensors. Told before its exit, if it does not fail, to observers
    /// that [want results](Slot::want_results).
    fn gave(&self, _token: u64, _results: &[TensorArgument<'_>]) {}
    /// The call returned, or `failed`: with an error, or because it unwound.
    fn exit(&self, token: u64, failed: bool);
}

static OBSERVERS: Slots<dyn Observer> = Slots::new();

/// An observer's place in the channel, used to switch it on and off.
#[derive(Clone, Copy, Debug)]
pub struct Slot(u8);

impl Slot {
    /// Takes a free slot for `observer`; inactive until [`set_active`](Slot::set_active).
    pub fn claim(observer: &'static dyn Observer) -> Option<Slot> {
        OBSERVERS.claim(observer).map(Slot)
    }

    /// Starts or stops the flow of calls to this observer. A call that was entered is
    /// always exited, also when the observer was stopped in between.
    pub fn set_active(self, active: bool) {
        OBSERVERS.set_active(self.0, active);
    }

    /// Whether this observer is told what calls give.
    pub fn want_results(self, wanted: bool) {
        if wanted {
            RESULTS.fetch_or(self.0, Relaxed);
        } else {
            RESULTS.fetch_and(!self.0, Relaxed);
        }
    }
}

/// The slots of observers that want results.
static RESULTS: AtomicU8 = AtomicU8::new(0);

/// Whether anyone watches.
#[inline]
pub fn is_watched() -> bool {
    OBSERVERS.active() != 0
}

/// Tells the active observers that `call` is in flight until the guard drops.
#[inline]
#[must_use = "the call ends when the guard drops"]
pub fn span(call: &dyn Call) -> Option<Span> {
    let active = OBSERVERS.active();
    if active == 0 { None } else { Some(Span::enter(active, call)) }
}

thread_local! {
    /// The innermost call that is watched on this thread.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
    /// How many operators and derivatives are at work on this thread, one inside of the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// How many errors were made on this thread.
    static FAULTS: Cell<u32> = const { Cell::new(0) };
    /// The next free number, and the first one after this thread's block.
    static IDS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The number of the innermost watched call on this thread; 0 if there is none.
#[inline]
pub fn current() -> u64 {
    CURRENT.get()
}

/// How many watched operators and derivatives are at work on this thread, one inside of the other;
/// 0 where the program itself calls. An operator that calls another is not asked what the program
/// would be: which overload, which defaults.
#[inline]
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Until the guard drops, calls on this thread count as the program's own: a hook, or a derivative
/// that the program wrote, is called from within the engine.
#[must_use = "calls count as the program's until the guard drops"]
pub fn as_program() -> Surfaced {
    Surfaced { depth: DEPTH.replace(0), _this_thread: std::marker::PhantomData }
}

/// Guard returned by [`as_program`].
pub struct Surfaced {
    depth: u32,
    _this_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for Surfaced {
    fn drop(&mut self) {
        DEPTH.set(self.depth);
    }
}

/// Notes that an error was made on this thread, for spans that do not see their call's outcome.
pub fn fault() {
    FAULTS.set(FAULTS.get().wrapping_add(1));
}

/// A number above 0 that no other call has. A thread takes them in blocks.
#[inline]
fn next_id() -> u64 {
    let (next, end) = IDS.get();
    if next < end {
        IDS.set((next + 1, end));
        next
    } else {
        first_of_block()
    }
}

#[cold]
fn first_of_block() -> u64 {
    const BLOCK: u64 = 512;
    static BLOCKS: AtomicU64 = AtomicU64::new(1);
    let first = BLOCKS.fetch_add(BLOCK, Relaxed);
    IDS.set((first + 1, first + BLOCK));
    first
}

/// Guard returned by [`span`].
pub struct Span {
    tokens: [u64; SLOTS],
    active: u8,
    failed: bool,
    /// It began while the thread unwound already, in somebody's `Drop`.
    unwinding: bool,
    /// How many errors there were at the start, if one more means that the call failed.
    faults: Option<u32>,
    outer: u64,
    /// How deep it began.
    depth: u32,
    /// A call ends on the thread it began on.
    _this_thread: std::marker::PhantomData<*const ()>,
}

impl Span {
    #[cold]
    #[inline(never)]
    fn enter(active: u8, call: &dyn Call) -> Self {
        let id = next_id();
        let outer = CURRENT.replace(id);
        let mut tokens = [0; SLOTS];
        OBSERVERS.each(active, |i, observer| tokens[i] = observer.enter(id, call));
        let depth = DEPTH.get();
        if matches!(call.kind(), Kind::Operator | Kind::Backward) {
            DEPTH.set(depth + 1);
        }
        Span {
            tokens,
            active,
            failed: false,
            unwinding: std::thread::panicking(),
            faults: None,
            outer,
            depth,
            _this_thread: std::marker::PhantomData,
        }
    }

    /// The span of a call whose outcome nobody shows it: an error that is [made](fault) meanwhile
    /// is taken for its own.
    #[must_use = "the call ends when the guard drops"]
    pub fn failing_on_fault(mut self) -> Span {
        self.faults = Some(FAULTS.get());
        self
    }

    /// Ends a call that gave `outcome`, so that observers hear whether it failed.
    #[inline]
    pub fn end<T, E>(span: Option<Span>, outcome: &Result<T, E>) {
        if let Some(mut span) = span {
            span.failed = outcome.is_err();
        }
    }

    /// Whether anyone wants to know what the call gives.
    #[inline]
    pub fn wants_results(&self) -> bool {
        self.active & RESULTS.load(Relaxed) != 0
    }

    /// Tells what the call gives to those who want to know.
    pub fn gave(&self, results: &[TensorArgument<'_>]) {
        let wanted = self.active & RESULTS.load(Relaxed);
        OBSERVERS.each(wanted, |i, observer| observer.gave(self.tokens[i], results));
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let failed = self.failed
            || self.faults.is_some_and(|before| before != FAULTS.get())
            || std::thread::panicking() && !self.unwinding;
        OBSERVERS.each(self.active, |i, observer| observer.exit(self.tokens[i], failed));
        CURRENT.set(self.outer);
        DEPTH.set(self.depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// One test at a time: each counts on nobody else watching.
    static ALONE: Mutex<()> = Mutex::new(());

    struct Named(&'static str);

    impl Call for Named {
        fn name(&self) -> Name<'_> {
            Name::Static(self.0)
        }
    }

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Observer for Log {
        fn enter(&self, id: u64, call: &dyn Call) -> u64 {
            assert_eq!(current(), id);
            self.0.lock().unwrap().push(format!("> {}", call.name().as_str()));
            id
        }

        fn exit(&self, token: u64, failed: bool) {
            assert_eq!(current(), token);
            self.0.lock().unwrap().push(if failed { "< failed" } else { "<" }.to_owned());
        }
    }

    #[test]
    fn results_are_told_to_those_who_want_them() {
        struct Shapes(Mutex<Vec<Vec<usize>>>);
        impl Observer for Shapes {
            fn enter(&self, _: u64, _: &dyn Call) -> u64 {
                7
            }
            fn gave(&self, token: u64, results: &[TensorArgument<'_>]) {
                assert_eq!(token, 7);
                self.0.lock().unwrap().extend(results.iter().map(|result| result.shape.to_vec()));
            }
            fn exit(&self, _: u64, _: bool) {}
        }
        static SHAPES: Shapes = Shapes(Mutex::new(Vec::new()));
        let _alone = ALONE.lock().unwrap();
        let slot = Slot::claim(&SHAPES).expect("a slot is free");
        slot.set_active(true);
        let result = TensorArgument { shape: &[2, 3], strides: &[3, 1], dtype: "f32", source: None };
        for wanted in [false, true] {
            slot.want_results(wanted);
            let span = span(&Named("op")).expect("someone watches");
            assert_eq!(span.wants_results(), wanted);
            span.gave(&[result]);
        }
        slot.set_active(false);
        slot.want_results(false);
        assert_eq!(*SHAPES.0.lock().unwrap(), [[2, 3]]);
    }

    #[test]
    fn calls_are_seen_while_active_and_always_exited_with_their_outcome() {
        static LOG: Log = Log(Mutex::new(Vec::new()));
        let _alone = ALONE.lock().unwrap();
        let slot = Slot::claim(&LOG).expect("a slot is free");
        assert!(span(&Named("before")).is_none());
        slot.set_active(true);
        let outer = span(&Named("outer"));
        {
            let _inner = span(&Named("inner"));
            slot.set_active(false);
        }
        assert!(span(&Named("after")).is_none());
        drop(outer);
        assert_eq!(current(), 0);
        assert_eq!(std::mem::take(&mut *LOG.0.lock().unwrap()), ["> outer", "> inner", "<", "<"]);

        slot.set_active(true);
        Span::end(span(&Named("good")), &Ok::<_, ()>(()));
        Span::end(span(&Named("bad")), &Err::<(), _>(()));
        drop(span(&Named("calm")).map(Span::failing_on_fault));
        let faulty = span(&Named("faulty")).map(Span::failing_on_fault);
        fault();
        drop(faulty);
        let panic = std::panic::catch_unwind(|| {
            let _span = span(&Named("unwound"));
            panic!("told to")
        });
        slot.set_active(false);
        assert!(panic.is_err());
        let log = LOG.0.lock().unwrap().join(" ");
        assert_eq!(log, "> good < > bad < failed > calm < > faulty < failed > unwound < failed");
    }
}
