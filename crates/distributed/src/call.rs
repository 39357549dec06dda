//! A collective as profiles see it: under the name, and with the arguments, that torch gives it.

use crate::backend::Collective;
use cresset_dispatch::Device;
use cresset_dispatch::observe::{Argument, Call, Communication, Kind, Name};
use cresset_tensor::Tensor;

/// One collective of a group.
pub(crate) struct CollectiveCall<'a> {
    pub(crate) collective: Collective<'a>,
    pub(crate) group: &'a str,
    pub(crate) ranks: &'a [u32],
    pub(crate) rank: u32,
    /// How many collectives the group had before.
    pub(crate) sequence: u64,
    pub(crate) device: Device,
}

impl<'a> Collective<'a> {
    /// Torch's name of it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Collective::AllReduce { .. } => "allreduce",
            Collective::Reduce { .. } => "reduce",
            Collective::Broadcast { .. } => "broadcast",
            Collective::AllGather { .. } => "_allgather_base",
            Collective::ReduceScatter { .. } => "_reduce_scatter_base",
            Collective::Send { .. } => "send",
            Collective::Receive { .. } => "recv",
            Collective::Barrier => "barrier",
        }
    }

    /// What it reads and what it writes.
    pub(crate) fn tensors(&self) -> Option<(&'a Tensor, &'a Tensor)> {
        match *self {
            Collective::AllReduce { tensor, .. }
            | Collective::Reduce { tensor, .. }
            | Collective::Broadcast { tensor, .. }
            | Collective::Send { tensor, .. }
            | Collective::Receive { tensor, .. } => Some((tensor, tensor)),
            Collective::AllGather { from, to } | Collective::ReduceScatter { from, to, .. } => {
                Some((from, to))
            }
            Collective::Barrier => None,
        }
    }

    /// The ranks that it goes from and to, where it goes between two.
    fn ends(&self, rank: u32) -> (Option<u32>, Option<u32>) {
        match *self {
            Collective::Send { to, .. } => (Some(rank), Some(to)),
            Collective::Receive { from, .. } => (Some(from), Some(rank)),
            _ => (None, None),
        }
    }
}

impl Call for CollectiveCall<'_> {
    fn name(&self) -> Name<'_> {
        Name::Static("record_param_comms")
    }

    fn kind(&self) -> Kind {
        Kind::Communication
    }

    fn device(&self) -> Option<Device> {
        Some(self.device)
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        match self.collective.tensors() {
            Some((from, _)) => visit(Argument::Tensors(&[from.argument()])),
            None => visit(Argument::Tensors(&[])),
        }
        visit(Argument::Int(self.sequence as i64));
        visit(Argument::Text(self.group));
        visit(Argument::Int(self.rank.into()));
        visit(Argument::Text(self.collective.name()));
        visit(Argument::Ints(&[]));
        visit(Argument::Ints(&[]));
        visit(Argument::Int(self.ranks.first().copied().unwrap_or(0).into()));
        visit(Argument::Int(1));
        visit(Argument::Int(self.ranks.len() as i64));
    }

    fn communication(&self) -> Option<Communication<'_>> {
        let tensors = self.collective.tensors();
        let (source, target) = self.collective.ends(self.rank);
        Some(Communication {
            collective: self.collective.name(),
            elements_in: tensors.map_or(0, |(from, _)| from.numel() as u64),
            elements_out: tensors.map_or(0, |(_, to)| to.numel() as u64),
            dtype: tensors.map_or("u8", |(from, _)| from.dtype().name()),
            group: self.group,
            ranks: self.ranks,
            rank: self.rank,
            source,
            target,
            sequence: self.sequence,
        })
    }
}
