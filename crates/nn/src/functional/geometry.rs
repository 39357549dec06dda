//! Points: where they are, and how far apart.

use crate::check::refused;
use cresset_tensor::{Cause, DType, Error, Result, Tensor};

/// The distance of each of the points `[points, size]` to all after it, by the norm of order `p`: a vector of
/// `points * (points - 1) / 2` numbers.
///
/// # Errors
/// For anything but two dimensions, and an order that is not at least 0.
pub fn pdist(input: &Tensor, p: f64) -> Result<Tensor> {
    crate::check::rank("pdist", input, &[2])?;
    crate::check::within("pdist", "p", p, p >= 0.0, "at least 0")?;
    let points = input.shape()[0];
    let pairs = Tensor::triu_indices(points, points, 1, DType::I64)?.to(input.device())?;
    let rows = |i: isize| input.index_select(0, &pairs.select(0, i)?);
    rows(0)?.sub(&rows(1)?)?.vector_norm(p, &[-1], false, None)
}

/// Where the places of an image or a volume of `size`, `[batch, channels, ..]`, come from under the maps
/// `theta`, `[batch, 2, 3]` or `[batch, 3, 4]`: what [`Tensor::grid_sample`] takes. Edges of the input are at
/// -1 and 1: the middles of the outermost places with `align_corners`, their outer edges otherwise.
///
/// ```
/// use cresset_nn::{Tensor, functional as F};
///
/// let same = Tensor::new([[[1.0f32, 0.0, 0.0], [0.0, 1.0, 0.0]]])?;
/// let grid = F::affine_grid(&same, &[1, 3, 2, 2], true)?;
/// assert_eq!(grid.to_vec::<f32>()?, [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
///
/// # Errors
/// If maps and size do not fit together.
pub fn affine_grid(theta: &Tensor, size: &[usize], align_corners: bool) -> Result<Tensor> {
    const NAME: &str = "affine_grid";
    let fits = matches!(size.len(), 4 | 5) && theta.shape() == [size[0], size.len() - 2, size.len() - 1];
    if !fits {
        let text = format_args!(
            "theta is {:?} and size {size:?}, expected [batch, 2, 3] for four sizes or [batch, 3, 4] for five",
            theta.shape()
        );
        return Err(Error::new(Cause::Shape, NAME, text));
    }
    let places = &size[2..];
    if places.contains(&0) {
        return Err(refused(NAME, format_args!("size is {size:?}, expected at least 1 of all places")));
    }
    let options = (theta.dtype(), theta.device());
    let along = |count: usize| {
        let line = Tensor::linspace(-1.0, 1.0, count, options)?;
        match (align_corners, count) {
            (true, 1) => line.zeros_like(),
            (true, _) => Ok(line),
            // Middles of places are half a place away from the edges.
            (false, 1) => line.zeros_like(),
            (false, _) => line.mul((count as f64 - 1.0) / count as f64),
        }
    };
    // Coordinates of the last dimension come first, and a 1 for what maps add.
    let mut coordinates = Vec::new();
    for (dim, &count) in places.iter().enumerate().rev() {
        let mut shape = vec![1isize; places.len()];
        shape[dim] = -1;
        let line = along(count)?.reshape(shape.as_slice())?;
        coordinates.push(line.expand(places)?.reshape([-1])?);
    }
    coordinates.push(Tensor::ones([places.iter().product()], options)?);
    let points = Tensor::stack(&coordinates.iter().collect::<Vec<_>>(), 1)?;
    let mapped = points.unsqueeze(0)?.matmul(&theta.transpose(1, 2)?)?;
    let shape: Vec<usize> =
        [size[0]].into_iter().chain(places.iter().copied()).chain([places.len()]).collect();
    mapped.reshape(shape.as_slice())
}
