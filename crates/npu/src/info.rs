//! Which library is in use, and what it drives.

use crate::allocator::Bytes;
use crate::sys::{self, Origin};
use crate::{LoadError, activity, device};
use std::fmt;

/// What [`info`] tells. Its text is what `cresset doctor` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The libraries in use, or the name of the table that the program embeds.
    pub library: String,
    /// Whether the functions are embedded in the program: there is no hardware then.
    pub is_embedded: bool,
    /// What the chip is called. A simulated one says so here.
    pub soc: String,
    /// The release, e.g. `CANN 9.1.0`, or the interface's version where the library cannot tell.
    pub version: String,
    /// How many devices there are.
    pub devices: usize,
    /// Free bytes and all bytes of each device.
    pub memory: Vec<(usize, usize)>,
    /// What cannot be traced, and why; empty if all can, as far as was tried.
    pub untraced: Vec<String>,
    /// What was tried in vain before the library was found.
    pub tried: Vec<String>,
}

/// What is in use, asked anew each time.
///
/// # Errors
/// Before [`init`](crate::init), and if the library fails.
pub fn info() -> Result<Info, Box<dyn std::error::Error + Send + Sync>> {
    let Some(loaded) = sys::try_loaded() else { return Err("call npu::init first".into()) };
    let devices = device::device_count();
    let memory = (0..devices).map(|index| device::memory(index as u8)).collect::<Result<_, _>>()?;
    Ok(Info {
        library: loaded.origin.describe(),
        is_embedded: matches!(loaded.origin, Origin::Embedded { .. }),
        soc: device::name(),
        version: device::version()?,
        devices,
        memory,
        untraced: untraced(loaded.tracing.as_ref().err()),
        tried: crate::tried().to_vec(),
    })
}

fn untraced(missing: Option<&LoadError>) -> Vec<String> {
    match missing {
        Some(error) => {
            vec![format!(
                "names of kernels, and their own times: events around each call stand in\n  {error}"
            )]
        }
        None => activity::untraced(),
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "library  {}", self.library)?;
        writeln!(f, "version  {}", self.version)?;
        writeln!(f, "chip     {}", self.soc)?;
        write!(f, "devices  {}", self.devices)?;
        for (index, &(free, total)) in self.memory.iter().enumerate() {
            write!(f, "\nnpu:{index}    {} of {} free", Bytes(free), Bytes(total))?;
        }
        self.untraced.iter().try_for_each(|what| write!(f, "\nuntraced {what}"))?;
        self.tried.iter().try_for_each(|what| write!(f, "\ntried    {what}"))
    }
}
