// Operators, a device and an allocator that are made up, for the examples of the documentation.

pub use cresset_dispatch::activity::{self, Activity, Failure, Properties, Source, Work};
pub use cresset_dispatch::observe::{self, Argument, Call, Kind, Name, Sequence, TensorArgument};
pub use cresset_dispatch::{Device, Key, memory, thread};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// A call with whatever an example gives it.
pub struct Operator {
    name: &'static str,
    kind: Kind,
    device: Device,
    shapes: Vec<Vec<usize>>,
    flops: u64,
    sequence: Option<Sequence>,
    schema: &'static str,
}

pub fn operator(name: &'static str) -> Operator {
    let (kind, device, shapes) = (Kind::Operator, Device::CPU, Vec::new());
    Operator { name, kind, device, shapes, flops: 0, sequence: None, schema: "" }
}

impl Operator {
    pub fn kind(self, kind: Kind) -> Operator {
        Operator { kind, ..self }
    }

    pub fn on(self, device: Device) -> Operator {
        Operator { device, ..self }
    }

    pub fn shape(mut self, shape: &[usize]) -> Operator {
        self.shapes.push(shape.to_vec());
        self
    }

    pub fn flops(self, flops: u64) -> Operator {
        Operator { flops, ..self }
    }

    pub fn sequence(self, number: u64, forward_thread: u32) -> Operator {
        Operator { sequence: Some(Sequence { number, forward_thread }), ..self }
    }

    pub fn schema(self, schema: &'static str) -> Operator {
        Operator { schema, ..self }
    }

    pub fn run<R>(self, body: impl FnOnce() -> R) -> R {
        let _span = observe::span(&self);
        body()
    }
}

impl Call for Operator {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn schema(&self) -> &'static str {
        self.schema
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn device(&self) -> Option<Device> {
        Some(self.device)
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        for shape in &self.shapes {
            let strides: Vec<usize> = (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect();
            visit(Argument::Tensor(TensorArgument { shape, strides: &strides, dtype: "f32", source: None }));
        }
    }

    fn flops(&self) -> u64 {
        self.flops
    }

    fn sequence(&self) -> Option<Sequence> {
        self.sequence
    }
}

struct Npu(Mutex<Vec<Activity>>);

static NPU: Npu = Npu(Mutex::new(Vec::new()));

impl Source for Npu {
    fn start(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn drain(&self, sink: &mut dyn FnMut(Activity)) -> Result<(), Failure> {
        self.0.lock().unwrap().drain(..).for_each(sink);
        Ok(())
    }

    fn stop(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn devices(&self, visit: &mut dyn FnMut(Properties)) {
        visit(Properties { device: npu(), name: "made up".to_owned(), memory: 1 << 30 });
    }
}

/// The device, plugged in.
pub fn npu() -> Device {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| assert!(activity::register(&NPU)));
    Device { key: Key::claim("npu").unwrap(), index: 0 }
}

/// Launches a kernel on stream 1 of the device, from the innermost call.
pub fn launch(name: &str, nanoseconds: u64) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let host = Activity {
        work: Work::Launch,
        name: format!("aclnn{name}"),
        unit: String::new(),
        device: npu(),
        lane: os_thread(),
        start,
        end: start + 1,
        correlation: NEXT.fetch_add(1, Relaxed),
        call: observe::current(),
        bytes: 0,
    };
    let (name, unit) = (name.to_owned(), "AI_CORE".to_owned());
    let end = start + 1 + nanoseconds;
    let kernel = Activity { work: Work::Kernel, name, unit, lane: 1, start: start + 1, end, ..host.clone() };
    NPU.0.lock().unwrap().extend([host, kernel]);
}

fn os_thread() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Takes memory of the host, as an allocator does.
pub fn allocate(bytes: i64) {
    static TOTAL: AtomicU64 = AtomicU64::new(0);
    let allocated = TOTAL.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    let device = Device::CPU;
    memory::report(|| memory::Report { device, address: allocated as usize, bytes, allocated, reserved: 0 });
}
