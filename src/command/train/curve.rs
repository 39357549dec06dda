//! The loss over time: as JSON lines, and as a picture.

use super::super::Outcome;
use super::write_whole;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// One step.
pub(super) struct Point {
    pub(super) step: u64,
    pub(super) epoch: u64,
    pub(super) loss: f64,
    pub(super) lr: f64,
    pub(super) seconds: f64,
}

/// Writes the points to `path`, and a picture of them beside it.
pub(super) fn write(path: &Path, points: &[Point], title: &str) -> Outcome {
    let line = |point: &Point| {
        let Point { step, epoch, loss, lr, seconds } = point;
        format!("{}\n", json!({"step": step, "epoch": epoch, "loss": loss, "lr": lr, "seconds": seconds}))
    };
    let lines: String = points.iter().map(line).collect();
    write_whole(path, &lines)?;
    write_whole(&path.with_extension("svg"), &draw(points, title))
}

const SIZE: [f64; 2] = [720.0, 360.0];
/// Left, top, right, bottom.
const MARGIN: [f64; 4] = [56.0, 36.0, 16.0, 40.0];
/// Points of the smoothed line are means of so many steps, at the least.
const SMOOTH: usize = 20;

/// The loss of each step, faint, and a mean of steps around it.
fn draw(points: &[Point], title: &str) -> String {
    let [width, height] = SIZE;
    let [left, top, right, bottom] = MARGIN;
    let most = points.iter().map(|point| point.loss).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let (first, last) = match points {
        [first, .., last] => (first.step as f64, last.step as f64),
        _ => (0.0, 1.0),
    };
    let x = |step: f64| left + (step - first) / (last - first).max(1.0) * (width - left - right);
    let y = |loss: f64| height - bottom - loss / most * (height - top - bottom);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{left}\" y=\"20\" font-size=\"14\" fill=\"#222222\">Training loss of {title}</text>\n"
    );
    for part in 0..=4 {
        let loss = most * f64::from(part) / 4.0;
        let (at, end, label) = (y(loss), width - right, left - 8.0);
        let _ = write!(
            out,
            "<line x1=\"{left}\" x2=\"{end}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>\n\
             <text x=\"{label}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666666\">{loss:.2}</text>\n",
            at + 4.0
        );
        let step = first + (last - first) * f64::from(part) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666666\">{step:.0}</text>",
            x(step),
            height - bottom + 18.0
        );
    }
    let each = points.iter().map(|point| (point.step as f64, point.loss));
    let window = SMOOTH.max(points.len() / 60);
    let smooth = points.chunks(window).map(|chunk| {
        let count = chunk.len() as f64;
        let mean = |of: fn(&Point) -> f64| chunk.iter().map(of).sum::<f64>() / count;
        (mean(|point| point.step as f64), mean(|point| point.loss))
    });
    for (line, style) in [
        (each.collect::<Vec<_>>(), "stroke=\"#9ec5e8\" stroke-width=\"1\""),
        (smooth.collect(), "stroke=\"#1f6fb2\" stroke-width=\"2\""),
    ] {
        let places: String =
            line.iter().map(|&(step, loss)| format!("{:.1},{:.1} ", x(step), y(loss))).collect();
        let _ = writeln!(out, "<polyline fill=\"none\" {style} points=\"{}\"/>", places.trim_end());
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666666\">step</text>\n</svg>",
        (left + width - right) / 2.0,
        height - 6.0
    );
    out
}
