//! Communication between the devices of a group.
#![allow(non_snake_case, reason = "the names are those of C")]
#![allow(clippy::too_many_arguments, reason = "as many as the functions of C have")]

use super::communicator::{call, communicator_of};
use crate::collective::{Call, Communicator, Elements, Exchange, Operation, Transfer};
use crate::error::{Result, fail};
use crate::memory::Span;
use cresset_acl::collective::result;
use cresset_acl::structure::SendRecvItem;
use cresset_acl::types::{Communicator as Handle, Stream, c_void};
use std::ffi::CStr;

/// A buffer of so many elements.
fn span(address: *const c_void, count: u64, elements: Elements) -> Result<Span> {
    let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(elements.size()));
    match bytes {
        Some(0) => Ok(Span { start: address as usize, bytes: 0 }),
        Some(_) if address.is_null() => fail!(result::POINTER, "a buffer is null"),
        Some(bytes) => Ok(Span { start: address as usize, bytes }),
        None => fail!(result::PARAMETER, "{count} elements are too many"),
    }
}

/// How a collective is called: what it is named, its elements, and who takes part on which stream.
struct Request {
    function: &'static CStr,
    kernel: &'static CStr,
    count: u64,
    dtype: i32,
    communicator: Handle,
    stream: Stream,
}

impl Request {
    /// Queues what `exchange` makes of element type and group.
    fn queue(self, exchange: impl FnOnce(Elements, &Communicator) -> Result<Exchange>) -> i32 {
        call(&self.function.to_string_lossy(), || {
            let communicator = communicator_of(self.communicator)?;
            let elements = Elements::new(self.dtype)?;
            let exchange = exchange(elements, &communicator)?;
            let Request { function, kernel, count, stream, .. } = self;
            Call { function, kernel, elements, count, exchange }.launch(communicator, stream as usize)
        })
    }
}

/// Everyone gets what all together make.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclAllReduce(
    send: *mut c_void,
    receive: *mut c_void,
    count: u64,
    dtype: i32,
    operation: i32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclAllReduce", c"hcom_allReduce_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, _| {
        let (from, to) = (span(send, count, elements)?, span(receive, count, elements)?);
        Ok(Exchange::AllReduce { from, to, operation: Operation::new(operation)? })
    })
}

/// All get what one has.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclBroadcast(
    buffer: *mut c_void,
    count: u64,
    dtype: i32,
    root: u32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclBroadcast", c"hcom_broadcast_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        group.expect_rank(root)?;
        Ok(Exchange::Broadcast { buffer: span(buffer, count, elements)?, root })
    })
}

/// Everyone gets what all have, one after the other.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclAllGather(
    send: *mut c_void,
    receive: *mut c_void,
    count: u64,
    dtype: i32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclAllGather", c"hcom_allGather_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        let all = count * u64::from(group.ranks());
        Ok(Exchange::AllGather { from: span(send, count, elements)?, to: span(receive, all, elements)? })
    })
}

/// Each gets its part of what all together make.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclReduceScatter(
    send: *mut c_void,
    receive: *mut c_void,
    count: u64,
    dtype: i32,
    operation: i32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclReduceScatter", c"hcom_reduceScatter_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        let from = span(send, count * u64::from(group.ranks()), elements)?;
        let (to, operation) = (span(receive, count, elements)?, Operation::new(operation)?);
        Ok(Exchange::ReduceScatter { from, to, operation })
    })
}

/// One gets what all together make.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclReduce(
    send: *mut c_void,
    receive: *mut c_void,
    count: u64,
    dtype: i32,
    operation: i32,
    root: u32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclReduce", c"hcom_reduce_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        group.expect_rank(root)?;
        let to = if group.rank() == root { count } else { 0 };
        let (from, to) = (span(send, count, elements)?, span(receive, to, elements)?);
        Ok(Exchange::Reduce { from, to, operation: Operation::new(operation)?, root })
    })
}

/// Each gets its part of what one has.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclScatter(
    send: *mut c_void,
    receive: *mut c_void,
    count: u64,
    dtype: i32,
    root: u32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclScatter", c"hcom_scatter_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        group.expect_rank(root)?;
        let all = if group.rank() == root { count * u64::from(group.ranks()) } else { 0 };
        Ok(Exchange::Scatter { from: span(send, all, elements)?, to: span(receive, count, elements)?, root })
    })
}

/// Everyone gets a part of the same size from everyone.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclAlltoAll(
    send: *const c_void,
    send_count: u64,
    send_dtype: i32,
    receive: *const c_void,
    receive_count: u64,
    receive_dtype: i32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclAlltoAll", c"hcom_alltoall_");
    let (count, dtype) = (send_count, send_dtype);
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        let parts = |start: *const c_void, count: u64, elements: Elements| {
            let all = span(start, count * u64::from(group.ranks()), elements)?;
            let bytes = all.bytes / group.ranks() as usize;
            let part = |rank: usize| Span { start: all.start + rank * bytes, bytes };
            Ok((0..group.ranks() as usize).map(part).collect::<Vec<Span>>())
        };
        let from = parts(send, send_count, elements)?;
        Ok(Exchange::AllToAll { from, to: parts(receive, receive_count, Elements::new(receive_dtype)?)? })
    })
}

