//! The C functions as a foreign program sees them.

mod support;

mod collective; // communication between devices
mod context; // who may call what, and on which thread
mod event; // order across streams, and time
mod exports; // the shared library has every function of the tables
mod fault; // failures on demand
mod memory; // device memory is not host memory
mod objects; // descriptors and executors are used as they should be
mod operators; // results against direct computation
mod records; // what the tracing library tells
mod stream; // order, asynchrony, errors
