//! Figures as texts, with torch's units and torch's rounding.

/// A unit for all times of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Microseconds,
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    pub(super) fn named(name: &str) -> Option<TimeUnit> {
        match name {
            "us" => Some(TimeUnit::Microseconds),
            "ms" => Some(TimeUnit::Milliseconds),
            "s" => Some(TimeUnit::Seconds),
            _ => None,
        }
    }
}

/// Nanoseconds, in `unit` or in one that suits.
pub(crate) fn time(nanos: u64, unit: Option<TimeUnit>) -> String {
    micros(nanos as f64 / 1e3, unit)
}

/// Nanoseconds per event.
pub(crate) fn average(nanos: u64, count: u64, unit: Option<TimeUnit>) -> String {
    // Divided in the order torch does it, so that halves are rounded alike.
    micros(if count == 0 { 0.0 } else { nanos as f64 / 1e3 / count as f64 }, unit)
}

fn micros(micros: f64, unit: Option<TimeUnit>) -> String {
    let automatic = if micros >= 1e6 {
        TimeUnit::Seconds
    } else if micros >= 1e3 {
        TimeUnit::Milliseconds
    } else {
        TimeUnit::Microseconds
    };
    match unit.unwrap_or(automatic) {
        TimeUnit::Microseconds => format!("{micros:.3}us"),
        TimeUnit::Milliseconds => format!("{:.3}ms", micros / 1e3),
        TimeUnit::Seconds => format!("{:.3}s", micros / 1e6),
    }
}

/// Nanoseconds as a part of others.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "NaN".to_owned();
    }
    format!("{:.2}%", part as f64 / 1e3 * 100.0 / (whole as f64 / 1e3))
}

pub(super) fn memory(bytes: i64) -> String {
    let size = bytes as f64;
    match bytes.unsigned_abs() {
        n if n >= 1 << 30 => format!("{:.2} GB", size / (1u64 << 30) as f64),
        n if n >= 1 << 20 => format!("{:.2} MB", size / (1u64 << 20) as f64),
        n if n >= 1 << 10 => format!("{:.2} KB", size / (1u64 << 10) as f64),
        _ => format!("{bytes} B"),
    }
}

/// The name of the thousands that `smallest` is counted in, and what to multiply by.
pub(super) fn flops_unit(smallest: u64) -> (&'static str, f64) {
    const UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];
    let thousands = ((smallest as f64).log10() / 3.0).clamp(0.0, (UNITS.len() - 1) as f64).floor();
    (UNITS[thousands as usize], 10f64.powf(-3.0 * thousands))
}

/// A name with dots for what is beyond `width`.
pub(super) fn cut_end(name: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if name.chars().count() + 3 >= width => {
            name.chars().take(width.saturating_sub(3)).chain("...".chars()).collect()
        }
        _ => name.to_owned(),
    }
}

/// A path with dots for what is beyond `width`, at the front.
pub(super) fn cut_front(path: &str, width: usize) -> String {
    let length = path.chars().count();
    if length <= width {
        return path.to_owned();
    }
    let rest = path.chars().skip(length - width);
    if width > 3 { "...".chars().chain(rest.skip(3)).collect() } else { rest.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_torchs_units() {
        assert_eq!(time(1_234, None), "1.234us");
        assert_eq!(time(1_234_567, None), "1.235ms");
        assert_eq!(time(2_000_000_000, None), "2.000s");
        assert_eq!(time(2_000_000_000, Some(TimeUnit::Milliseconds)), "2000.000ms");
        assert_eq!(average(3_000, 2, None), "1.500us");
        assert_eq!(average(0, 0, None), "0.000us");
        assert_eq!(memory(-1536), "-1.50 KB");
        assert_eq!(memory(512), "512 B");
        assert_eq!(share(1, 3), "33.33%");
        assert_eq!(share(0, 0), "NaN");
        assert_eq!(flops_unit(999).0, "FLOPs");
        assert_eq!(flops_unit(48_000).0, "KFLOPs");
    }

    #[test]
    fn what_is_too_long_is_cut() {
        assert_eq!(cut_end("abcdefgh", Some(10)), "abcdefg...");
        assert_eq!(cut_end("abcdefgh", Some(12)), "abcdefgh");
        assert_eq!(cut_end("abcdefgh", None), "abcdefgh");
        assert_eq!(cut_front("a/b/c.rs:1", 8), "....rs:1");
        assert_eq!(cut_front("abc", 3), "abc");
    }
}
