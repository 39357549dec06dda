//! Random programs on several streams, held against the same programs on the host.
//!
//! A program keeps its streams in order as it must: who reads waits for who wrote, who writes waits for all.
//! Everything else is the backend's duty: memory that is dropped while some stream still reads it, blocks that
//! wander between streams, copies that are under way. `CRESSET_SOAK` says how many programs to run.

use crate::support::{alone_each, assert_close, npu, numbers};
use cresset_npu::{Stream, memory_allocated, memory_stats, synchronize};
use cresset_tensor::{Device, Result, Tensor, To};

/// A small generator of repeatable noise.
struct Noise(u64);

impl Noise {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % count
    }
}

/// A tensor on the device, the same on the host, and who has to do with its memory.
struct Value {
    there: Tensor,
    here: Tensor,
    memory: usize,
}

/// What streams have done to a piece of memory.
#[derive(Clone, Default)]
struct Uses {
    writer: usize,
    readers: Vec<usize>,
}

struct Program {
    device: Device,
    streams: Vec<Stream>,
    values: Vec<Value>,
    memory: Vec<Uses>,
    noise: Noise,
    /// Copies to the host that nobody has looked at yet.
    under_way: Vec<(Tensor, Tensor)>,
}

const SIZE: usize = 12;
const STEPS: usize = 40;
const MOST_VALUES: usize = 8;

type Function = fn(&[&Tensor]) -> Result<Tensor>;

/// What makes a new tensor of one or two others; results stay small.
const FUNCTIONS: [(usize, Function); 9] = [
    (2, |x| x[0].add(x[1])?.mul(0.5)),
    (2, |x| x[0].sub(x[1])?.tanh()),
    (2, |x| x[0].mul(x[1])),
    (2, |x| x[0].maximum(x[1])),
    (2, |x| x[0].mm(x[1])?.mul(1.0 / SIZE as f64)),
    (1, |x| x[0].neg()?.relu()),
    (1, |x| x[0].t()?.add(0.25)?.tanh()),
    (1, |x| x[0].sum_dims(&[0], true)?.mul(1.0 / SIZE as f64)?.expand([SIZE, SIZE])?.sub(x[0])),
    (1, |x| x[0].copy()),
];

impl Program {
    fn new(seed: u64) -> Program {
        let device = npu();
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut streams = vec![Stream::default_of(device).unwrap()];
        streams.extend((0..1 + noise.below(3)).map(|_| Stream::new(device).unwrap()));
        Program { device, streams, values: vec![], memory: vec![], noise, under_way: vec![] }
    }

    fn step(&mut self) -> Result<()> {
        let stream = self.noise.below(self.streams.len());
        let handle = self.streams[stream].clone();
        let _on_stream = handle.enter();
        match self.noise.below(20) {
            _ if self.values.len() < 2 => self.upload(stream),
            0 => self.upload(stream),
            1..3 if self.values.len() > 2 => {
                let at = self.noise.below(self.values.len());
                self.values.swap_remove(at);
                Ok(())
            }
            3..6 => self.change(stream),
            6 => self.view(),
            7 => self.download(stream),
            8 => {
                self.compare_downloads();
                Ok(())
            }
            _ => self.compute(stream),
        }
    }

    fn new_memory(&mut self, writer: usize) -> usize {
        self.memory.push(Uses { writer, readers: vec![] });
        self.memory.len() - 1
    }

    fn keep(&mut self, value: Value) {
        if self.values.len() == MOST_VALUES {
            let at = self.noise.below(MOST_VALUES);
            self.values.swap_remove(at);
        }
        self.values.push(value);
    }

    fn pick(&mut self) -> usize {
        self.noise.below(self.values.len())
    }

    /// Lets `stream` wait for whoever wrote a value.
    fn reads(&mut self, stream: usize, value: usize) -> Result<()> {
        let memory = self.values[value].memory;
        let writer = self.memory[memory].writer;
        self.streams[stream].wait_for(&self.streams[writer])?;
        self.memory[memory].readers.push(stream);
        Ok(())
    }

    /// Lets `stream` wait for all who had to do with a value.
    fn writes(&mut self, stream: usize, value: usize) -> Result<()> {
        let uses = std::mem::take(&mut self.memory[self.values[value].memory]);
        for other in uses.readers.iter().chain([&uses.writer]) {
            self.streams[stream].wait_for(&self.streams[*other])?;
        }
        self.memory[self.values[value].memory].writer = stream;
        Ok(())
    }

