//! Gradients that travel together.

use crate::backend::{Collective, Reduce};
use crate::group::{ProcessGroup, Started};
use cresset_tensor::{DType, Device, Result, Tensor};

/// Some parameters, whose gradients lie one after the other while they are exchanged.
pub(crate) struct Bucket {
    /// By their place among the parameters of the module, last first: gradients come in that order.
    pub(crate) parameters: Vec<usize>,
    elements: usize,
}

/// Puts parameters into buckets of about `bytes`, each of one type and device, last parameter first. The first
/// bucket is smaller, so that exchanging begins early.
pub(crate) fn divide(parameters: &[Tensor], first: usize, bytes: usize) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    // The bucket that is being filled for each type and device, and its bytes.
    let mut open: Vec<((DType, Device), usize, usize)> = Vec::new();
    for (at, parameter) in parameters.iter().enumerate().rev() {
        let kind = (parameter.dtype(), parameter.device());
        let size = parameter.numel() * parameter.dtype().size();
        let most = |bucket: usize| if bucket == 0 { first } else { bytes };
        let fitting =
            open.iter_mut().find(|(of, bucket, filled)| *of == kind && *filled + size <= most(*bucket));
        let bucket = match fitting {
            Some((_, bucket, filled)) => {
                *filled += size;
                *bucket
            }
            None => {
                open.retain(|(of, ..)| *of != kind);
                open.push((kind, buckets.len(), size));
                buckets.push(Bucket { parameters: Vec::new(), elements: 0 });
                buckets.len() - 1
            }
        };
        buckets[bucket].parameters.push(at);
        buckets[bucket].elements += parameter.numel();
    }
    buckets
}

/// A bucket on its way: the gradients, how many ranks had each, and by how many samples they were weighed.
pub(crate) struct Travelling {
    flat: Tensor,
    started: Started,
    /// Which parameters had a gradient here.
    had: Vec<bool>,
}

impl Bucket {
    /// Starts to add up the gradients of all ranks, each times its `weight`. A parameter without gradient brings
    /// zeros; that others had one is told by a count behind the gradients, and the sum of weights by one more.
    pub(crate) fn send(&self, all: &[Tensor], weight: f64, group: &ProcessGroup) -> Result<Travelling> {
        let parameters = || self.parameters.iter().map(|&at| &all[at]);
        let gradients: Vec<Option<Tensor>> = parameters().map(Tensor::grad).collect();
        let had: Vec<bool> = gradients.iter().map(Option::is_some).collect();
        let first = &all[self.parameters[0]];
        let kind = (first.dtype(), first.device());
        let mut counts: Vec<f32> = had.iter().map(|&had| f32::from(u8::from(had))).collect();
        counts.push(weight as f32);
        let counts = Tensor::from_slice(&counts, [counts.len()])?.to(kind.1)?.to_dtype(kind.0)?;
        let parts: Vec<Tensor> = gradients
            .into_iter()
            .zip(parameters())
            .map(|(gradient, parameter)| match gradient {
                Some(gradient) => gradient.reshape([parameter.numel()]),
                None => Tensor::zeros([parameter.numel()], kind),
            })
            .collect::<Result<_>>()?;
        let parts: Vec<&Tensor> = parts.iter().chain([&counts]).collect();
        let flat = Tensor::cat(&parts, 0)?;
        if weight != 1.0 {
            flat.narrow(0, 0, self.elements)?.mul_(weight)?;
        }
        let started = group.start(Collective::AllReduce { tensor: &flat, reduce: Reduce::Sum })?;
        Ok(Travelling { flat, started, had })
    }

    /// Gives every parameter its part of the mean, by weight, of the gradients of all ranks.
    pub(crate) fn receive(&self, travelled: Travelling, all: &[Tensor]) -> Result<()> {
        let Travelling { flat, started, had } = travelled;
        started.wait()?;
        let count = self.parameters.len();
        let weights = flat.narrow(0, (self.elements + count) as isize, 1)?;
        flat.narrow(0, 0, self.elements)?.div_(&weights)?;
        // A parameter that no rank used keeps no gradient, as in one process. Only those who did not use it must ask.
        let used = match had.iter().all(|&had| had) {
            true => had,
            false => {
                let counts = flat.narrow(0, self.elements as isize, count)?.to_dtype(DType::F32)?;
                counts.to(Device::CPU)?.to_vec::<f32>()?.into_iter().map(|count| count > 0.0).collect()
            }
        };
        let mut start = 0;
        for (&at, used) in self.parameters.iter().zip(used) {
            let parameter = &all[at];
            if used {
                let part = flat.narrow(0, start as isize, parameter.numel())?;
                parameter.set_grad(part.reshape(parameter.shape())?)?;
            }
            start += parameter.numel();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_the_last_parameters_first_and_one_type_each() {
        let make = |elements: usize, dtype| Tensor::zeros([elements], dtype).unwrap();
        let (single, double) = (DType::F32, DType::F64);
        let parameters = [
            make(4, single),
            make(2, double),
            make(3, single),
            make(1, single),
            make(100, single),
            make(1, single),
        ];
        let buckets = divide(&parameters, 8, 32);
        let places: Vec<&[usize]> = buckets.iter().map(|bucket| &bucket.parameters[..]).collect();
        // The first is small; what is larger than a bucket has one of its own.
        assert_eq!(places, [&[5][..], &[4], &[3, 2, 0], &[1]]);
        assert_eq!(buckets.iter().map(|bucket| bucket.elements).sum::<usize>(), 111);
    }
}
