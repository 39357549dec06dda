//! Rows of a table, picked by index.

use crate::check::{positive, refused, within};
use crate::{Forward, Hooks, Module, Parameter};
use cresset_tensor::ops::{Bagging, EmbeddingBagging};
use cresset_tensor::{Cause, Error, Result, Tensor};

fn table(layer: &'static str, rows: usize, width: usize) -> Result<Parameter> {
    positive(layer, &[("num_embeddings", rows), ("embedding_dim", width)])?;
    Parameter::new(Tensor::randn([rows, width], ())?)
}

fn from_table(layer: &'static str, table: &Tensor) -> Result<Parameter> {
    if table.dim() != 2 {
        let text = format_args!("expects a table of two dimensions, not shape {:?}", table.shape());
        return Err(Error::new(Cause::Shape, layer, text));
    }
    let weight = Parameter::new(table.clone())?;
    weight.tensor().set_requires_grad(false)?;
    Ok(weight)
}

/// Row `index`, counted from the back if negative, which is zeros at first.
fn padding_row(layer: &'static str, weight: &Parameter, index: isize) -> Result<usize> {
    let table = weight.tensor();
    let rows = table.shape()[0];
    let row = if index < 0 { rows.checked_add_signed(index) } else { Some(index as usize) };
    let expected = format_args!("a row of {rows}, counted from the back if negative");
    within(layer, "padding_idx", index, row.is_some_and(|row| row < rows), expected)?;
    Ok(row.unwrap_or(0))
}

fn clear(weight: &Parameter, row: usize) -> Result<()> {
    let _guard = cresset_tensor::no_grad();
    weight.tensor().select(0, row as isize)?.zero_()
}

fn check_norm(layer: &'static str, max_norm: Option<f64>, norm_type: f64) -> Result<()> {
    let max = max_norm.unwrap_or(1.0);
    within(layer, "max_norm", max, max > 0.0, "more than 0")?;
    within(layer, "norm_type", norm_type, norm_type > 0.0, "more than 0")
}

/// The rows of a table that indices name.
///
/// ```
/// use cresset_nn::{Embedding, Forward, Tensor};
///
/// let words = Embedding::new(100, 16)?.padding_idx(0)?;
/// assert_eq!(words.call(&Tensor::new([[3i64, 7, 0]])?)?.shape(), [1, 3, 16]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Module)]
pub struct Embedding {
    /// Of shape `[num_embeddings, embedding_dim]`.
    pub weight: Parameter,
    padding_idx: Option<usize>,
    max_norm: Option<f64>,
    norm_type: f64,
    scale_grad_by_freq: bool,
    hooks: Hooks,
}

impl Embedding {
    /// A table of `num_embeddings` rows of `embedding_dim` numbers, normally distributed at first.
    ///
    /// # Errors
    /// If either is 0.
    pub fn new(num_embeddings: usize, embedding_dim: usize) -> Result<Embedding> {
        Ok(Embedding::of(table("Embedding", num_embeddings, embedding_dim)?))
    }

    /// A table that is known already, and not learned unless [asked for](Module::requires_grad_).
    ///
    /// # Errors
    /// If it is no table.
    pub fn from_pretrained(embeddings: &Tensor) -> Result<Embedding> {
        Ok(Embedding::of(from_table("Embedding", embeddings)?))
    }

    fn of(weight: Parameter) -> Embedding {
        let hooks = Hooks::default();
        Embedding {
            weight,
            padding_idx: None,
            max_norm: None,
            norm_type: 2.0,
            scale_grad_by_freq: false,
            hooks,
        }
    }

    /// A row that is zeros at first and stays so: it gets no gradient.
    ///
    /// # Errors
    /// If there is no such row.
    pub fn padding_idx(mut self, index: isize) -> Result<Embedding> {
        let row = padding_row("Embedding", &self.weight, index)?;
        self.padding_idx = Some(row);
        // What was learned elsewhere is not overwritten.
        if self.weight.tensor().requires_grad() {
            clear(&self.weight, row)?;
        }
        Ok(self)
    }

    /// Rows that are longer are shortened to this norm when they are picked.
    ///
    /// # Errors
    /// Unless it is above 0.
    pub fn max_norm(mut self, max_norm: impl Into<Option<f64>>) -> Result<Embedding> {
        self.max_norm = max_norm.into();
        check_norm("Embedding", self.max_norm, self.norm_type)?;
        Ok(self)
    }

    /// The order of that norm; 2 at first.
    ///
    /// # Errors
    /// Unless it is above 0.
    pub fn norm_type(mut self, norm_type: f64) -> Result<Embedding> {
        self.norm_type = norm_type;
        check_norm("Embedding", self.max_norm, norm_type)?;
        Ok(self)
    }

    /// Whether the gradient of a row is divided by how often it was picked; not at first.
    pub fn scale_grad_by_freq(mut self, scale: bool) -> Result<Embedding> {
        self.scale_grad_by_freq = scale;
        Ok(self)
    }
}

impl Forward for Embedding {
    type Output = Tensor;

