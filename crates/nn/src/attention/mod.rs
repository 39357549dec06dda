//! Attention of several heads.

mod heads;
mod mask;
mod project;

use crate::check::{positive, within};
use crate::inputs::inputs;
use crate::{Forward, Hooks, Linear, Module, Parameter, Training};
use cresset_tensor::{Cause, Error, Result, Tensor};
use mask::Masks;
pub(crate) use mask::added;
use project::row;

pub use mask::causal_mask;

const NAME: &str = "MultiheadAttention";

inputs! {
    /// What [`MultiheadAttention`] is called with: queries, and the keys and values they look at.
    Attend, Attended(query, key, value) {
        /// Which keys do not count, `[batch, keys]` of bool, or what is added to their scores.
        key_padding_mask;
        /// Which keys a query must not see, of bool, or what is added to the scores: `[queries, keys]`, or
        /// `[batch * heads, queries, keys]`.
        attn_mask;
    } flags {
        /// Whether the weights are given out too: unless not asked for.
        need_weights = true;
        /// Whether the weights are averaged over heads: unless said otherwise.
        average_attn_weights = true;
        /// Says that a query sees only keys up to its own position. A mask that is given must be the
        /// [causal one](causal_mask); without, it is made.
        is_causal = false;
    }
}

/// Attention of several heads, each of its own part of what queries, keys and values are projected to.
///
/// Sequences are `[steps, batch, size]`, `[batch, steps, size]` if the batch is first, or
/// `[steps, size]`. Gives the output of each query, and the weights of keys.
///
/// ```
/// use cresset_nn::{Attend, Forward, MultiheadAttention, Tensor};
///
/// let attention = MultiheadAttention::new(8, 2)?.batch_first(true)?;
/// let x = Tensor::ones([3, 5, 8], ())?;
/// let (out, weights) = attention.call(Attend::new(&x, &x, &x).is_causal(true))?;
/// assert_eq!(out.shape(), [3, 5, 8]);
/// assert_eq!(weights.map(|weights| weights.shape().to_vec()), Some(vec![3, 5, 5]));
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Module)]
pub struct MultiheadAttention {
    /// Of queries, keys and values below each other, `[3 * embed_dim, embed_dim]`, if all are of one size.
    pub in_proj_weight: Option<Parameter>,
    /// Of queries, if keys or values are of another size.
    pub q_proj_weight: Option<Parameter>,
    /// Of keys, if they or values are of another size.
    pub k_proj_weight: Option<Parameter>,
    /// Of values, if they or keys are of another size.
    pub v_proj_weight: Option<Parameter>,
    /// Of queries, keys and values one after the other.
    pub in_proj_bias: Option<Parameter>,
    /// A key that is there for all.
    pub bias_k: Option<Parameter>,
    /// The value of that key.
    pub bias_v: Option<Parameter>,
    /// What the outputs of all heads become together.
    pub out_proj: Linear,
    embed_dim: usize,
    num_heads: usize,
    kdim: usize,
    vdim: usize,
    dropout: f64,
    add_zero_attn: bool,
    batch_first: bool,
    training: Training,
    hooks: Hooks,
}

impl MultiheadAttention {
    /// Of `embed_dim` numbers per step, shared by `num_heads`.
    ///
    /// # Errors
    /// If either is 0, or `embed_dim` is no multiple of `num_heads`.
    pub fn new(embed_dim: usize, num_heads: usize) -> Result<Self> {
        positive(NAME, &[("embed_dim", embed_dim), ("num_heads", num_heads)])?;
        let expected = format_args!("a multiple of num_heads {num_heads}");
        within(NAME, "embed_dim", embed_dim, embed_dim.is_multiple_of(num_heads), expected)?;
        let attention = Self {
            in_proj_weight: None,
            q_proj_weight: None,
            k_proj_weight: None,
            v_proj_weight: None,
            in_proj_bias: None,
            bias_k: None,
            bias_v: None,
            out_proj: Linear::new(embed_dim, embed_dim)?,
            embed_dim,
            num_heads,
            kdim: embed_dim,
            vdim: embed_dim,
            dropout: 0.0,
            add_zero_attn: false,
            batch_first: false,
            training: Training::default(),
            hooks: Hooks::default(),
        };
        attention.with_projections()?.bias(true)
    }

    /// How likely a weight is dropped while the module is trained.
    pub fn dropout(self, dropout: f64) -> Result<Self> {
        within(NAME, "dropout", dropout, (0.0..=1.0).contains(&dropout), "from 0 to 1")?;
        Ok(Self { dropout, ..self })
    }

