//! What every module can do.

use crate::call::class;
use crate::{Buffer, Forward, HookHandle, Hooks, Members, Parameter, Tensors};
use crate::{inside, state};
use cresset_tensor::{Cause, Error, Result, Tensor, To};
use std::any::Any;
use std::sync::Arc;

/// A layer, or something made of layers. Mostly [derived](derive@crate::Module); what it computes
/// is said by [`Forward`](crate::Forward).
pub trait Module: AsModule + Any + Send + Sync {
    /// Names what this module owns. Written by `#[derive(Module)]`.
    fn members<'a>(&'a self, members: &mut Members<'a>);

    /// Where functions can be hung on the calls of this module, if it has a field for them.
    fn hooks(&self) -> Option<&Hooks> {
        None
    }

    /// The name of the class, e.g. `Linear`.
    fn class(&self) -> &'static str {
        class(std::any::type_name::<Self>())
    }

    /// The module that this one only wraps, as a box does.
    #[doc(hidden)]
    fn inner(&self) -> Option<&dyn Module> {
        None
    }

    /// All parameters with their full names, e.g. `0.weight`: those of a module before those of
    /// the modules in it, and one that is shared by several under its first name only.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        inside::named_parameters(self.as_module())
    }

    /// All parameters, in the order of their names.
    fn parameters(&self) -> Vec<Tensor> {
        inside::parameters(self.as_module())
    }

    /// The parameters of this module itself, without those of the modules in it.
    fn own_parameters(&self) -> Vec<Tensor> {
        inside::own_parameters(self.as_module())
    }

    /// All buffers with their full names, saved or not.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        inside::named_buffers(self.as_module())
    }

    /// All modules with their full names, this one first, with an empty name.
    fn named_modules(&self) -> Vec<(String, &dyn Module)> {
        inside::named_modules(self.as_module())
    }

    /// The modules that this one owns directly.
    fn named_children(&self) -> Vec<(String, &dyn Module)> {
        Members::of(self.as_module()).modules
    }

    /// Shows every module to `visit`, inner ones first, this one last.
    ///
    /// ```
    /// use cresset_nn::{Linear, Module, Relu, Sequential};
    /// use std::any::Any;
    ///
    /// let model = Sequential::new().push(Linear::new(4, 8)?).push(Relu).push(Linear::new(8, 2)?);
    /// model.apply(&mut |module| {
    ///     if let Some(linear) = (module as &dyn Any).downcast_ref::<Linear>() {
    ///         cresset_nn::init::xavier_uniform_(&linear.weight.tensor(), 1.0)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error that `visit` gives.
    fn apply(&self, visit: &mut dyn FnMut(&dyn Module) -> Result<()>) -> Result<()> {
        inside::apply(self.as_module(), visit)
    }

    /// How many numbers the parameters are.
    fn num_parameters(&self) -> usize {
        inside::parameters(self.as_module()).iter().map(Tensor::numel).sum()
    }

    /// How many of them are learned: those of parameters that require grad.
    fn num_trainable_parameters(&self) -> usize {
        let parameters = inside::parameters(self.as_module());
        parameters.iter().filter(|parameter| parameter.requires_grad()).map(Tensor::numel).sum()
    }

    /// Says for all parameters whether they are learned.
    ///
    /// # Errors
    /// Never for parameters that were made as such.
    fn requires_grad_(&self, requires: bool) -> Result<()> {
        let parameters = inside::parameters(self.as_module());
        parameters.iter().try_for_each(|parameter| parameter.set_requires_grad(requires))
    }

    /// Forgets all gradients.
    fn zero_grad(&self) {
        inside::parameters(self.as_module()).iter().for_each(|parameter| parameter.clear_grad());
    }

    /// Makes this module and all in it behave as while they are trained.
    fn train(&self) {
        self.set_training(true);
    }

    /// Makes this module and all in it behave as they do in use: dropout passes all, and batch
    /// norms take the means they have.
    fn eval(&self) {
        self.set_training(false);
    }

    /// [`train`](Module::train) or [`eval`](Module::eval).
    fn set_training(&self, training: bool) {
        inside::set_training(self.as_module(), training);
    }

    /// Moves all parameters and buffers to a device, or those that are floats to an element type,
    /// or both; with their gradients. Make optimizers afterwards.
    ///
    /// # Errors
    /// If there is no such device or not enough memory, or for an element type that is no float.
    /// The module is as before then.
    fn to(&self, to: impl Into<To>) -> Result<()>
    where
        Self: Sized,
    {
        move_all(self, to.into())
    }

    /// All that is worth saving: parameters and persistent buffers, by full name.
    fn state_dict(&self) -> Vec<(String, Tensor)> {
        state::entries(self.as_module())
    }

    /// Overwrites the parameters and persistent buffers with `state`, tensors by full name.
    ///
    /// # Errors
    /// One error that lists all names that are missing or unknown and all shapes that differ;
    /// nothing is changed then.
    fn load_state_dict(&self, state: &[(String, Tensor)]) -> Result<()> {
        state::load(self.as_module(), state, true).map(drop)
    }

    /// As [`load_state_dict`](Module::load_state_dict), but names that are missing or unknown are
    /// no error: they are given back.
    ///
    /// # Errors
    /// One error that lists all shapes that differ; nothing is changed then.
    fn load_state_dict_partly(&self, state: &[(String, Tensor)]) -> Result<Incompatible> {
        state::load(self.as_module(), state, false)
    }

    /// Calls `hook` before each call of this module, with the tensors it is given; it may put
    /// others in their place.
    ///
    /// # Errors
    /// If the module has no [`hooks`](Module::hooks).
    fn register_forward_pre_hook(
        &self,
        hook: impl Fn(&mut [&mut Tensor]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle>
    where
        Self: Sized,
    {
        Ok(hooks_of(self)?.register_forward_pre_hook(hook))
    }

    /// Calls `hook` after each call of this module, with the tensors it was given and those it
    /// gave; it may put others in the place of the latter.
    ///
    /// # Errors
    /// If the module has no [`hooks`](Module::hooks).
    fn register_forward_hook(
        &self,
        hook: impl Fn(&[Tensor], &mut [&mut Tensor]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle>
    where
        Self: Sized,
    {
        Ok(hooks_of(self)?.register_forward_hook(hook))
    }

    /// Calls `hook` in each backward pass, with the gradients of what the module gave, before
    /// they go into it; it may put others in their place.
    ///
    /// # Errors
    /// If the module has no [`hooks`](Module::hooks).
    fn register_full_backward_pre_hook(
        &self,
        hook: impl Fn(&mut [Option<Tensor>]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle>
    where
        Self: Sized,
    {
        Ok(hooks_of(self)?.register_full_backward_pre_hook(hook))
    }

    /// Calls `hook` in each backward pass, with the gradients of what the module was given, as
    /// they come out of it, and of what it gave; it may put others in the place of the former.
    ///
    /// # Errors
    /// If the module has no [`hooks`](Module::hooks).
    fn register_full_backward_hook(
        &self,
        hook: impl Fn(&mut [Option<Tensor>], &[Option<Tensor>]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle>
    where
        Self: Sized,
    {
        Ok(hooks_of(self)?.register_full_backward_hook(hook))
    }
}

/// Names of a state that did not meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incompatible {
    /// Names that the module has and the state has not.
    pub missing: Vec<String>,
    /// Names that the state has and the module has not.
    pub unexpected: Vec<String>,
}

/// Any module as a [`Module`] whose type is not known.
pub trait AsModule {
    /// This module, whatever its type is.
    fn as_module(&self) -> &dyn Module;
}

impl<M: Module> AsModule for M {
    fn as_module(&self) -> &dyn Module {
        self
    }
}

macro_rules! wrappers {
    ($($wrapper:ident)*) => {$(
        impl<M: Module + ?Sized> Module for $wrapper<M> {
            fn members<'a>(&'a self, members: &mut Members<'a>) {
                (**self).members(members);
            }

            fn hooks(&self) -> Option<&Hooks> {
                (**self).hooks()
            }

            fn class(&self) -> &'static str {
                (**self).class()
            }

            fn inner(&self) -> Option<&dyn Module> {
                Some((**self).as_module())
            }
        }

        impl<I: Tensors, M: Forward<I> + ?Sized> Forward<I> for $wrapper<M> {
            type Output = M::Output;

            fn forward(&self, input: I::Ref<'_>) -> Result<M::Output> {
                (**self).forward(input)
            }

            fn call(&self, input: I::Ref<'_>) -> Result<M::Output> {
                (**self).call(input)
            }
        }
    )*};
}

wrappers! { Box Arc }

fn hooks_of(module: &dyn Module) -> Result<&Hooks> {
    module.hooks().ok_or_else(|| {
        let text = format_args!(
            "{} has no place for hooks: give it a field of type Hooks, or wrap it in Hooked",
            module.class()
        );
        Error::new(Cause::Argument, "register_hook", text)
    })
}

/// Moves everything once all of it is there.
fn move_all(module: &dyn Module, to: To) -> Result<()> {
    if let Some(dtype) = to.dtype.filter(|dtype| !dtype.is_float()) {
        let text = format_args!("modules are of floats, not of {dtype}");
        return Err(Error::new(Cause::DType, "to", text));
    }
    let mut parameters: Vec<(&Parameter, Tensor)> = Vec::new();
    let mut buffers: Vec<(&Buffer, Tensor)> = Vec::new();
    let mut outcome = Ok(());
    inside::walk(module, "", &mut |_, members| {
        for (_, parameter) in &members.parameters {
            let moved = parameter.moved(to).map(|moved| parameters.push((parameter, moved)));
            outcome = std::mem::replace(&mut outcome, Ok(())).and(moved);
        }
        for (_, buffer) in &members.buffers {
            let moved = buffer.moved(to).map(|moved| buffers.push((buffer, moved)));
            outcome = std::mem::replace(&mut outcome, Ok(())).and(moved);
        }
    });
    outcome?;
    parameters.into_iter().for_each(|(parameter, moved)| parameter.put(moved));
    buffers.into_iter().for_each(|(buffer, moved)| buffer.replace(moved));
    Ok(())
}
