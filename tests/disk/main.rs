//! A disk that fails: the first call that writes, then the second, … until a run gets through. Each failure is an
//! error, what was there before is intact, and nothing is left half done.
//!
//! The functions of the C library that the standard library writes files with are defined anew here; this test is a
//! program of its own for that reason.

#![cfg(target_os = "linux")]

mod checkpoints;
mod exports;
mod faulty;
