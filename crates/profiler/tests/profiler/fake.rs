//! Calls, a device and an allocator to be recorded.

use cresset_dispatch::activity::{self, Activity, Direction, Failure, Properties, Source, Work};
use cresset_dispatch::observe::{self, Argument, Call, Kind, Name, Sequence, TensorArgument};
use cresset_dispatch::{Device, Key, memory};
use parking_lot::{Mutex, MutexGuard};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// One test at a time: sessions see all threads.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock()
}

/// A call with whatever a test gives it.
#[derive(Clone)]
pub(crate) struct Op {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) device: Option<Device>,
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) flops: u64,
    pub(crate) sequence: Option<Sequence>,
    pub(crate) schema: &'static str,
    pub(crate) instance: u64,
}

impl Op {
    pub(crate) fn new(name: &'static str) -> Op {
        Op {
            name,
            kind: Kind::Operator,
            device: Some(Device::CPU),
            shapes: vec![],
            flops: 0,
            sequence: None,
            schema: "",
            instance: 0,
        }
    }

    pub(crate) fn kind(self, kind: Kind) -> Op {
        Op { kind, ..self }
    }

    pub(crate) fn on(self, device: Device) -> Op {
        Op { device: Some(device), ..self }
    }

    pub(crate) fn shapes(self, shapes: &[&[usize]]) -> Op {
        Op { shapes: shapes.iter().map(|shape| shape.to_vec()).collect(), ..self }
    }

    pub(crate) fn flops(self, flops: u64) -> Op {
        Op { flops, ..self }
    }

    pub(crate) fn sequence(self, number: u64, forward_thread: u32) -> Op {
        Op { sequence: Some(Sequence { number, forward_thread }), ..self }
    }

    pub(crate) fn schema(self, schema: &'static str) -> Op {
        Op { schema, ..self }
    }

    /// A module's call.
    pub(crate) fn module(name: &'static str, instance: u64) -> Op {
        Op { kind: Kind::Module, device: None, instance, ..Op::new(name) }
    }

    /// Makes the call, with `body` inside.
    pub(crate) fn run<R>(self, body: impl FnOnce() -> R) -> R {
        let _span = observe::span(&self);
        body()
    }
}

