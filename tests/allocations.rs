//! What a call allocates: its output, and nothing else on the way there.

use cresset::dispatch::observe::{self, Call, Name};
use cresset::tensor::{Forward, Op, Result, Tensor};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static LARGE: Cell<usize> = const { Cell::new(0) };
}

/// What memory of elements has at least, and handles and lists have not.
const ELEMENTS: usize = 16 << 10;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        if layout.size() >= ELEMENTS {
            let _ = LARGE.try_with(|count| count.set(count.get() + 1));
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many allocations `run` makes on this thread.
fn allocations(run: impl FnOnce()) -> usize {
    let before = COUNT.get();
    run();
    COUNT.get() - before
}

/// An operator that does nothing, so that only the path to it is left.
#[derive(Clone)]
struct Identity;

impl Op for Identity {
    const NAME: &'static str = "test::identity";
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;
}

impl Forward for Identity {
    fn forward(&self, [x, _]: [&Tensor; 2]) -> Result<Tensor> {
        Ok(x.clone())
    }
}

#[test]
fn the_path_to_a_kernel_allocates_nothing() {
    let x = Tensor::new([1.0f32, 2.0]).unwrap();
    let tracked = Tensor::new([1.0f32, 2.0]).unwrap().with_grad().unwrap();
    assert_eq!(allocations(|| drop(Identity.call([&x, &x]))), 0);
    // Without a derivative there is nothing to record either.
    assert_eq!(allocations(|| drop(Identity.call([&tracked, &x]))), 0);
}

#[test]
fn a_small_sum_takes_the_memory_that_the_last_one_gave_back() {
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]]).unwrap();
    // The first result of each takes its handle and its storage, which holds a few bytes itself.
    drop((x.add(&x), x.mul(2.0)));
    assert_eq!(allocations(|| drop(x.add(&x))), 0);
    assert_eq!(allocations(|| drop(x.mul(2.0))), 0);
}

#[test]
fn a_span_that_nobody_watches_allocates_nothing() {
    struct Named;
    impl Call for Named {
        fn name(&self) -> Name<'_> {
            Name::Static("test::span")
        }
    }
    assert_eq!(allocations(|| drop(observe::span(&Named))), 0);
}

#[test]
fn a_fused_step_allocates_nothing_after_its_first() {
    use cresset::optim::*;
    fn check<A: Algorithm>(options: A) {
        // More than are locked at a time, and some that threads share.
        let sizes = (0..40).map(|i| if i % 9 == 0 { 20_000 } else { i + 1 });
        let parameter = |size: usize| {
            let parameter = Tensor::ones([size], ()).unwrap().with_grad().unwrap();
            parameter.set_grad(Tensor::ones([size], ()).unwrap()).unwrap();
            parameter
        };
        let mut optimizer = Descent::new(sizes.map(parameter).collect(), options).unwrap();
        optimizer.step().unwrap();
        let count = allocations(|| optimizer.step().unwrap());
        assert_eq!(count, 0, "{}", optimizer.name());
    }
    check(SgdOptions { momentum: 0.9, ..Default::default() });
    check(AdamOptions { amsgrad: true, ..Default::default() });
    check(AdamWOptions::default());
    check(NadamOptions::default());
    check(RadamOptions::default());
    check(AdamaxOptions::default());
    check(AdagradOptions::default());
    check(AdadeltaOptions::default());
    check(RmspropOptions { momentum: 0.9, centered: true, ..Default::default() });
    check(RpropOptions::default());
    check(AsgdOptions::default());
}

/// All forms other than the fused one have intermediate results, as torch's have. Their memory is used again.
/// Muon is not here: the crate that multiplies its matrices takes memory to pack them in each time.
#[test]
fn no_step_in_any_form_asks_for_memory_of_elements_after_its_first_steps() {
    use cresset::optim::*;
    const ALL: [&str; 3] = ["fused", "foreach", "single"];
    fn check<A: Algorithm + Default>(forms: &[&str]) {
        for form in forms {
            let mut options = A::default();
            options.set("implementation", &Value::Text(form.to_string())).unwrap();
            let parameter = |_| {
                let parameter = Tensor::ones([250, 200], ()).unwrap().with_grad().unwrap();
                parameter.set_grad(Tensor::full([250, 200], 0.5, ()).unwrap()).unwrap();
                parameter
            };
            let mut optimizer = Descent::new((0..3).map(parameter).collect(), options).unwrap();
            (0..2).for_each(|_| optimizer.step().unwrap());
            let mut fresh = || {
                let before = LARGE.get();
                optimizer.step().unwrap();
                LARGE.get() - before
            };
            // Other tests may take what waits, but not in every step.
            assert_eq!((0..10).map(|_| fresh()).min(), Some(0), "{} {form}", optimizer.name());
        }
    }
    check::<SgdOptions>(&ALL);
    check::<AdamOptions>(&ALL);
    check::<AdamWOptions>(&ALL);
    check::<NadamOptions>(&ALL);
    check::<RadamOptions>(&ALL);
    check::<AdamaxOptions>(&ALL);
    check::<AdagradOptions>(&ALL);
    check::<AdadeltaOptions>(&ALL);
    check::<RmspropOptions>(&ALL);
    check::<RpropOptions>(&ALL);
    check::<AsgdOptions>(&ALL);
    check::<AdafactorOptions>(&ALL[1..]);
}

#[test]
fn a_step_of_lbfgs_asks_for_no_memory_of_elements_once_its_history_is_full() {
    use cresset::optim::*;
    let x = Tensor::full([100, 100], 3.0, ()).unwrap().with_grad().unwrap();
    let scale = Tensor::linspace(1.0, 2.0, 10_000, ()).unwrap().reshape([100, 100]).unwrap();
    let options = LbfgsOptions { lr: 0.01, max_iter: 2, history_size: 3, ..Default::default() };
    let mut optimizer = Lbfgs::new(vec![x.clone()], options).unwrap();
    let mut step = || {
        let mut closure = || {
            x.clear_grad();
            let loss = x.mul(&scale)?.pow(4)?.sum()?;
            loss.backward()?;
            Ok(loss)
        };
        let before = LARGE.get();
        optimizer.step_with(&mut closure).unwrap();
        LARGE.get() - before
    };
    for _ in 0..5 {
        step();
    }
    assert_eq!((0..10).map(|_| step()).min(), Some(0));
}
