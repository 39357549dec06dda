//! `cresset doctor`: which devices there are, and which library serves them.

use super::{Outcome, say};

pub(crate) fn run() -> Outcome {
    say(format_args!("cresset {}", env!("CARGO_PKG_VERSION")))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    say(format_args!("cpu: {} {}, {threads} threads", std::env::consts::ARCH, std::env::consts::OS))?;
    let found = cresset::load_npu().map_err(Into::into).and_then(|()| cresset::npu::info());
    let report = match found {
        Ok(info) => info.to_string(),
        Err(error) => error.to_string(),
    };
    say("npu:")?;
    report.lines().try_for_each(|line| say(format_args!("  {line}")))
}
