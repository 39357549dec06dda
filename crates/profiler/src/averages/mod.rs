//! Totals per operator: torch's `key_averages`.

mod sum;

use crate::error::Result;
use crate::export;
use crate::session::Recording;
use crate::trace::Trace;
use cresset_trace::{Figure, Row, Table};
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// What besides the name keeps rows apart, and whose rows there are.
///
/// ```
/// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
/// use cresset_profiler::{Grouping, Profiler};
/// let (_, profiler) = Profiler::builder().record_shapes(true).run(|_| {
///     [2, 3, 3].map(|rows| operator("aten::relu").shape(&[rows, 4]).run(|| ()));
/// })?;
/// assert_eq!(profiler.key_averages()?.len(), 1);
/// let by_shape = profiler.key_averages_by(Grouping::default().by_input_shape(true))?;
/// assert_eq!([by_shape[0].count, by_shape[1].count], [1, 2]);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    by_input_shape: bool,
    by_stack: usize,
    by_overload_name: bool,
    include_modules: bool,
}

impl Grouping {
    /// One row per name and shape of the arguments; needs `record_shapes`.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{Grouping, Profiler};
    /// let (_, profiler) = Profiler::builder()
    ///     .record_shapes(true)
    ///     .run(|_| operator("aten::mm").shape(&[2, 3]).shape(&[3, 4]).run(|| ()))?;
    /// let rows = profiler.key_averages_by(Grouping::default().by_input_shape(true))?;
    /// assert_eq!(rows[0].input_shapes.as_deref(), Some("[[2, 3], [3, 4]]"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    #[must_use]
    pub fn by_input_shape(mut self, on: bool) -> Grouping {
        self.by_input_shape = on;
        self
    }

    /// One row per name and innermost `frames` of the stack; needs `with_stack`. With 1, rows
    /// are apart if they were called from different lines. 0 keeps nothing apart.
    ///
    /// ```
    /// # use cresset_profiler::{Grouping, Profiler, record_function};
    /// fn attention() {
    ///     record_function("product").run(|| ())
    /// }
    /// fn feed_forward() {
    ///     record_function("product").run(|| ())
    /// }
    /// let (_, profiler) = Profiler::builder().with_stack(true).run(|_| (attention(), feed_forward()))?;
    /// assert_eq!(profiler.key_averages()?.len(), 1);
    /// let rows = profiler.key_averages_by(Grouping::default().by_stack(1))?;
    /// assert_eq!(rows.len(), 2, "{rows:?}");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    #[must_use]
    pub fn by_stack(mut self, frames: usize) -> Grouping {
        self.by_stack = frames;
        self
    }

    /// One row per name and overload, e.g. `aten::add` with `Tensor` and with `Scalar`; needs
    /// `capture_overload_names`.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{Grouping, Profiler};
    /// let (_, profiler) = Profiler::builder().capture_overload_names(true).run(|_| {
    ///     operator("aten::add").schema("aten::add.Tensor(Tensor self, Tensor other)").run(|| ());
    ///     operator("aten::add").schema("aten::add.Scalar(Tensor self, Scalar other)").run(|| ());
    /// })?;
    /// let rows = profiler.key_averages_by(Grouping::default().by_overload_name(true))?;
    /// assert_eq!(rows.iter().map(|row| &*row.overload_name).collect::<Vec<_>>(), ["Tensor", "Scalar"]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    #[must_use]
    pub fn by_overload_name(mut self, on: bool) -> Grouping {
        self.by_overload_name = on;
        self
    }

    /// Includes calls of modules, recorded with `with_modules`. Otherwise they have no rows, as
    /// torch's have none.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{Grouping, Profiler};
    /// let (_, profiler) = Profiler::builder()
    ///     .with_modules(true)
    ///     .run(|_| operator("Linear").kind(Kind::Module).run(|| operator("aten::linear").run(|| ())))?;
    /// assert_eq!(profiler.key_averages()?.len(), 1);
    /// let rows = profiler.key_averages_by(Grouping::default().include_modules(true))?;
    /// assert_eq!(rows[0].key, "nn.Module: Linear_0");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    #[must_use]
    pub fn include_modules(mut self, on: bool) -> Grouping {
        self.include_modules = on;
        self
    }
}

/// Rows in the order their names were first seen: a slice of [`Row`]s that knows how to show
/// itself.
///
/// ```
/// use cresset_profiler::{Averages, Row};
/// let rows = ["aten::mul", "aten::add"].map(|key| Row { key: key.into(), count: 1, ..Row::default() });
/// let mut averages: Averages = rows.into_iter().collect();
/// averages.sort_by(|a, b| a.key.cmp(&b.key));
/// assert_eq!(averages[0].key, "aten::add");
/// assert_eq!(averages.total_average().count, 2);
/// print!("{}", averages.table());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Averages {
    rows: Vec<Row>,
    pub(crate) has_memory: bool,
    pub(crate) has_flops: bool,
    /// What the device is called in headings.
    pub(crate) device: Option<String>,
}

