//! Requests, replies, templates and the configuration in force: values that all stages share.

pub mod active_configuration;
pub mod compiled_location;
pub mod configuration_handle;
pub mod extras;
pub mod handled;
pub mod pattern;
pub mod reply;
pub mod request;
pub mod slicing;
pub mod variable;