/// Everyone gets a part from everyone, of sizes and at places that arrays on the host tell.
///
/// # Safety
/// Each array is null or holds a number of 64 bits per rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclAlltoAllV(
    send: *const c_void,
    send_counts: *const c_void,
    send_places: *const c_void,
    send_dtype: i32,
    receive: *const c_void,
    receive_counts: *const c_void,
    receive_places: *const c_void,
    receive_dtype: i32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclAlltoAllV", c"hcom_alltoallv_");
    Request { function, kernel, count: 0, dtype: send_dtype, communicator, stream }.queue(
        |elements, group| {
            let parts =
                |start: *const c_void, counts: *const c_void, places: *const c_void, elements: Elements| {
                    // SAFETY: by the caller's promise.
                    let (counts, places) = unsafe { (numbers(counts, group)?, numbers(places, group)?) };
                    let size = elements.size();
                    let part = |(count, place): (u64, u64)| {
                        let whole = span(start, count, elements)?;
                        Ok(Span { start: whole.start + place as usize * size, ..whole })
                    };
                    counts.into_iter().zip(places).map(part).collect::<Result<Vec<Span>>>()
                };
            let from = parts(send, send_counts, send_places, elements)?;
            let to = parts(receive, receive_counts, receive_places, Elements::new(receive_dtype)?)?;
            Ok(Exchange::AllToAll { from, to })
        },
    )
}

/// # Safety
/// `start` is null or holds a number of 64 bits per rank.
unsafe fn numbers(start: *const c_void, group: &Communicator) -> Result<Vec<u64>> {
    if start.is_null() {
        fail!(result::POINTER, "counts or places are null");
    }
    // SAFETY: not null, so the caller vouches for as many as there are ranks.
    Ok((0..group.ranks() as usize)
        .map(|at| unsafe { start.cast::<u64>().add(at).read_unaligned() })
        .collect())
}

/// Sends to one rank.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclSend(
    buffer: *mut c_void,
    count: u64,
    dtype: i32,
    to: u32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclSend", c"hcom_send_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        group.expect_rank(to)?;
        let from = span(buffer, count, elements)?;
        Ok(Exchange::Transfers(vec![Transfer::Send { from, rank: to }]))
    })
}

/// Receives from one rank.
///
/// # Safety
/// None: buffers are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclRecv(
    buffer: *mut c_void,
    count: u64,
    dtype: i32,
    from: u32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclRecv", c"hcom_receive_");
    Request { function, kernel, count, dtype, communicator, stream }.queue(|elements, group| {
        group.expect_rank(from)?;
        let to = span(buffer, count, elements)?;
        Ok(Exchange::Transfers(vec![Transfer::Receive { to, rank: from }]))
    })
}

/// Sends and receives at once.
///
/// # Safety
/// `items` is null or holds `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclBatchSendRecv(
    items: *mut SendRecvItem,
    count: u32,
    communicator: Handle,
    stream: Stream,
) -> i32 {
    let (function, kernel) = (c"HcclBatchSendRecv", c"hcom_batchSendRecv_");
    // SAFETY: null is asked for; else the caller vouches for it.
    let items = match items.is_null() {
        true => &[],
        // SAFETY: as above.
        false => unsafe { std::slice::from_raw_parts(items, count as usize) },
    };
    let dtype = items.first().map_or(0, |item| item.dtype);
    Request {
        function,
        kernel,
        count: items.iter().map(|item| item.count).sum(),
        dtype,
        communicator,
        stream,
    }
    .queue(|_, group| {
        if items.is_empty() {
            fail!(result::POINTER, "there are no items");
        }
        let transfer = |item: &SendRecvItem| {
            group.expect_rank(item.remote)?;
            let (buffer, rank) = (span(item.buffer, item.count, Elements::new(item.dtype)?)?, item.remote);
            Ok(match item.kind {
                0 => Transfer::Send { from: buffer, rank },
                1 => Transfer::Receive { to: buffer, rank },
                kind => fail!(result::PARAMETER, "there is no item of kind {kind}"),
            })
        };
        Ok(Exchange::Transfers(items.iter().map(transfer).collect::<Result<Vec<Transfer>>>()?))
    })
}

/// Waits in the stream until all ranks are here.
///
/// # Safety
/// None: handles are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn HcclBarrier(communicator: Handle, stream: Stream) -> i32 {
    let (function, kernel) = (c"HcclBarrier", c"hcom_barrier_");
    Request { function, kernel, count: 0, dtype: 0, communicator, stream }.queue(|_, _| Ok(Exchange::Barrier))
}