impl Deref for Averages {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.rows
    }
}

impl DerefMut for Averages {
    fn deref_mut(&mut self) -> &mut [Row] {
        &mut self.rows
    }
}

impl<'a> IntoIterator for &'a Averages {
    type Item = &'a Row;
    type IntoIter = std::slice::Iter<'a, Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

impl IntoIterator for Averages {
    type Item = Row;
    type IntoIter = std::vec::IntoIter<Row>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

/// Rows from elsewhere: chosen, merged or made by hand.
impl FromIterator<Row> for Averages {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Averages {
        let rows: Vec<Row> = rows.into_iter().collect();
        let device = rows.iter().find_map(|row| row.use_device.clone());
        Averages { rows, device, ..Averages::default() }
    }
}

impl Averages {
    pub(crate) fn of<'a>(
        recordings: impl IntoIterator<Item = &'a Recording>,
        grouping: Grouping,
    ) -> Result<Averages> {
        sum::recordings(recordings, grouping)
    }

    pub(crate) fn of_trace(trace: &Trace, grouping: Grouping) -> Averages {
        sum::trace(trace, grouping)
    }

    /// Whether the table has columns for memory.
    ///
    /// ```
    /// # use cresset_profiler::{Averages, Row};
    /// let row = Row { key: "aten::empty".into(), count: 1, cpu_memory_usage: 64, ..Row::default() };
    /// let averages = Averages::from_iter([row]).profile_memory(true);
    /// assert!(averages.table().to_string().contains("CPU Mem"));
    /// ```
    #[must_use]
    pub fn profile_memory(mut self, on: bool) -> Averages {
        self.has_memory = on;
        self
    }

    /// Whether the table has a column for floating-point operations.
    ///
    /// ```
    /// # use cresset_profiler::{Averages, Row};
    /// let row = Row { key: "aten::mm".into(), count: 1, flops: 48_000, ..Row::default() };
    /// let averages = Averages::from_iter([row]).with_flops(true);
    /// assert!(averages.table().to_string().contains("Total KFLOPs"));
    /// ```
    #[must_use]
    pub fn with_flops(mut self, on: bool) -> Averages {
        self.has_flops = on;
        self
    }

    /// The rows as a table.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("load").run(|| ()))?;
    /// let averages = profiler.key_averages()?;
    /// let table = averages.table().sort_by("cpu_time_total")?.row_limit(10).to_string();
    /// assert!(table.contains("load") && table.contains("Self CPU time total: "));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn table(&self) -> Table<'_> {
        Table::new(&self.rows)
            .profile_memory(self.has_memory)
            .with_flops(self.has_flops)
            .device(self.device.as_deref())
    }

    /// Sorts the rows by the figure called `key`, the largest first.
    ///
    /// ```
    /// # use cresset_profiler::{Averages, Row};
    /// let mut averages: Averages =
    ///     [1, 3, 2].into_iter().map(|count| Row { count, ..Row::default() }).collect();
    /// averages.sort_by_key_name("count")?;
    /// assert_eq!(averages[0].count, 3);
    /// assert!(averages.sort_by_key_name("bogus").is_err());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such figure.
    pub fn sort_by_key_name(&mut self, key: &str) -> Result<()> {
        let figure = Figure::named(key)?;
        self.rows.sort_by(|a, b| figure.compare(b, a));
        Ok(())
    }

    /// Host time of all rows, counted once.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder()
    ///     .run(|_| record_function("outer").run(|| record_function("inner").run(|| ())))?;
    /// let outer = profiler.events()?.next().unwrap();
    /// assert_eq!(profiler.key_averages()?.self_cpu_time_total(), outer.duration());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn self_cpu_time_total(&self) -> u64 {
        cresset_trace::self_cpu_time_total(&self.rows)
    }

    /// Device time of all work, counted once.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let (_, profiler) =
    ///     Profiler::builder().run(|_| operator("aten::add").on(npu()).run(|| launch("Add", 3000)))?;
    /// assert_eq!(profiler.key_averages()?.self_device_time_total(), 3000);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn self_device_time_total(&self) -> u64 {
        cresset_trace::self_device_time_total(&self.rows)
    }

    /// All rows added up, as a row called `Total`.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| {
    ///     ["load", "train", "train"].map(|name| record_function(name).run(|| ()));
    /// })?;
    /// let total = profiler.key_averages()?.total_average();
    /// assert_eq!((&*total.key, total.count), ("Total", 3));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn total_average(&self) -> Row {
        let mut total = Row { key: "Total".to_owned(), device_type: "CPU".to_owned(), ..Row::default() };
        self.rows.iter().for_each(|row| total.add(row));
        total
    }

    /// Writes the rows as a trace: one slice each, as long as its total, one after the other.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-averages-{}.json", std::process::id()));
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("load").run(|| ()))?;
    /// profiler.key_averages()?.export_chrome_trace(&path)?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains("load"));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        export::averages::export(self, path.as_ref())
    }
}
