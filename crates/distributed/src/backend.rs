//! What carries tensors from rank to rank.

use cresset_tensor::{Device, Result, Tensor};

/// What becomes of the elements that all ranks have at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// Something that all ranks of a group do together, each with tensors of its own. Tensors are contiguous.
#[derive(Clone, Copy, Debug)]
pub enum Collective<'a> {
    /// Every rank's tensor becomes what all of them together make.
    AllReduce {
        /// What is reduced, in place.
        tensor: &'a Tensor,
        /// How.
        reduce: Reduce,
    },
    /// The tensor of one rank becomes what all of them together make.
    Reduce {
        /// What is reduced, in place at the root.
        tensor: &'a Tensor,
        /// How.
        reduce: Reduce,
        /// The rank that gets it.
        root: u32,
    },
    /// Every rank's tensor becomes that of one rank.
    Broadcast {
        /// What is given, or overwritten.
        tensor: &'a Tensor,
        /// The rank that gives it.
        root: u32,
    },
    /// Every rank gets the tensors of all, one after the other.
    AllGather {
        /// What this rank gives.
        from: &'a Tensor,
        /// As many times larger as there are ranks.
        to: &'a Tensor,
    },
    /// Every rank gets its part of what all together make.
    ReduceScatter {
        /// A part for every rank.
        from: &'a Tensor,
        /// This rank's part.
        to: &'a Tensor,
        /// How.
        reduce: Reduce,
    },
    /// A tensor goes to another rank.
    Send {
        /// What is sent.
        tensor: &'a Tensor,
        /// The rank that receives it.
        to: u32,
    },
    /// A tensor comes from another rank.
    Receive {
        /// What is overwritten.
        tensor: &'a Tensor,
        /// The rank that sends it.
        from: u32,
    },
    /// Nothing, but all must have come.
    Barrier,
}

/// Which other rank a collective is about.
pub(crate) enum About {
    /// All of them alike.
    All,
    /// One that gives or gets what all have a part in.
    Root(u32),
    /// One that is not this process.
    Peer(u32),
}

impl Collective<'_> {
    pub(crate) fn about(&self) -> About {
        match *self {
            Collective::Reduce { root, .. } | Collective::Broadcast { root, .. } => About::Root(root),
            Collective::Send { to: peer, .. } | Collective::Receive { from: peer, .. } => About::Peer(peer),
            _ => About::All,
        }
    }
}

/// A collective that was started.
pub trait Pending: Send {
    /// Makes all that this thread does from now on come after the collective. On a device it is the stream that
    /// waits, and not the host.
    ///
    /// # Errors
    /// What is known to have failed.
    fn wait(&self) -> Result<()>;

    /// Waits on the host until it is done.
    ///
    /// # Errors
    /// What failed: another rank is gone, gave up, or did not come in time.
    fn synchronize(&self) -> Result<()>;
}

/// A library that communicates, as one rank of one group sees it.
pub trait Backend: Send + Sync + 'static {
    /// What traces call it, e.g. `hccl`.
    fn name(&self) -> &'static str;

    /// Where its tensors are.
    fn device(&self) -> Device;

    /// Which rank this process is.
    fn rank(&self) -> u32;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Starts a collective after all that this thread did so far. Ranks in it are of the group, and those that it
    /// sends to or receives from are others.
    ///
    /// # Errors
    /// If the tensors are not what it can carry.
    fn start(&self, collective: Collective<'_>) -> Result<Box<dyn Pending>>;
}

/// A group of one rank, which has nobody to talk to: what programs that can be distributed use when they are not.
pub struct Alone(Device);

impl Alone {
    /// The only rank of a group, on `device`.
    pub fn new(device: Device) -> Alone {
        Alone(device)
    }
}

impl Backend for Alone {
    fn name(&self) -> &'static str {
        "alone"
    }

    fn device(&self) -> Device {
        self.0
    }

    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn start(&self, collective: Collective<'_>) -> Result<Box<dyn Pending>> {
        if let Collective::AllGather { from, to } | Collective::ReduceScatter { from, to, .. } = collective {
            to.copy_(&from.reshape(to.shape())?)?;
        }
        Ok(Box::new(Done))
    }
}

/// What was done at once.
struct Done;

impl Pending for Done {
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}
