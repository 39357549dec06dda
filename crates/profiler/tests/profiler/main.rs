//! The profiler from outside: calls, devices and allocators are made up.

mod check;
mod contract;
mod control;
mod device;
mod examples;
mod execution;
mod export;
mod fake;
mod faults;
mod files;
mod memory;
mod modules;
mod record;
mod report;
mod schedule;
mod sessions;
mod stacks;
mod stream;
mod stress;
mod summary;
mod table;
