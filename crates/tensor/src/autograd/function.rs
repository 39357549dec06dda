//! Functions that bring their own derivative, without being operators.

use super::mode::{check_savable, without_grad};
use super::node::{Backward, Derivative, Derive, Grads, Saves};
use super::record::{Recording, attach};
use super::saved::{Kept, Saved};
use super::view::How;
use crate::op::{Given, Inputs};
use crate::{Cause, Error, Key, Result, Tensor, composite};

/// A function of tensors with a derivative of its own.
///
/// Inside [`forward`](Function::forward) nothing is recorded: what it calls needs no derivative,
/// and the whole is one node of the graph. An [`Op`](crate::Op) can do more, such as run on other
/// devices and infer shapes; this takes less.
///
/// ```
/// use cresset_tensor::autograd::{Context, Function};
/// use cresset_tensor::{Backward, Grads, Result, Tensor, grads};
///
/// /// The larger of two numbers, and where it was found.
/// struct Larger;
///
/// impl Function for Larger {
///     const NAME: &'static str = "Larger";
///     const BACKWARD: &'static str = "LargerBackward";
///
///     fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
///         let first = inputs[0].gt(inputs[1])?;
///         let larger = inputs[0].where_(&first, inputs[1])?;
///         ctx.save_for_backward(&[&first]);
///         ctx.mark_non_differentiable(&[&first]);
///         Ok(vec![larger, first])
///     }
///
///     fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
///         let (grad, first) = (ctx.grad(), ctx.saved(0));
///         let zero = grad.zeros_like()?;
///         grads!(ctx; grad.where_(first, &zero)?, zero.where_(first, grad)?)
///     }
/// }
///
/// let a = Tensor::new([1.0f32, 5.0])?.with_grad()?;
/// let b = Tensor::new([3.0f32, 4.0])?.with_grad()?;
/// let outputs = Larger.apply(&[&a, &b])?;
/// assert_eq!(outputs[0].grad_fn(), Some("LargerBackward"));
/// outputs[0].sum()?.backward()?;
/// assert_eq!(a.grad().unwrap().to_vec::<f32>()?, [0.0, 1.0]);
/// assert_eq!(b.grad().unwrap().to_vec::<f32>()?, [1.0, 0.0]);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub trait Function: Send + Sync + Sized + 'static {
    /// What a call is named in profiles and errors.
    const NAME: &'static str;
    /// What its node in the backward graph is called.
    const BACKWARD: &'static str;

    /// Computes the outputs and keeps in `ctx` what the derivative will need.
    fn forward(&self, ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// A gradient per input, given those of the outputs: [`Backward::grad_of`] is zeros for
    /// outputs that nothing was computed from. Written with tensor operators, it has a
    /// derivative itself.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads>;

    /// Calls the function.
    ///
    /// # Errors
    /// What [`forward`](Function::forward) says; and if it changed an input in place.
    fn apply(self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let _span = composite(Self::NAME, inputs, |_| {});
        let recorded = inputs.keys().here().contains(Key::AUTOGRAD);
        let needs = inputs.iter().map(|input| recorded && input.requires_grad()).collect();
        let mut ctx = Context { needs, saved: Vec::new(), constant: Vec::new() };
        if !recorded {
            return self.forward(&mut ctx, inputs);
        }
        let mut recording = Recording::new(Self::NAME, Self::BACKWARD, Saves::Nothing);
        recording.node().own = true;
        inputs.each(|given| recording.input(given));
        recording.check()?;
        let versions: Vec<u64> = inputs.iter().map(|input| input.version()).collect();
        let outputs = without_grad(|| self.forward(&mut ctx, inputs))?;
        check_unchanged(Self::NAME, inputs, &versions)?;
        let differentiable = ctx.fill(Self::NAME, &mut recording, inputs, &outputs)?;
        let node = recording.finish(Derivative::of(OfFunction(self)));
        let outputs = outputs.into_iter().enumerate().zip(differentiable);
        let place = |((i, output), differentiable)| match differentiable {
            true => attach(output, &node, i, How::Opaque),
            false => output,
        };
        Ok(outputs.map(place).collect())
    }
}

/// What a node keeps of a function.
struct OfFunction<F>(F);

impl<F: Function> Derive for OfFunction<F> {
    fn derive(&self, ctx: &Backward<'_>) -> Result<Grads> {
        self.0.backward(ctx)
    }
}

/// What a [`Function`] tells about one of its calls.
pub struct Context {
    needs: Vec<bool>,
    saved: Vec<Tensor>,
    constant: Vec<Tensor>,
}

impl Context {
    /// Keeps tensors for the derivative, in addition to those kept before: inputs, outputs, or
    /// anything computed on the way, which counts as constant.
    pub fn save_for_backward(&mut self, tensors: &[&Tensor]) {
        self.saved.extend(tensors.iter().map(|&tensor| tensor.clone()));
    }

    /// Says that these outputs have no gradient. Outputs that are no floats never have one.
    pub fn mark_non_differentiable(&mut self, outputs: &[&Tensor]) {
        self.constant.extend(outputs.iter().map(|&tensor| tensor.clone()));
    }

    /// Whether anyone wants the gradient of input `i`.
    pub fn needs_input_grad(&self, i: usize) -> bool {
        self.needs.get(i).copied().unwrap_or(false)
    }

    /// Moves what was kept into the recording; says which outputs have a gradient.
    fn fill(
        self,
        op: &'static str,
        recording: &mut Recording,
        inputs: &[&Tensor],
        outputs: &[Tensor],
    ) -> Result<Vec<bool>> {
        let among = |list: &[Tensor], tensor: &Tensor| list.iter().position(|other| other.same_as(tensor));
        let differentiable: Vec<bool> =
            outputs.iter().map(|out| among(&self.constant, out).is_none()).collect();
        for tensor in &self.saved {
            let is_input = inputs.iter().any(|input| input.same_as(tensor));
            let kept = match among(outputs, tensor).filter(|_| !is_input) {
                Some(i) => Kept::tensor(Saved::output(tensor, differentiable[i].then_some(i))),
                None => {
                    check_savable(op, tensor)?;
                    Kept::input(Given::Tensor(tensor))
                }
            };
            recording.keep(kept);
        }
        outputs.iter().for_each(|output| recording.describe(output));
        Ok(differentiable)
    }
}

/// Refuses inputs that were changed: their history would not tell.
fn check_unchanged(op: &'static str, inputs: &[&Tensor], versions: &[u64]) -> Result<()> {
    let changed = inputs.iter().zip(versions).position(|(input, version)| input.version() != *version);
    let Some(i) = changed else { return Ok(()) };
    let text = format_args!("forward() changed input {i} in place, which is not recorded; change a copy");
    Err(Error::new(Cause::Graph, op, text))
}
