//! Transformers: layers of attention and of a small network for each step.
//!
//! - `feed` is that network;
//! - `encoder` reads one sequence, `decoder` writes one while it looks at another;
//! - `whole` is both together.

mod decoder;
mod encoder;
mod feed;
mod whole;

pub use decoder::{Decode, Decoded, TransformerDecoder, TransformerDecoderLayer};
pub use encoder::{Encode, Encoded, TransformerEncoder, TransformerEncoderLayer};
pub use whole::{Transform, Transformed, Transformer};

use cresset_tensor::{Result, Tensor};
use std::sync::Arc;

/// A mask that is given, as what is added to scores, so that not every layer makes it anew.
fn added(mask: Option<&Tensor>, like: &Tensor) -> Result<Option<Tensor>> {
    mask.map(|mask| crate::attention::added(mask, like.dtype())).transpose()
}

/// A function between two layers, shared by all layers of a stack.
type Activation = Arc<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>;

/// The options that all layers of transformers have, each a change of their parts.
macro_rules! options {
    ($layer:ident { attentions: $($attention:ident),*; norms: $($norm:ident),*; dropouts: $($dropout:ident),* }) => {
        impl $layer {
            /// How likely numbers are dropped while the module is trained: 0.1 unless said otherwise.
            pub fn dropout(mut self, p: f64) -> cresset_tensor::Result<Self> {
                $(self.$attention = self.$attention.dropout(p)?;)*
                $(self.$dropout = crate::Dropout::new(p)?;)*
                Ok(self)
            }

            /// What is between the two linear layers: [`Tensor::relu`](cresset_tensor::Tensor::relu) unless
            /// said otherwise.
            pub fn activation(
                mut self,
                activation: impl Fn(&cresset_tensor::Tensor) -> cresset_tensor::Result<cresset_tensor::Tensor>
                + Send
                + Sync
                + 'static,
            ) -> cresset_tensor::Result<Self> {
                self.activation = std::sync::Arc::new(activation);
                Ok(self)
            }

            /// What layer norms add to variances: 1e-5 unless said otherwise.
            pub fn layer_norm_eps(mut self, eps: f64) -> cresset_tensor::Result<Self> {
                $(self.$norm = self.$norm.eps(eps)?;)*
                Ok(self)
            }

            /// Whether sequences are `[batch, steps, size]` instead of `[steps, batch, size]`.
            pub fn batch_first(mut self, batch_first: bool) -> cresset_tensor::Result<Self> {
                $(self.$attention = self.$attention.batch_first(batch_first)?;)*
                Ok(self)
            }

            /// Whether each part normalizes what it reads, instead of what it gives.
            pub fn norm_first(mut self, norm_first: bool) -> cresset_tensor::Result<Self> {
                self.norm_first = norm_first;
                Ok(self)
            }

            /// With biases of linear layers and norms, or without.
            pub fn bias(mut self, bias: bool) -> cresset_tensor::Result<Self> {
                $(self.$attention = self.$attention.bias(bias)?;)*
                $(self.$norm = self.$norm.bias(bias)?;)*
                self.linear1 = self.linear1.bias(bias)?;
                self.linear2 = self.linear2.bias(bias)?;
                Ok(self)
            }
        }
    };
}

use options;
