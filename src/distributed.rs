//! Training on several devices: groups of processes, over the library that their devices communicate through.
//!
//! `docs/distributed.md` is the guide.

pub use cresset_distributed::*;

use crate::{Device, Result};

/// Joins the group `name` with all processes that were started together, and waits for them.
///
/// # Errors
/// If the devices cannot communicate, or another rank does not come in time.
#[cfg(feature = "npu")]
pub fn join(rendezvous: &Rendezvous, device: Device, name: &str) -> Result<ProcessGroup> {
    use cresset_npu::{Communicator, RootInfo};
    if device.key.name() != "npu" {
        return Err(no_library(device));
    }
    let make = || RootInfo::new(device).map(|root| root.as_bytes().to_vec());
    let root = RootInfo::from_bytes(&rendezvous.share(&format!("{name}.root"), make)?)?;
    let (rank, size) = (rendezvous.rank, rendezvous.size);
    let communicator = Communicator::join(device, &root, rank, size, name)?;
    ProcessGroup::new(hccl::Hccl::new(communicator), name)
}

/// Says that this build has no devices that communicate.
///
/// # Errors
/// Always.
#[cfg(not(feature = "npu"))]
pub fn join(_: &Rendezvous, device: Device, _: &str) -> Result<ProcessGroup> {
    Err(no_library(device))
}

fn no_library(device: Device) -> crate::Error {
    let text = format_args!("nothing carries tensors between processes on {device}; expected npu");
    crate::Error::new(crate::tensor::Cause::Device, "join", text)
}

#[cfg(feature = "npu")]
pub use hccl::Hccl;

#[cfg(feature = "npu")]
mod hccl {
    //! The vendor's library as what carries tensors.

    use crate::{Device, Result};
    use cresset_distributed::{Backend, Collective, Pending, Reduce};
    use cresset_npu::{Communicator, Queued, Reduction};

    /// A group of NPUs.
    pub struct Hccl(Communicator);

    impl Hccl {
        /// A group that was joined.
        pub fn new(communicator: Communicator) -> Hccl {
            Hccl(communicator)
        }
    }

    impl Backend for Hccl {
        fn name(&self) -> &'static str {
            "hccl"
        }

        fn device(&self) -> Device {
            self.0.device()
        }

        fn rank(&self) -> u32 {
            self.0.rank()
        }

        fn size(&self) -> u32 {
            self.0.size()
        }

        fn start(&self, collective: Collective<'_>) -> Result<Box<dyn Pending>> {
            let group = &self.0;
            let queued = match collective {
                Collective::AllReduce { tensor, reduce } => group.all_reduce(tensor, reduction(reduce)),
                Collective::Reduce { tensor, reduce, root } => group.reduce(tensor, reduction(reduce), root),
                Collective::Broadcast { tensor, root } => group.broadcast(tensor, root),
                Collective::AllGather { from, to } => group.all_gather(from, to),
                Collective::ReduceScatter { from, to, reduce } => {
                    group.reduce_scatter(from, to, reduction(reduce))
                }
                Collective::Send { tensor, to } => group.send(tensor, to),
                Collective::Receive { tensor, from } => group.receive(tensor, from),
                Collective::Barrier => group.barrier(),
            };
            Ok(Box::new(OnStream(queued?)))
        }
    }

    fn reduction(reduce: Reduce) -> Reduction {
        match reduce {
            Reduce::Sum => Reduction::Sum,
            Reduce::Product => Reduction::Product,
            Reduce::Max => Reduction::Max,
            Reduce::Min => Reduction::Min,
        }
    }

    struct OnStream(Queued);

    impl Pending for OnStream {
        fn wait(&self) -> Result<()> {
            self.0.wait()
        }

        fn synchronize(&self) -> Result<()> {
            self.0.synchronize()
        }
    }
}
