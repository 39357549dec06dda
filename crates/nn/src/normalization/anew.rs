//! Running statistics taken anew, for weights that were not learned but averaged.

use super::{BatchNorm1d, BatchNorm2d, BatchNorm3d};
use crate::{Buffer, Forward, Tensors, Training, inside};
use cresset_tensor::{Result, no_grad};
use std::any::Any;
use std::cell::Cell;

thread_local! {
    /// Whether all batches weigh the same now, whatever the momentum of a layer is.
    static ANEW: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn weigh_the_same() -> bool {
    ANEW.get()
}

/// Takes the running statistics of all batch norms in `model` anew, as the mean over `batches`. Averages of
/// weights need it: statistics of the weights that were averaged do not fit them.
///
/// ```
/// use cresset_nn::{BatchNorm1d, Module, Tensor, update_bn};
///
/// let norm = BatchNorm1d::new(1)?;
/// update_bn(&norm, [Tensor::new([[1.0f32], [3.0]])?, Tensor::new([[3.0f32], [5.0]])?])?;
/// assert_eq!(norm.running_mean.as_ref().unwrap().tensor().to_vec::<f32>()?, [3.0]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
///
/// # Errors
/// If a batch does not fit the model. Modules train or not as before.
pub fn update_bn<I: Tensors>(model: &impl Forward<I>, batches: impl IntoIterator<Item = I>) -> Result<()> {
    let _guard = no_grad();
    let mut found = false;
    model.apply(&mut |module| {
        let module = module as &dyn Any;
        macro_rules! statistics {
            ($($norm:ident)*) => {
                [$(module.downcast_ref::<$norm>().map(|norm| {
                    [&norm.running_mean, &norm.running_var, &norm.num_batches_tracked]
                }),)*]
            };
        }
        let kept = statistics!(BatchNorm1d BatchNorm2d BatchNorm3d);
        for [mean, variance, count] in kept.into_iter().flatten() {
            found = true;
            for (buffer, start) in [(mean, 0.0), (variance, 1.0), (count, 0.0)] {
                buffer.as_ref().map(Buffer::tensor).map_or(Ok(()), |tensor| tensor.fill_(start))?;
            }
        }
        Ok(())
    })?;
    if !found {
        return Ok(());
    }
    let mut flags = Vec::new();
    inside::walk(model.as_module(), "", &mut |_, members| flags.extend(members.flags.iter().copied()));
    let _counting = Counting::begin(&flags);
    batches.into_iter().try_for_each(|batch| model.call(batch.lend()).map(drop))
}

/// While it lives, modules train and all batches weigh the same.
struct Counting<'a>(Vec<(&'a Training, bool)>);

impl<'a> Counting<'a> {
    fn begin(flags: &[&'a Training]) -> Counting<'a> {
        ANEW.set(true);
        let before = flags.iter().map(|&flag| (flag, flag.is_on())).collect();
        flags.iter().for_each(|flag| flag.set(true));
        Counting(before)
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|(flag, was_on)| flag.set(*was_on));
        ANEW.set(false);
    }
}
