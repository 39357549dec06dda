//! What is to happen when a backward pass has ended.

use crate::{Cause, Error, Result};
use std::cell::RefCell;

type Ending = Box<dyn FnOnce() -> Result<()>>;

#[derive(Default)]
struct Passes {
    /// How many passes run on this thread, one inside of the other.
    depth: usize,
    endings: Vec<Ending>,
}

thread_local! {
    static PASSES: RefCell<Passes> = RefCell::default();
}

/// Calls `ending` when the backward pass that runs on this thread has ended, the outermost one if there are several:
/// to be asked for by a hook. If the pass fails, it is dropped.
///
/// ```
/// use cresset_tensor::Tensor;
/// use cresset_tensor::autograd::at_end_of_backward;
///
/// let x = Tensor::ones([2], ())?.with_grad()?;
/// x.register_hook(|_| {
///     at_end_of_backward(|| Ok(println!("all gradients are there")))?;
///     Ok(None)
/// })?;
/// x.sum()?.backward()?;
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If no pass runs on this thread.
pub fn at_end_of_backward(ending: impl FnOnce() -> Result<()> + 'static) -> Result<()> {
    PASSES.with_borrow_mut(|passes| {
        if passes.depth == 0 {
            let text = "no backward pass runs on this thread; expected to be called by a hook";
            return Err(Error::new(Cause::Graph, "at_end_of_backward", text));
        }
        passes.endings.push(Box::new(ending));
        Ok(())
    })
}

/// A pass that runs.
pub(super) struct Passing;

pub(super) fn begin() -> Passing {
    PASSES.with_borrow_mut(|passes| passes.depth += 1);
    Passing
}

impl Passing {
    /// The pass has ended well.
    pub(super) fn end(self) -> Result<()> {
        let endings = PASSES.with_borrow_mut(|passes| match passes.depth {
            1 => std::mem::take(&mut passes.endings),
            _ => Vec::new(),
        });
        drop(self);
        endings.into_iter().try_for_each(|ending| ending())
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let dropped = PASSES.with_borrow_mut(|passes| {
            passes.depth -= 1;
            if passes.depth == 0 { std::mem::take(&mut passes.endings) } else { Vec::new() }
        });
        // Outside of the borrow: what they own may do anything.
        drop(dropped);
    }
}
