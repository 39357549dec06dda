//! Traces as files.

pub(crate) mod averages;
pub(crate) mod chrome;
mod device;
mod file;
pub(crate) mod handler;
mod host;
mod json;
pub(crate) mod report;
pub(crate) mod speedscope;
pub(crate) mod stacks;
pub(crate) mod timeline;

pub(crate) use file::write as write_file;
pub(crate) use json::quoted;
