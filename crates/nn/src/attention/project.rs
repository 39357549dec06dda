//! From what a module is given to queries, keys and values.

use super::{Attend, MultiheadAttention};
use crate::{Parameter, init};
use cresset_dispatch::observe;
use cresset_tensor::{Result, Tensor};

/// Queries, keys and values, `[steps, batch, embed_dim]` each.
pub(super) struct Projections {
    pub(super) query: Tensor,
    pub(super) key: Tensor,
    pub(super) value: Tensor,
}

impl MultiheadAttention {
    /// With weights of the projections as sizes ask for, started as torch does.
    pub(super) fn with_projections(self) -> Result<Self> {
        let (size, kdim, vdim) = (self.embed_dim, self.kdim, self.vdim);
        if kdim == size && vdim == size {
            let in_proj_weight = Some(matrix(size.saturating_mul(3), size)?);
            return Ok(Self {
                in_proj_weight,
                q_proj_weight: None,
                k_proj_weight: None,
                v_proj_weight: None,
                ..self
            });
        }
        let [q, k, v] = [size, kdim, vdim].map(|inputs| matrix(size, inputs));
        let [q_proj_weight, k_proj_weight, v_proj_weight] = [Some(q?), Some(k?), Some(v?)];
        Ok(Self { in_proj_weight: None, q_proj_weight, k_proj_weight, v_proj_weight, ..self })
    }

    /// Projects what is given, with a product for all of it that is the same tensor.
    pub(super) fn project(&self, input: Attend<'_>) -> Result<Projections> {
        let steps_first = |x: &Tensor| match (x.dim(), self.batch_first) {
            (2, _) => x.unsqueeze(1),
            (_, true) => x.transpose(1, 0),
            _ => Ok(x.clone()),
        };
        // Torch does not know its own any more once a batch is made of each, and a trace shows it.
        let known = input.query.dim() == 3 || !observe::is_watched();
        let (one, two) = (known && input.query.same_as(input.key), known && input.key.same_as(input.value));
        let query = steps_first(input.query)?;
        let key = if one { query.clone() } else { steps_first(input.key)? };
        let value = if two { key.clone() } else { steps_first(input.value)? };
        let bias = self.in_proj_bias.as_ref().map(Parameter::tensor);
        let Some(weight) = self.in_proj_weight.as_ref().map(Parameter::tensor) else {
            return self.project_apart(&query, &key, &value, bias);
        };
        let size = self.embed_dim;
        if one && two {
            let all = apart(&query.linear(&weight, bias.as_ref())?, 3)?;
            return Ok(Projections {
                query: all.select(0, 0)?,
                key: all.select(0, 1)?,
                value: all.select(0, 2)?,
            });
        }
        if two {
            let sizes = [size, 2 * size];
            let [of_query, of_others] = parts(weight.split_with_sizes(sizes, 0)?);
            let biases = bias.map(|bias| bias.split_with_sizes(sizes, 0)).transpose()?;
            let (b_query, b_others) = (biases.as_ref().map(|b| &b[0]), biases.as_ref().map(|b| &b[1]));
            let query = query.linear(&of_query, b_query)?;
            let others = apart(&key.linear(&of_others, b_others)?, 2)?;
            return Ok(Projections { query, key: others.select(0, 0)?, value: others.select(0, 1)? });
        }
        let [of_query, of_key, of_value] = parts(weight.chunk(3, 0)?);
        projected([&query, &key, &value], [of_query, of_key, of_value], bias)
    }

    fn project_apart(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        bias: Option<Tensor>,
    ) -> Result<Projections> {
        let weights = [&self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight];
        let weights = weights
            .map(|weight| weight.as_ref().expect("without one weight for all, each has its own").tensor());
        projected([query, key, value], weights, bias)
    }
}

fn projected(inputs: [&Tensor; 3], weights: [Tensor; 3], bias: Option<Tensor>) -> Result<Projections> {
    let biases = bias.map(|bias| bias.chunk(3, 0)).transpose()?;
    let project = |i: usize| inputs[i].linear(&weights[i], biases.as_ref().map(|biases| &biases[i]));
    Ok(Projections { query: project(0)?, key: project(1)?, value: project(2)? })
}

/// What one product gave for several, each by itself: `[count, steps, batch, size]`.
fn apart(all: &Tensor, count: usize) -> Result<Tensor> {
    let size = all.shape()[all.dim() - 1] / count;
    all.unflatten(-1, [count, size])?.unsqueeze(0)?.transpose(0, -2)?.squeeze_dim(-2)?.contiguous()
}

/// As many parts as were asked for.
fn parts<const N: usize>(parts: Vec<Tensor>) -> [Tensor; N] {
    parts.try_into().unwrap_or_else(|_| unreachable!("a size that is a multiple splits into all its parts"))
}

fn matrix(outputs: usize, inputs: usize) -> Result<Parameter> {
    let weight = Tensor::empty([outputs, inputs], ())?;
    init::xavier_uniform_(&weight, 1.0)?;
    Parameter::new(weight)
}

/// A key or value that is there for all, `[1, 1, size]`.
pub(super) fn row(size: usize) -> Result<Parameter> {
    let row = Tensor::empty([1, 1, size], ())?;
    init::xavier_normal_(&row, 1.0)?;
    Parameter::new(row)
}