    fn upload(&mut self, stream: usize) -> Result<()> {
        let here = numbers(&[SIZE, SIZE], self.noise.below(1 << 20) as u64);
        let there = match self.noise.below(2) {
            0 => here.to(self.device)?,
            _ => here.pin_memory()?.to(To {
                device: Some(self.device),
                non_blocking: true,
                ..To::default()
            })?,
        };
        let memory = self.new_memory(stream);
        self.keep(Value { there, here, memory });
        Ok(())
    }

    fn compute(&mut self, stream: usize) -> Result<()> {
        let (count, function) = FUNCTIONS[self.noise.below(FUNCTIONS.len())];
        let picked: Vec<usize> = (0..count).map(|_| self.pick()).collect();
        picked.iter().try_for_each(|&value| self.reads(stream, value))?;
        let there: Vec<&Tensor> = picked.iter().map(|&value| &self.values[value].there).collect();
        let here: Vec<&Tensor> = picked.iter().map(|&value| &self.values[value].here).collect();
        let (there, here) = (function(&there)?, function(&here)?);
        let memory = self.new_memory(stream);
        self.keep(Value { there, here, memory });
        Ok(())
    }

    /// Changes a value, or the part of memory that it shows, in place.
    fn change(&mut self, stream: usize) -> Result<()> {
        let (target, source) = (self.pick(), self.pick());
        if self.values[target].memory == self.values[source].memory {
            return Ok(());
        }
        self.reads(stream, source)?;
        self.writes(stream, target)?;
        let kind = self.noise.below(3);
        let [there, here] = [|value: &Value| value.there.clone(), |value: &Value| value.here.clone()];
        for side in [there, here] {
            let (target, source) = (side(&self.values[target]), side(&self.values[source]));
            match kind {
                0 => target.mul_(0.5)?,
                1 => target.add_(&source.mul(0.125)?)?,
                _ => target.copy_(&source)?,
            }
        }
        Ok(())
    }

    fn view(&mut self) -> Result<()> {
        let value = &self.values[self.noise.below(self.values.len())];
        let kind = self.noise.0 >> 40 & 1;
        // A view of all elements, so that it can stand wherever a tensor does.
        let seen = |x: &Tensor| if kind == 0 { x.t() } else { x.view([SIZE, SIZE]).or_else(|_| x.t()) };
        let view = Value { there: seen(&value.there)?, here: seen(&value.here)?, memory: value.memory };
        self.keep(view);
        Ok(())
    }

    fn download(&mut self, stream: usize) -> Result<()> {
        let value = self.pick();
        self.reads(stream, value)?;
        let later = To { device: Some(Device::CPU), non_blocking: true, ..To::default() };
        let copy = self.values[value].there.to(later)?;
        self.under_way.push((copy, self.values[value].here.copy()?));
        Ok(())
    }

    fn compare_downloads(&mut self) {
        for (copy, expected) in self.under_way.drain(..) {
            assert_close("a copy", &copy, &expected, 1e-4);
        }
    }

    fn finish(mut self, seed: u64) {
        self.compare_downloads();
        let main = &self.streams[0];
        self.streams.iter().for_each(|stream| main.wait_for(stream).unwrap());
        for (at, value) in self.values.iter().enumerate() {
            assert_close(&format!("program {seed}, value {at}"), &value.there, &value.here, 1e-4);
        }
    }
}

#[test]
fn random_programs_on_several_streams_give_what_they_give_on_the_host() {
    let name = "soak::random_programs_on_several_streams_give_what_they_give_on_the_host";
    // At once, as late as can be, and in any order that streams and events allow.
    let modes = ["eager", "lazy", "random:1"].map(|order| vec![("CRESSET_SIM_ASYNC", order)]);
    alone_each(name, &modes, || {
        let programs = std::env::var("CRESSET_SOAK").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
        for seed in 1..=programs {
            let mut program = Program::new(seed);
            for step in 0..STEPS {
                program.step().unwrap_or_else(|error| panic!("program {seed}, step {step}: {error}"));
            }
            program.finish(seed);
        }
        synchronize(npu()).unwrap();
        assert_eq!(memory_allocated(npu()), 0);
        let stats = memory_stats(npu());
        assert_eq!(stats.allocation.all.allocated, stats.allocation.all.freed);
    });
}