impl Call for Op {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn schema(&self) -> &'static str {
        self.schema
    }

    fn instance(&self) -> u64 {
        self.instance
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn device(&self) -> Option<Device> {
        self.device
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        for shape in &self.shapes {
            let strides: Vec<usize> = (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect();
            visit(Argument::Tensor(TensorArgument { shape, strides: &strides, dtype: "f32", source: None }));
        }
        if !self.shapes.is_empty() {
            visit(Argument::Float(1.0));
        }
    }

    fn flops(&self) -> u64 {
        self.flops
    }

    fn sequence(&self) -> Option<Sequence> {
        self.sequence
    }
}

/// An operator that does nothing.
pub(crate) fn op(name: &'static str) {
    Op::new(name).run(|| ());
}

/// The made-up device.
pub(crate) fn npu() -> Device {
    Device { key: Key::claim("npu").expect("a slot is free"), index: 0 }
}

pub(crate) struct Npu {
    activities: Mutex<Vec<Activity>>,
    pub(crate) running: AtomicBool,
    pub(crate) fails_to_start: AtomicBool,
    pub(crate) fails_to_drain: AtomicBool,
}

pub(crate) static NPU: Npu = Npu {
    activities: Mutex::new(Vec::new()),
    running: AtomicBool::new(false),
    fails_to_start: AtomicBool::new(false),
    fails_to_drain: AtomicBool::new(false),
};

impl Source for Npu {
    fn start(&self) -> Result<(), Failure> {
        if self.fails_to_start.load(Relaxed) {
            return Err("profiling is switched off in the driver".into());
        }
        self.running.store(true, Relaxed);
        Ok(())
    }

    fn drain(&self, sink: &mut dyn FnMut(Activity)) -> Result<(), Failure> {
        if self.fails_to_drain.load(Relaxed) {
            return Err("device lost".into());
        }
        self.activities.lock().drain(..).for_each(sink);
        Ok(())
    }

    fn poll(&self, sink: &mut dyn FnMut(Activity)) -> Result<(), Failure> {
        let now = now();
        self.activities.lock().extract_if(.., |activity| activity.end < now).for_each(sink);
        Ok(())
    }

    fn stop(&self) -> Result<(), Failure> {
        self.running.store(false, Relaxed);
        self.activities.lock().clear();
        Ok(())
    }

    fn devices(&self, visit: &mut dyn FnMut(Properties)) {
        visit(Properties { device: npu(), name: "Simulated NPU".to_owned(), memory: 1 << 30 });
    }
}

/// Plugs the device in.
pub(crate) fn plug_in() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| assert!(activity::register(&NPU)));
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn os_thread() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Launches work of `nanos` on stream 0, from the innermost call. Returns its correlation.
pub(crate) fn launch(api: &str, name: &str, work: Work, bytes: u64, nanos: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(100);
    static FREE: AtomicU64 = AtomicU64::new(0);
    let correlation = NEXT.fetch_add(1, Relaxed);
    let (call, start) = (observe::current(), now());
    let mut end = now();
    while end < start + 500 {
        end = now();
    }
    let begin = FREE.load(Relaxed).max(end + 200);
    FREE.store(begin + nanos + 100, Relaxed);
    let host = Activity {
        work: Work::Launch,
        name: api.to_owned(),
        unit: String::new(),
        device: npu(),
        lane: os_thread(),
        start,
        end,
        correlation,
        call,
        bytes: 0,
    };
    let device = Activity {
        work,
        name: name.to_owned(),
        unit: "AI_CORE".to_owned(),
        lane: 0,
        start: begin,
        end: begin + nanos,
        bytes,
        ..host.clone()
    };
    NPU.activities.lock().extend([host, device]);
    correlation
}

pub(crate) fn launch_kernel(name: &str, nanos: u64) -> u64 {
    launch("aclnnAdd", name, Work::Kernel, 0, nanos)
}

pub(crate) fn launch_copy(bytes: u64, nanos: u64) -> u64 {
    let work = Work::Copy { direction: Direction::HostToDevice };
    launch("aclrtMemcpyAsync", "MemcpyAsync", work, bytes, nanos)
}

/// An allocator that only counts.
pub(crate) struct Allocator {
    device: Device,
    total: Mutex<u64>,
}

impl Allocator {
    pub(crate) fn new(device: Device) -> Allocator {
        Allocator { device, total: Mutex::new(1000) }
    }

    pub(crate) fn report(&self, address: usize, bytes: i64) {
        let mut total = self.total.lock();
        *total = total.checked_add_signed(bytes).unwrap();
        let allocated = *total;
        memory::report(|| memory::Report { device: self.device, address, bytes, allocated, reserved: 0 });
    }
}

/// A fresh directory for one test, below those of the build: what is left there is overwritten by
/// the next run.
pub(crate) fn directory(name: &str) -> std::path::PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profiler").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A trace from a file, compressed or not.
pub(crate) fn read(path: &Path) -> serde_json::Value {
    let bytes = std::fs::read(path).unwrap();
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return serde_json::from_slice(&bytes).unwrap();
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Runs the test `name` in a process of its own, which [knows](is_child) that it is one, after the shell
/// did `setup`.
pub(crate) fn child(name: &str, setup: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{setup} exec \"$0\" --exact {name} --nocapture"));
    command.arg(std::env::current_exe().unwrap()).env("CRESSET_CHILD", "1");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whether this process was made by [`child`].
pub(crate) fn is_child() -> bool {
    std::env::var_os("CRESSET_CHILD").is_some()
}
