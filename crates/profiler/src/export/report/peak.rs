//! What a device can do at best.

/// The best speeds that were measured on a device, for a report to compare with.
///
/// ```
/// let peak = cresset_profiler::Peak {
///     flops: 1.2e11,
///     bandwidth: 1.5e10,
///     source: "matrix product of 1024 x 1024, sum of 64 MiB".to_owned(),
/// };
/// assert_eq!(peak.at(2.0), 3e10);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Peak {
    /// Floating-point operations per second.
    pub flops: f64,
    /// Bytes read and written per second.
    pub bandwidth: f64,
    /// How it was measured, in words.
    pub source: String,
}

impl Peak {
    /// The best speed, in operations per second, of work that makes `intensity` operations per
    /// byte: memory is the limit of little, the processor of much.
    ///
    /// ```
    /// # use cresset_profiler::Peak;
    /// let peak = Peak { flops: 100.0, bandwidth: 10.0, source: "a toy".to_owned() };
    /// assert_eq!([peak.at(2.0), peak.at(50.0)], [20.0, 100.0]);
    /// ```
    pub fn at(&self, intensity: f64) -> f64 {
        self.flops.min(self.bandwidth * intensity)
    }
}
