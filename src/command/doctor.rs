//! `cresset doctor`: which devices there are, and which library serves them.

use super::Outcome;

pub(crate) fn run() -> Outcome {
    println!("cresset {}", env!("CARGO_PKG_VERSION"));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("cpu: {} {}, {threads} threads", std::env::consts::ARCH, std::env::consts::OS);
    cresset::device("npu")?;
    let info = cresset::npu::info()?;
    println!("npu:");
    for line in info.to_string().lines() {
        println!("  {line}");
    }
    Ok(())
}