    fn forward(&self, indices: &Tensor) -> Result<Tensor> {
        let table = self.weight.tensor();
        if let Some(max_norm) = self.max_norm {
            table.embedding_renorm_(indices, max_norm, self.norm_type)?;
        }
        let padding = self.padding_idx.map(|row| row as isize);
        table.embedding_scaled(indices, padding, self.scale_grad_by_freq)
    }
}

/// What becomes of bags of rows of a table, without the rows in between.
///
/// Indices are a bag per row, or a line of them with offsets that say where each bag begins; sums may
/// have a weight per index: `bag.call((&indices, Some(&offsets), None))`.
#[derive(Module)]
pub struct EmbeddingBag {
    /// Of shape `[num_embeddings, embedding_dim]`.
    pub weight: Parameter,
    #[module(skip)]
    mode: Bagging,
    padding_idx: Option<usize>,
    max_norm: Option<f64>,
    norm_type: f64,
    scale_grad_by_freq: bool,
    include_last_offset: bool,
    hooks: Hooks,
}

impl EmbeddingBag {
    /// A table of `num_embeddings` rows of `embedding_dim` numbers, normally distributed at first, whose
    /// bags are averaged.
    ///
    /// # Errors
    /// If either is 0.
    pub fn new(num_embeddings: usize, embedding_dim: usize) -> Result<EmbeddingBag> {
        Ok(EmbeddingBag::of(table("EmbeddingBag", num_embeddings, embedding_dim)?))
    }

    /// A table that is known already, and not learned unless [asked for](Module::requires_grad_).
    ///
    /// # Errors
    /// If it is no table.
    pub fn from_pretrained(embeddings: &Tensor) -> Result<EmbeddingBag> {
        Ok(EmbeddingBag::of(from_table("EmbeddingBag", embeddings)?))
    }

    fn of(weight: Parameter) -> EmbeddingBag {
        EmbeddingBag {
            weight,
            mode: Bagging::Mean,
            padding_idx: None,
            max_norm: None,
            norm_type: 2.0,
            scale_grad_by_freq: false,
            include_last_offset: false,
            hooks: Hooks::default(),
        }
    }

    /// What becomes of the rows of a bag: their mean at first.
    pub fn mode(mut self, mode: Bagging) -> Result<EmbeddingBag> {
        self.mode = mode;
        Ok(self)
    }

    /// A row that is in no bag and gets no gradient.
    ///
    /// # Errors
    /// If there is no such row.
    pub fn padding_idx(mut self, index: isize) -> Result<EmbeddingBag> {
        let row = padding_row("EmbeddingBag", &self.weight, index)?;
        self.padding_idx = Some(row);
        if self.weight.tensor().requires_grad() {
            clear(&self.weight, row)?;
        }
        Ok(self)
    }

    /// Rows that are longer are shortened to this norm when they are picked.
    ///
    /// # Errors
    /// Unless it is above 0.
    pub fn max_norm(mut self, max_norm: impl Into<Option<f64>>) -> Result<EmbeddingBag> {
        self.max_norm = max_norm.into();
        check_norm("EmbeddingBag", self.max_norm, self.norm_type)?;
        Ok(self)
    }

    /// The order of that norm; 2 at first.
    ///
    /// # Errors
    /// Unless it is above 0.
    pub fn norm_type(mut self, norm_type: f64) -> Result<EmbeddingBag> {
        self.norm_type = norm_type;
        check_norm("EmbeddingBag", self.max_norm, norm_type)?;
        Ok(self)
    }

    /// Whether the gradient of a row is divided by how often it was picked; not at first.
    pub fn scale_grad_by_freq(mut self, scale: bool) -> Result<EmbeddingBag> {
        self.scale_grad_by_freq = scale;
        Ok(self)
    }

    /// Whether offsets end with the number of indices; not at first.
    pub fn include_last_offset(mut self, include: bool) -> Result<EmbeddingBag> {
        self.include_last_offset = include;
        Ok(self)
    }
}

impl Forward<(Tensor, Option<Tensor>, Option<Tensor>)> for EmbeddingBag {
    type Output = Tensor;

    fn forward(
        &self,
        (indices, offsets, weights): (&Tensor, Option<&Tensor>, Option<&Tensor>),
    ) -> Result<Tensor> {
        let table = self.weight.tensor();
        if let Some(max_norm) = self.max_norm {
            table.embedding_renorm_(indices, max_norm, self.norm_type)?;
        }
        let shortened = match offsets {
            Some(offsets) if self.include_last_offset => {
                let bags = offsets.numel().checked_sub(1);
                let missing = || refused("EmbeddingBag", "there is no last offset, expected at least one");
                Some(offsets.narrow(0, 0, bags.ok_or_else(missing)?)?)
            }
            _ => None,
        };
        let bagging = EmbeddingBagging {
            mode: self.mode,
            padding: self.padding_idx,
            scale_by_frequency: self.scale_grad_by_freq,
        };
        table.embedding_bag(indices, shortened.as_ref().or(offsets), weights, bagging)
    }
}
