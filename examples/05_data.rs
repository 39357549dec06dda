//! Data of your own: tables, samples made on demand, loaders with workers: `cargo run --example 05_data`.

use cresset::data::{Csv, DataLoader, Each, TensorDataset};
use cresset::prelude::*;
use cresset::{Error, Result};

const FLOWERS: &str = "length,width,kind\n5.1,1.4,0\n7.0,4.7,1\n6.3,6.0,2\n4.9,1.5,0\n6.4,4.5,1\n";

/// Points on a circle, made when they are asked for.
struct Circle(usize);

impl Each for Circle {
    type Sample = (Tensor, i64);
    type Batch = [Tensor; 2];

    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, i: usize) -> Result<(Tensor, i64)> {
        let angle = i as f32 / self.0 as f32 * std::f32::consts::TAU;
        Ok((Tensor::new([angle.cos(), angle.sin()])?, i as i64))
    }

    fn collate(&self, samples: Vec<(Tensor, i64)>) -> Result<[Tensor; 2]> {
        let (points, numbers): (Vec<Tensor>, Vec<i64>) = samples.into_iter().unzip();
        Ok([Tensor::stack(&points.iter().collect::<Vec<_>>(), 0)?, Tensor::new(numbers)?])
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A table with a header. `Csv::default().read(path)` does the same for files, `.gz` too.
    let table = Csv::default().header(true).parse(FLOWERS)?;
    let sizes = table.columns(&["length", "width"])?;
    let kinds = table.column("kind")?.to_dtype(DType::I64)?;
    println!("{sizes}\n{kinds}");
    println!("{}", error(Csv::default().header(true).parse("a,b\n1,2\n3,x\n")));

    // Two to a batch, in an order that a seed and the number of the epoch decide.
    let loader = DataLoader::builder(TensorDataset::new([sizes, kinds])?).batch_size(2).shuffle(7).build()?;
    for epoch in 0..2 {
        for batch in loader.epoch(epoch) {
            let [sizes, kinds] = batch?;
            println!("epoch {epoch}: {:?} {:?}", sizes.shape(), kinds.to_vec::<i64>()?);
        }
    }

    // Samples made by two threads ahead of time come in the same order as without them.
    let loader = DataLoader::builder(Circle(6)).batch_size(4).workers(2).prefetch(2).build()?;
    for batch in loader.epoch(0) {
        let [points, numbers] = batch?;
        println!("{:?} {:?}", points.shape(), numbers.to_vec::<i64>()?);
    }
    Ok(())
}

fn error<T>(result: Result<T>) -> Error {
    result.err().expect("it is wrong on purpose")
}
