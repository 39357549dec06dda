//! What every piece of memory is used for, at one moment.

use super::Allocator;
use super::blocks::Use;
use crate::device;
use cresset_tensor::Device;

/// A piece of memory that the library gave, and how it is cut up.
///
/// ```
/// # use cresset_npu::{BlockState, Library, device, init, memory_snapshot};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let x = Tensor::zeros([1000], device(0))?;
/// let segments = memory_snapshot(device(0))?;
/// let held = |block: &&cresset_npu::MemoryBlock| block.state == BlockState::ActiveAllocated;
/// assert!(segments.iter().flat_map(|segment| &segment.blocks).filter(held).any(|block| block.requested_size == 4000));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySegment {
    /// Where it is.
    pub device: Device,
    /// Where it starts, as the device counts.
    pub address: usize,
    /// All of its bytes.
    pub total_size: usize,
    /// Those handed out.
    pub allocated_size: usize,
    /// Those handed out, or given back while some stream still works on them.
    pub active_size: usize,
    /// The stream whose requests it serves, by its handle.
    pub stream: usize,
    /// Whether it serves small requests.
    pub is_small: bool,
    /// Its parts, in the order of their addresses.
    pub blocks: Vec<MemoryBlock>,
}

/// A part of a [`MemorySegment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBlock {
    /// Where it starts.
    pub address: usize,
    /// Its bytes.
    pub size: usize,
    /// What was asked for, if it is handed out.
    pub requested_size: usize,
    /// What it is used for.
    pub state: BlockState,
}

/// What a [`MemoryBlock`] is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// It is handed out.
    ActiveAllocated,
    /// It was given back, and some stream still works on it.
    ActiveAwaitingFree,
    /// It is free.
    Inactive,
}

impl Allocator {
    pub(crate) fn snapshot(&self) -> Vec<MemorySegment> {
        let mut segments = Vec::new();
        self.state.lock().blocks.segments(|pool, nodes| {
            let of = |wanted: &[Use]| {
                nodes.iter().filter(|node| wanted.contains(&node.used)).map(|node| node.bytes).sum()
            };
            segments.push(MemorySegment {
                device: device::device(self.device),
                address: nodes[0].address,
                total_size: of(&[Use::Held, Use::Parked, Use::Free]),
                allocated_size: of(&[Use::Held]),
                active_size: of(&[Use::Held, Use::Parked]),
                stream: pool.stream,
                is_small: pool.small,
                blocks: nodes
                    .iter()
                    .map(|node| MemoryBlock {
                        address: node.address,
                        size: node.bytes,
                        requested_size: if node.used == Use::Held { node.requested } else { 0 },
                        state: match node.used {
                            Use::Held => BlockState::ActiveAllocated,
                            Use::Parked => BlockState::ActiveAwaitingFree,
                            Use::Free => BlockState::Inactive,
                        },
                    })
                    .collect(),
            });
        });
        segments.sort_by_key(|segment| segment.address);
        segments
    }
}
