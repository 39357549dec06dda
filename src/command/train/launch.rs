//! `cresset train --nproc N`: starts the ranks, and sees to it that all of them end.
//!
//! A rank is this program again, with the same arguments, told by variables which rank it is. The standard input of
//! each is a pipe from here: when this process is gone, however it went, the pipe ends and so do the ranks.

use super::super::Outcome;
use super::Arguments;
use super::team::{LAUNCHED, refuse_device};
use cresset::distributed::Rendezvous;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long ranks may take to notice that another failed, before they are ended.
const GRACE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn run(arguments: &Arguments, count: u32) -> Outcome {
    if arguments.device != "npu" {
        return Err(refuse_device(&arguments.device).into());
    }
    let folder = Folder::new()?;
    let timeout = Duration::from_secs(arguments.timeout);
    let directory = folder.0.clone();
    let mut ranks = Ranks::default();
    for rank in 0..count {
        let rendezvous =
            Rendezvous { rank, size: count, local_rank: rank, directory: directory.clone(), timeout };
        ranks.start(&rendezvous)?;
    }
    let asked = ranks.inputs.clone();
    ctrlc::set_handler(move || {
        for input in asked.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            // A rank that is gone is told of elsewhere.
            let _ = input.write_all(b"s").and_then(|()| input.flush());
        }
    })?;
    ranks.wait()
}

/// The processes that were started. None of them outlives it.
#[derive(Default)]
struct Ranks {
    all: Vec<Rank>,
    inputs: Arc<Mutex<Vec<ChildStdin>>>,
}

struct Rank {
    process: Child,
    /// Gives back what it complained of last.
    errors: Option<JoinHandle<String>>,
    end: Option<End>,
}

enum End {
    Status(ExitStatus),
    /// It went on after others had failed.
    Killed,
}

impl Ranks {
    fn start(&mut self, rendezvous: &Rendezvous) -> Outcome {
        let seconds = rendezvous.timeout.as_secs().to_string();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).envs(rendezvous.variables()).env(LAUNCHED, "1");
        command.env("HCCL_EXEC_TIMEOUT", &seconds).env("HCCL_CONNECT_TIMEOUT", &seconds);
        if std::env::var_os("CRESSET_SIM_DEVICES").is_none() {
            command.env("CRESSET_SIM_DEVICES", rendezvous.size.to_string());
        }
        let output = if rendezvous.rank == 0 { Stdio::inherit() } else { Stdio::null() };
        let mut process = command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped()).spawn()?;
        let (input, errors) = (process.stdin.take(), process.stderr.take());
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).extend(input);
        let rank = rendezvous.rank;
        let errors = errors.map(|errors| thread::spawn(move || forward(BufReader::new(errors), rank)));
        self.all.push(Rank { process, errors, end: None });
        Ok(())
    }

    /// Waits until all have ended; once one has failed, the others have little time left.
    fn wait(mut self) -> Outcome {
        let mut failed: Option<Instant> = None;
        loop {
            for rank in &mut self.all {
                if rank.end.is_none()
                    && let Some(status) = rank.process.try_wait()?
                {
                    rank.end = Some(End::Status(status));
                    if !status.success() {
                        failed.get_or_insert_with(Instant::now);
                    }
                }
            }
            if self.all.iter().all(|rank| rank.end.is_some()) {
                return self.told();
            }
            if failed.is_some_and(|since| since.elapsed() > GRACE) {
                self.kill();
                return self.told();
            }
            thread::sleep(PAUSE);
        }
    }

    fn kill(&mut self) {
        for rank in self.all.iter_mut().filter(|rank| rank.end.is_none()) {
            // It may have ended by itself in between.
            let _ = rank.process.kill();
            let _ = rank.process.wait();
            rank.end = Some(End::Killed);
        }
    }

    /// What became of all ranks: nothing to tell, or an error that says of each what failed.
    fn told(mut self) -> Outcome {
        let mut lines = Vec::new();
        for (number, rank) in self.all.iter_mut().enumerate() {
            let last = rank.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
            match rank.end {
                Some(End::Status(status)) if status.success() => {}
                Some(End::Status(status)) => match status.signal() {
                    Some(signal) => lines.insert(0, format!("rank {number} died of signal {signal}")),
                    // What all ranks complain of is told once.
                    None if lines.iter().any(|line: &String| line.ends_with(&last)) => {}
                    None => lines.push(format!("rank {number}: {last}")),
                },
                _ => lines
                    .push(format!("rank {number} did not end within {} s and was killed", GRACE.as_secs())),
            }
        }
        if lines.is_empty() { Ok(()) } else { Err(format!("train: {}", lines.join("\n  ")).into()) }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Shows what a rank says, and gives back its last complaint, which is shown at the end.
fn forward(lines: impl BufRead, rank: u32) -> String {
    let mut complaint = String::new();
    for line in lines.lines().map_while(Result::ok) {
        match line.strip_prefix("error: ") {
            Some(text) => complaint = text.to_owned(),
            None if !complaint.is_empty() => complaint = format!("{complaint}\n  {line}"),
            // Nobody may be there to read it; the rank goes on.
            None if rank == 0 => drop(writeln!(std::io::stderr(), "{line}")),
            None => drop(writeln!(std::io::stderr(), "rank {rank}: {line}")),
        }
    }
    complaint
}

/// A directory for the ranks to find each other in; gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Outcome<Folder> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
        let path = std::env::temp_dir().join(format!("cresset-train-{}-{since}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in a directory for temporary files does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
