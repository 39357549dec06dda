//! CSV: one sample a line, one number a column.

use super::{fault, open};
use cresset_tensor::{Cause, Error, Result, Tensor};
use std::io::Read;
use std::path::Path;

const READER: &str = "Csv";

/// How a CSV file is read.
///
/// ```
/// use cresset_data::Csv;
///
/// let table = Csv::default().header(true).parse("width,height,class\n1.5,2,0\n3,4.5,1\n")?;
/// let (features, classes) = (table.columns(&["width", "height"])?, table.column("class")?);
/// assert_eq!(features.to_vec::<f32>()?, [1.5, 2.0, 3.0, 4.5]);
/// assert_eq!(classes.to_vec::<f32>()?, [0.0, 1.0]);
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Csv {
    header: bool,
    delimiter: u8,
}

impl Default for Csv {
    /// Commas, and no names.
    fn default() -> Csv {
        Csv { header: false, delimiter: b',' }
    }
}

impl Csv {
    /// Whether the first line has the names of the columns.
    #[must_use]
    pub fn header(mut self, on: bool) -> Csv {
        self.header = on;
        self
    }

    /// What stands between two columns; a comma unless said otherwise.
    #[must_use]
    pub fn delimiter(mut self, byte: u8) -> Csv {
        self.delimiter = byte;
        self
    }

    /// Reads the file `path`, unpacked if its name ends in `.gz`.
    ///
    /// # Errors
    /// If it cannot be read, has no samples, lines of different lengths, or a field that is no number:
    /// with file, line and column.
    pub fn read(self, path: impl AsRef<Path>) -> Result<Table> {
        let path = path.as_ref();
        self.table(path, open(READER, path)?)
    }

    /// Reads `text`.
    ///
    /// # Errors
    /// As [`read`](Csv::read).
    pub fn parse(self, text: &str) -> Result<Table> {
        self.table(Path::new("text"), text.as_bytes())
    }

    fn table(self, path: &Path, source: impl Read) -> Result<Table> {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(self.header).delimiter(self.delimiter).from_reader(source);
        let told = |error: csv::Error| fault(READER, path, error);
        let names: Vec<String> = match self.header {
            true => reader.headers().map_err(told)?.iter().map(|name| name.trim().to_owned()).collect(),
            false => Vec::new(),
        };
        let (mut rows, mut width, mut values) = (0, names.len(), Vec::new());
        for record in reader.records() {
            let record = record.map_err(told)?;
            let line = record.position().map_or(0, csv::Position::line);
            for (column, field) in record.iter().enumerate() {
                let number = field.trim().parse::<f32>().map_err(|_| {
                    fault(
                        READER,
                        path,
                        format_args!("line {line}, column {}: {field:?} is no number", column + 1),
                    )
                })?;
                values.push(number);
            }
            (rows, width) = (rows + 1, record.len());
        }
        if rows == 0 {
            return Err(fault(READER, path, "has no samples"));
        }
        Ok(Table { names, values: Tensor::from_vec(values, [rows, width])? })
    }
}

/// Numbers in rows and columns, and the names of the columns if the file had them.
pub struct Table {
    names: Vec<String>,
    values: Tensor,
}

impl Table {
    /// The names of the columns; none if the file had none.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// All of it, `f32`, a row per sample.
    pub fn values(&self) -> &Tensor {
        &self.values
    }

    /// One column, an element per sample.
    ///
    /// # Errors
    /// If no column is called `name`.
    pub fn column(&self, name: &str) -> Result<Tensor> {
        self.values.select(1, self.find(name)? as isize)
    }

    /// Some columns, in this order, a row per sample.
    ///
    /// # Errors
    /// If no column has one of the names.
    pub fn columns(&self, names: &[&str]) -> Result<Tensor> {
        let places = names.iter().map(|name| Ok(self.find(name)? as i64)).collect::<Result<Vec<i64>>>()?;
        self.values.index_select(1, &Tensor::from_slice(&places, [places.len()])?)
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|known| known == name).ok_or_else(|| {
            let known = match self.names.is_empty() {
                true => "the file has no names; ask for them with header(true)".to_owned(),
                false => format!("there are {}", self.names.join(", ")),
            };
            Error::new(Cause::Argument, READER, format_args!("no column is called {name:?}; {known}"))
        })
    }
}