    /// With biases of the projections, or without. They start at 0.
    pub fn bias(self, bias: bool) -> Result<Self> {
        let zeros = |count: usize| Parameter::new(Tensor::zeros([count], ())?);
        let in_proj_bias = bias.then(|| zeros(self.embed_dim.saturating_mul(3))).transpose()?;
        let mut out_proj = self.out_proj.bias(bias)?;
        out_proj.bias = bias.then(|| zeros(self.embed_dim)).transpose()?;
        Ok(Self { in_proj_bias, out_proj, ..self })
    }

    /// With one more key and value that are learned, or without.
    pub fn add_bias_kv(self, add_bias_kv: bool) -> Result<Self> {
        let fresh = || add_bias_kv.then(|| row(self.embed_dim)).transpose();
        Ok(Self { bias_k: fresh()?, bias_v: fresh()?, ..self })
    }

    /// With one more key and value of zeros, or without.
    pub fn add_zero_attn(self, add_zero_attn: bool) -> Result<Self> {
        Ok(Self { add_zero_attn, ..self })
    }

    /// How many numbers keys have per step: as many as queries unless said otherwise.
    pub fn kdim(self, kdim: usize) -> Result<Self> {
        positive(NAME, &[("kdim", kdim)])?;
        Self { kdim, ..self }.with_projections()
    }

    /// How many numbers values have per step: as many as queries unless said otherwise.
    pub fn vdim(self, vdim: usize) -> Result<Self> {
        positive(NAME, &[("vdim", vdim)])?;
        Self { vdim, ..self }.with_projections()
    }

    /// Whether sequences are `[batch, steps, size]` instead of `[steps, batch, size]`.
    pub fn batch_first(self, batch_first: bool) -> Result<Self> {
        Ok(Self { batch_first, ..self })
    }

    /// How likely a weight is dropped now.
    fn dropping(&self) -> f64 {
        if self.training.is_on() { self.dropout } else { 0.0 }
    }

    /// How many samples, queries and keys are given.
    fn sizes(&self, Attend { query, key, .. }: Attend<'_>) -> [usize; 3] {
        let is_batch = query.dim() == 3;
        let steps = usize::from(is_batch && self.batch_first);
        let batch = if is_batch { query.shape()[1 - steps] } else { 1 };
        [batch, query.shape()[steps], key.shape()[steps]]
    }

    fn check(&self, Attend { query, key, value, .. }: Attend<'_>) -> Result<()> {
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, NAME, text));
        let shapes = [query, key, value].map(Tensor::shape);
        let ranks = shapes.map(<[usize]>::len);
        if !(2..=3).contains(&ranks[0]) || ranks != [ranks[0]; 3] {
            return refused(format_args!(
                "query, key and value are {:?}, {:?} and {:?}, expected all of 2 or all of 3 dimensions",
                shapes[0], shapes[1], shapes[2]
            ));
        }
        let sizes = [("query", self.embed_dim), ("key", self.kdim), ("value", self.vdim)];
        for ((name, size), shape) in sizes.into_iter().zip(shapes) {
            if shape.last() != Some(&size) {
                return refused(format_args!("{name} is {shape:?}, expected {size} as the last size"));
            }
        }
        let batch = usize::from(!self.batch_first);
        let same_batch = ranks[0] == 2 || shapes[0][batch] == shapes[1][batch];
        if shapes[1][..ranks[0] - 1] != shapes[2][..ranks[0] - 1] || !same_batch {
            return refused(format_args!(
                "query, key and value are {:?}, {:?} and {:?}, expected one batch, and a value per key",
                shapes[0], shapes[1], shapes[2]
            ));
        }
        Ok(())
    }
}

impl Forward<Attended> for MultiheadAttention {
    type Output = (Tensor, Option<Tensor>);

    fn forward(&self, input: Attend<'_>) -> Result<(Tensor, Option<Tensor>)> {
        self.check(input)?;
        let is_batch = input.query.dim() == 3;
        let masks = Masks::given(input, self.num_heads, self.sizes(input))?;
        let (out, weights) = self.attend(input, &masks)?;
        let out = match (is_batch, self.batch_first) {
            (false, _) => out.squeeze_dim(1)?,
            (true, true) => out.transpose(1, 0)?,
            (true, false) => out,
        };
        let weights = weights.map(|weights| if is_batch { Ok(weights) } else { weights.squeeze_dim(0) });
        Ok((out, weights.transpose()?))
    }
}
