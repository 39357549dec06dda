//! Weights divided by how much they stretch at most.

use crate::{Buffer, Forward, Hooks, Members, Module, Parameter, Tensors, Training, Weighted, check};
use cresset_tensor::{Result, Tensor, no_grad};

const NAME: &str = "SpectralNorm";

/// A layer whose weight, as a matrix, is divided by its largest singular value. That value is found by
/// iteration, a little closer with each call that trains. Names of parameters and buffers are those of
/// torch's parametrization.
///
/// ```
/// use cresset_nn::{Forward, Linear, Module, SpectralNorm, Tensor};
///
/// let layer = SpectralNorm::new(Linear::new(4, 2)?)?;
/// let names: Vec<String> = layer.state_dict().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(
///     names,
///     [
///         "bias",
///         "parametrizations.weight.original",
///         "parametrizations.weight.0._u",
///         "parametrizations.weight.0._v"
///     ]
/// );
/// assert_eq!(layer.call(&Tensor::ones([3, 4], ())?)?.shape(), [3, 2]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
pub struct SpectralNorm<M> {
    layer: M,
    original: Parameter,
    /// What the weight stretches most, on either side: vectors of length 1.
    left: Buffer,
    right: Buffer,
    dim: usize,
    n_power_iterations: usize,
    eps: f64,
    training: Training,
    hooks: Hooks,
}

impl<M: Weighted> SpectralNorm<M> {
    /// `layer`, with one iteration per call.
    ///
    /// # Errors
    /// If the weight has no elements.
    pub fn new(layer: M) -> Result<SpectralNorm<M>> {
        let (weight, dim) = (layer.weight().tensor().detach()?, layer.output_dim());
        let original = Parameter::new(weight.copy()?)?;
        let [left, right] = [Buffer::new(Tensor::zeros([0], ())?), Buffer::new(Tensor::zeros([0], ())?)];
        let norm = SpectralNorm {
            layer,
            original,
            left,
            right,
            dim,
            n_power_iterations: 1,
            eps: 1e-12,
            training: Training::default(),
            hooks: Hooks::default(),
        };
        norm.start()
    }

    /// How often the vectors are improved per call; once at first.
    ///
    /// # Errors
    /// For 0.
    pub fn n_power_iterations(mut self, count: usize) -> Result<SpectralNorm<M>> {
        check::positive(NAME, &[("n_power_iterations", count)])?;
        self.n_power_iterations = count;
        Ok(self)
    }

    /// The least that lengths count for; `1e-12` at first.
    ///
    /// # Errors
    /// For anything but finite numbers above 0.
    pub fn eps(mut self, eps: f64) -> Result<SpectralNorm<M>> {
        check::epsilon(NAME, eps)?;
        self.eps = eps;
        Ok(self)
    }

    /// The dimension that is the rows of the matrix: that of outputs at first.
    ///
    /// # Errors
    /// If the weight has no such dimension.
    pub fn dim(mut self, dim: usize) -> Result<SpectralNorm<M>> {
        let rank = self.original.tensor().dim();
        let expected = format_args!("a dimension of the weight, of {rank}");
        check::within(NAME, "dim", dim, dim < rank, expected)?;
        self.dim = dim;
        self.start()
    }

    /// Draws the vectors, and brings them close.
    fn start(self) -> Result<SpectralNorm<M>> {
        let matrix = self.matrix()?.detach()?;
        let &[rows, columns] = matrix.shape() else { unreachable!("a matrix has two dimensions") };
        let drawn = |size: usize| {
            Tensor::randn([size], (matrix.dtype(), matrix.device()))?.normalize(2.0, 0, self.eps)
        };
        self.left.replace(drawn(rows)?);
        self.right.replace(drawn(columns)?);
        self.iterate(&matrix, 15)?;
        Ok(self)
    }

    fn matrix(&self) -> Result<Tensor> {
        self.original.tensor().movedim(&[self.dim as isize], &[0])?.flatten(1, -1)
    }

    fn iterate(&self, matrix: &Tensor, times: usize) -> Result<()> {
        let _guard = no_grad();
        let (left, right) = (self.left.tensor(), self.right.tensor());
        for _ in 0..times {
            left.copy_(&matrix.mv(&right)?.normalize(2.0, 0, self.eps)?)?;
            right.copy_(&matrix.t()?.mv(&left)?.normalize(2.0, 0, self.eps)?)?;
        }
        Ok(())
    }

    /// The weight as it is now; a layer that trains comes closer to its norm first.
    ///
    /// # Errors
    /// If an operator fails.
    pub fn weight(&self) -> Result<Tensor> {
        let matrix = self.matrix()?;
        if self.training.is_on() {
            self.iterate(&matrix, self.n_power_iterations)?;
        }
        // The next call changes the vectors, and a derivative may still want these.
        let (left, right) = (self.left.tensor().copy()?, self.right.tensor().copy()?);
        let largest = left.dot(&matrix.mv(&right)?)?;
        self.original.tensor().div(&largest)
    }

    /// The layer alone, with the weight that it has now.
    ///
    /// # Errors
    /// If an operator fails.
    pub fn remove(self) -> Result<M> {
        self.layer.weight().replace(self.weight()?)?;
        Ok(self.layer)
    }
}

impl<M: Weighted> Module for SpectralNorm<M> {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        self.layer.members(members);
        // What is computed is no parameter.
        members.parameters.retain(|(_, parameter)| !parameter.same_as(self.layer.weight()));
        members.parameter("parametrizations.weight.original", &self.original);
        members.buffer("parametrizations.weight.0._u", &self.left);
        members.buffer("parametrizations.weight.0._v", &self.right);
        members.training(&self.training);
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.hooks)
    }

    fn class(&self) -> &'static str {
        self.layer.class()
    }
}

impl<I: Tensors, M: Weighted + Forward<I>> Forward<I> for SpectralNorm<M> {
    type Output = M::Output;

    fn forward(&self, input: I::Ref<'_>) -> Result<M::Output> {
        self.layer.weight().put(self.weight()?);
        self.layer.forward(input)
    }
}
