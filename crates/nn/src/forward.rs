//! Modules compute.

use crate::call::InCall;
use crate::{Module, Tensors, summary};
use cresset_dispatch::observe::{self, Span};
use cresset_tensor::{Result, Tensor};

/// A module that computes something from an `Input`: from one tensor unless said otherwise.
///
/// As in torch, one writes [`forward`](Forward::forward) and runs [`call`](Forward::call).
///
/// ```
/// use cresset_nn::{Forward, Linear, Module, Result, Tensor};
///
/// /// Scores of two inputs, and how sure they are.
/// #[derive(Module)]
/// struct Judge {
///     left: Linear,
///     right: Linear,
/// }
///
/// impl Forward<(Tensor, Tensor)> for Judge {
///     type Output = (Tensor, Tensor);
///
///     fn forward(&self, (a, b): (&Tensor, &Tensor)) -> Result<(Tensor, Tensor)> {
///         let scores = self.left.call(a)?.add(&self.right.call(b)?)?;
///         let sure = scores.abs()?.mean()?;
///         Ok((scores, sure))
///     }
/// }
///
/// let judge = Judge { left: Linear::new(3, 2)?, right: Linear::new(4, 2)? };
/// let (scores, sure) = judge.call((&Tensor::ones([5, 3], ())?, &Tensor::ones([5, 4], ())?))?;
/// assert_eq!((scores.shape(), sure.shape()), (&[5, 2][..], &[][..]));
/// # Ok::<(), cresset_nn::Error>(())
/// ```
pub trait Forward<Input: Tensors = Tensor>: Module {
    /// What is computed.
    type Output: Tensors;

    /// Computes the output. Callers use [`call`](Forward::call).
    fn forward(&self, input: Input::Ref<'_>) -> Result<Self::Output>;

    /// Computes the output with all that belongs to it: [hooks](crate::Hooks) run, and profiles
    /// `with_modules` see it as `nn.Module: Linear_0`, with what the module calls inside. Costs two
    /// branches when there are no hooks and nobody watches.
    fn call(&self, input: Input::Ref<'_>) -> Result<Self::Output> {
        called::<Input, _, _>(self, input, |input| self.forward(input))
    }
}

/// Runs `forward` as a call of `module`, for those that can be called in more than one way.
pub(crate) fn called<I: Tensors, M: Module + ?Sized, O: Tensors>(
    module: &M,
    input: I::Ref<'_>,
    forward: impl Fn(I::Ref<'_>) -> Result<O>,
) -> Result<O> {
    let span = observe::span(&InCall(module));
    let mut output = match module.hooks().and_then(|hooks| hooks.lists()) {
        None => forward(input),
        Some(lists) => lists.around(I::own(input), forward),
    };
    if let (Some(_), Ok(output)) = (&span, &mut output) {
        summary::note(output);
    }
    Span::end(span, &output);
    output.map_err(|error| error.in_layer(module.class()))
}

/// A layer of any kind: one tensor in, one tensor out.
pub type Layer = dyn Forward<Output = Tensor>;
