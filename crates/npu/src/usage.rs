//! What devices' memory is used for: numbers for programs and for people.

use crate::allocator::{self, Bytes, MemorySegment, MemoryStats};
use crate::{check_device, device};
use cresset_tensor::{Cause, Device, Error, Result};
use std::fmt;

/// Bytes of `device` that tensors and workspaces use.
///
/// ```
/// # use cresset_npu::{Library, device, init, max_memory_allocated, memory_allocated, memory_reserved};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let x = Tensor::zeros([1000], device(0))?;
/// assert_eq!(memory_allocated(device(0)), 4096, "blocks are multiples of 512 bytes");
/// assert_eq!(memory_reserved(device(0)), 2 << 20);
/// drop(x);
/// assert_eq!((memory_allocated(device(0)), max_memory_allocated(device(0))), (0, 4096));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn memory_allocated(device: Device) -> usize {
    memory_stats(device).allocated_bytes.all.current as usize
}

/// The most bytes of `device` that tensors and workspaces used at once; as [`memory_allocated`].
pub fn max_memory_allocated(device: Device) -> usize {
    memory_stats(device).allocated_bytes.all.peak as usize
}

/// Bytes of `device` that are held, in use or cached; as [`memory_allocated`].
pub fn memory_reserved(device: Device) -> usize {
    memory_stats(device).reserved_bytes.all.current as usize
}

/// The most bytes of `device` that were held at once; as [`memory_allocated`].
pub fn max_memory_reserved(device: Device) -> usize {
    memory_stats(device).reserved_bytes.all.peak as usize
}

/// All that the allocator of `device` counts; zeros if it is no NPU.
pub fn memory_stats(device: Device) -> MemoryStats {
    check_device(device).map_or_else(|_| MemoryStats::default(), |()| allocator::of(device.index).stats())
}

/// Every piece of memory of `device` that is held, and how it is cut up.
///
/// # Errors
/// If there is no such device.
pub fn memory_snapshot(device: Device) -> Result<Vec<MemorySegment>> {
    check_device(device)?;
    Ok(allocator::of(device.index).snapshot())
}

/// Free bytes and all bytes of `device`, as its library counts them, for all processes.
///
/// ```
/// # use cresset_npu::{Library, device, init, memory_info};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// let (free, total) = memory_info(device(0))?;
/// assert!(free <= total && total == 2 << 30);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device.
pub fn memory_info(device: Device) -> Result<(usize, usize)> {
    check_device(device)?;
    Ok(device::memory(device.index)?)
}

/// Counts the highest values of `device` anew from now on.
///
/// ```
/// # use cresset_npu::{Library, device, init, max_memory_allocated, reset_peak_memory_stats};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// drop(Tensor::zeros([1000], device(0))?);
/// reset_peak_memory_stats(device(0))?;
/// assert_eq!(max_memory_allocated(device(0)), 0);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device.
pub fn reset_peak_memory_stats(device: Device) -> Result<()> {
    check_device(device)?;
    allocator::of(device.index).reset_peak();
    Ok(())
}

/// Counts what came and went on `device`, and how often memory ran out, anew from now on.
///
/// # Errors
/// If there is no such device.
pub fn reset_accumulated_memory_stats(device: Device) -> Result<()> {
    check_device(device)?;
    allocator::of(device.index).reset_accumulated();
    Ok(())
}

/// Waits for `device`, and gives memory that is held but not in use back to it.
///
/// ```
/// # use cresset_npu::{Library, device, empty_cache, init, memory_reserved};
/// # use cresset_tensor::Tensor;
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// drop(Tensor::zeros([1000], device(0))?);
/// assert!(memory_reserved(device(0)) > 0, "it is kept for the next tensor");
/// empty_cache(device(0))?;
/// assert_eq!(memory_reserved(device(0)), 0);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device, or some work on it failed.
pub fn empty_cache(device: Device) -> Result<()> {
    check_device(device)?;
    Ok(allocator::of(device.index).empty_cache()?)
}

/// Lets this process hold at most this share of the memory of `device`: more is an error, as if the
/// device had no more. What is held already stays.
///
/// ```
/// # use cresset_npu::{Library, device, init, set_per_process_memory_fraction};
/// # use cresset_tensor::{DType, Tensor};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// set_per_process_memory_fraction(0.5, device(0))?;
/// let error = Tensor::empty([(1 << 30) + 1], (DType::U8, device(0))).unwrap_err();
/// assert!(error.to_string().contains("of a limit of 1.0 GiB"));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// If there is no such device, or the number is not between 0 and 1.
pub fn set_per_process_memory_fraction(fraction: f64, device: Device) -> Result<()> {
    if !(0.0..=1.0).contains(&fraction) {
        let text = format_args!("a fraction of memory lies between 0 and 1, not at {fraction}");
        return Err(Error::new(Cause::Argument, "", text));
    }
    let (_, total) = memory_info(device)?;
    let limit = (fraction < 1.0).then_some((total as f64 * fraction) as usize);
    allocator::of(device.index).set_limit(limit);
    Ok(())
}

/// A table of what the memory of `device` is used for.
///
/// ```
/// # use cresset_npu::{Library, device, init, memory_summary};
/// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
/// println!("{}", memory_summary(device(0)));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn memory_summary(device: Device) -> MemorySummary {
    MemorySummary { device, stats: memory_stats(device) }
}

/// What [`memory_summary`] gives: shown, it is a table.
#[derive(Clone, Copy, Debug)]
pub struct MemorySummary {
    device: Device,
    stats: MemoryStats,
}

impl fmt::Display for MemorySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = &self.stats;
        writeln!(
            f,
            "memory of {}: out of memory {} times, cache freed {} times",
            self.device, stats.num_ooms, stats.num_alloc_retries
        )?;
        writeln!(f, "{:<20} {:>12} {:>12} {:>12} {:>12}", "", "current", "peak", "came", "went")?;
        let sizes = [
            ("allocated", &stats.allocated_bytes),
            ("active", &stats.active_bytes),
            ("requested", &stats.requested_bytes),
            ("reserved", &stats.reserved_bytes),
            ("inactive split", &stats.inactive_split_bytes),
        ];
        for (name, pools) in sizes {
            let stat = pools.all;
            let shown = [stat.current, stat.peak, stat.allocated, stat.freed]
                .map(|bytes| Bytes(bytes as usize).to_string());
            let [current, peak, came, went] = shown;
            writeln!(f, "{name:<20} {current:>12} {peak:>12} {came:>12} {went:>12}")?;
        }
        let counts = [
            ("blocks", &stats.allocation),
            ("active blocks", &stats.active),
            ("segments", &stats.segment),
            ("inactive splits", &stats.inactive_split),
        ];
        for (name, pools) in counts {
            let stat = pools.all;
            writeln!(
                f,
                "{name:<20} {:>12} {:>12} {:>12} {:>12}",
                stat.current, stat.peak, stat.allocated, stat.freed
            )?;
        }
        Ok(())
    }
}
