//! What the fuzz targets do with one input, each in a module of its own with what it promises.
//!
//! The targets hand their inputs over and do nothing else. A test of the workspace (`tests/tests/fuzz.rs`)
//! compiles these files as well and runs the seeds through them, so they follow what they test without a
//! nightly compiler.

pub mod bson_to_json;
pub mod column_default;
pub mod log_position;
pub mod pipeline;
pub mod program;
pub mod properties;
pub mod resume_token;
pub mod signals;
