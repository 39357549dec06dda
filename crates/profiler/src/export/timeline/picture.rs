//! Memory over time as a page with one drawing: categories on top of each other.

use super::Curve;
use crate::memory::MemoryCategory;
use std::fmt::Write as _;
use std::io::{self, Write};

const PAGE: &str = include_str!("timeline.html");
/// The drawing, and the room around the curves.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 84.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 12.0;
/// More moments than this are drawn by the largest of each stretch: a peak is always seen.
const MOMENTS: usize = 2000;

type Bytes = [i64; MemoryCategory::ALL.len()];

fn color(category: MemoryCategory) -> &'static str {
    match category {
        MemoryCategory::Parameter => "#4c86c6",
        MemoryCategory::OptimizerState => "#5a9e57",
        MemoryCategory::Input => "#6b7683",
        MemoryCategory::Temporary => "#c9b26b",
        MemoryCategory::Activation => "#d9823b",
        MemoryCategory::Gradient => "#b0608e",
        MemoryCategory::AutogradDetail => "#8d7fc0",
        MemoryCategory::Unknown => "#b8c0c9",
    }
}

pub(super) fn write(curve: &Curve, device: &str, sink: &mut dyn Write) -> io::Result<()> {
    let peak = curve.bytes.iter().map(total).max().unwrap_or(0);
    for part in PAGE.split("{{") {
        let (place, rest) = part.split_once("}}").unwrap_or(("", part));
        let text = match place {
            "device" => device.to_owned(),
            "peak" => bytes(peak as f64),
            "legend" => legend(curve),
            "drawing" => drawing(curve, peak),
            _ => String::new(),
        };
        sink.write_all(text.as_bytes())?;
        sink.write_all(rest.as_bytes())?;
    }
    Ok(())
}

fn total(bytes: &Bytes) -> i64 {
    bytes.iter().sum()
}

/// Categories that hold anything at all, and their peaks.
fn legend(curve: &Curve) -> String {
    let mut text = String::new();
    for category in MemoryCategory::ALL {
        let peak = curve.bytes.iter().map(|bytes| bytes[category as usize]).max().unwrap_or(0);
        if peak > 0 {
            let (color, name) = (color(category), category.as_str());
            let most = bytes(peak as f64);
            let _ = writeln!(text, "<li><i style=\"background:{color}\"></i>{name} <span>{most}</span></li>");
        }
    }
    text
}

fn drawing(curve: &Curve, peak: i64) -> String {
    let start = curve.times.first().copied().unwrap_or(0);
    let span = curve.times.last().map_or(1, |end| (end - start).max(1)) as f64;
    let x = |time: u64| LEFT + (time.saturating_sub(start)) as f64 / span * (WIDTH - LEFT - 10.0);
    let y = |bytes: i64| HEIGHT - BOTTOM - bytes as f64 / peak.max(1) as f64 * (HEIGHT - BOTTOM - TOP);
    let moments = thinned(curve);
    let mut svg = axes(peak, span, &y);
    let mut base = vec![0; moments.len()];
    for category in MemoryCategory::ALL {
        let top: Vec<i64> =
            moments.iter().zip(&base).map(|((_, bytes), base)| base + bytes[category as usize]).collect();
        if top != base {
            let _ = write!(svg, "<path fill=\"{}\" d=\"", color(category));
            area(&mut svg, &moments, &base, &top, &x, &y);
            let _ = writeln!(svg, "\"><title>{}</title></path>", category.as_str());
        }
        base = top;
    }
    svg
}

/// The outline of what lies between two curves: memory stays as it is until it changes.
fn area(
    svg: &mut String,
    moments: &[(u64, Bytes)],
    base: &[i64],
    top: &[i64],
    x: &impl Fn(u64) -> f64,
    y: &impl Fn(i64) -> f64,
) {
    let at = |i: usize| x(moments[i].0);
    let next = |i: usize| if i + 1 < moments.len() { at(i + 1) } else { WIDTH - 10.0 };
    for (i, &bytes) in top.iter().enumerate() {
        let command = if i == 0 { 'M' } else { 'L' };
        let _ = write!(svg, "{command}{:.1} {:.1}H{:.1}", at(i), y(bytes), next(i));
    }
    for (i, &bytes) in base.iter().enumerate().rev() {
        let _ = write!(svg, "L{:.1} {:.1}H{:.1}", next(i), y(bytes), at(i));
    }
    svg.push('Z');
}

/// At most [`MOMENTS`] moments: of each stretch of time the one with most memory.
fn thinned(curve: &Curve) -> Vec<(u64, Bytes)> {
    let all = || curve.times.iter().copied().zip(curve.bytes.iter().copied());
    if curve.times.len() <= MOMENTS {
        return all().collect();
    }
    let start = curve.times[0];
    let span = (curve.times[curve.times.len() - 1] - start).max(1);
    let stretch = |time: u64| u128::from(time - start) * MOMENTS as u128 / u128::from(span);
    let mut thinned: Vec<(u64, Bytes)> = Vec::with_capacity(MOMENTS);
    for (time, bytes) in all() {
        match thinned.last_mut() {
            Some(last) if stretch(last.0) == stretch(time) => {
                if total(&bytes) > total(&last.1) {
                    last.1 = bytes;
                }
            }
            _ => thinned.push((time, bytes)),
        }
    }
    thinned
}

/// Lines and numbers at round heights and times.
fn axes(peak: i64, micros: f64, y: &impl Fn(i64) -> f64) -> String {
    let mut svg = String::new();
    let step = round_up(peak.max(1) as f64 / 5.0, 2.0);
    let mut height = 0.0;
    while height <= peak as f64 {
        let (line, label) = (y(height as i64), bytes(height));
        let _ = writeln!(svg, "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{line:.1}\" y2=\"{line:.1}\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0,
            line + 4.0
        );
        height += step;
    }
    let step = round_up(micros / 8.0, 10.0);
    let mut time = 0.0;
    while time <= micros {
        let at = LEFT + time / micros * (WIDTH - LEFT - 10.0);
        let (low, label) = (HEIGHT - BOTTOM, milliseconds(time));
        let _ =
            writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", low + 18.0);
        time += step;
    }
    let (middle, low) = ((LEFT + WIDTH) / 2.0, HEIGHT - 6.0);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{low}\" text-anchor=\"middle\">time in ms</text>");
    svg
}

/// The next number that is 1, 2 or 5 (or a power of two) times a power of `base`.
fn round_up(number: f64, base: f64) -> f64 {
    let power = base.powf(number.max(1.0).log(base).floor());
    let steps: &[f64] = if base == 10.0 { &[1.0, 2.0, 5.0, 10.0] } else { &[1.0, 2.0] };
    steps.iter().map(|step| step * power).find(|step| *step >= number).unwrap_or(power * base)
}

fn milliseconds(micros: f64) -> String {
    let text = format!("{:.3}", micros / 1000.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn bytes(count: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (count.max(1.0).log2() / 10.0).floor().clamp(0.0, 4.0);
    let text = format!("{:.2}", count / 1024f64.powf(unit));
    format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), units[unit as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_moments_are_drawn_by_their_peaks() {
        let mut bytes = vec![[0; 8]; 100_000];
        bytes[54_321][0] = 7;
        let curve = Curve { times: (0..100_000).collect(), bytes };
        let thinned = thinned(&curve);
        assert!(thinned.len() <= MOMENTS + 1);
        assert_eq!(thinned.iter().map(|(_, bytes)| total(bytes)).max(), Some(7));
    }

    #[test]
    fn numbers_on_axes_are_round() {
        assert_eq!([round_up(3.0, 10.0), round_up(51.0, 10.0), round_up(0.1, 10.0)], [5.0, 100.0, 1.0]);
        assert_eq!([round_up(700.0, 2.0), round_up(1024.0, 2.0)], [1024.0, 1024.0]);
        assert_eq!([bytes(0.0), bytes(1536.0), bytes(3.0 * 1048576.0)], ["0 B", "1.5 KiB", "3 MiB"]);
        assert_eq!([milliseconds(1500.0), milliseconds(0.0)], ["1.5", "0"]);
    }
}
