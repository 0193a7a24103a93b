//! Requests, replies, templates and the configuration in force: values that all stages share.

pub mod active_configuration;
pub mod captures;
pub mod charset_map;
pub mod compiled_location;
pub mod configuration_handle;
pub mod extras;
pub mod forwarded_for;
pub mod functions;
pub mod handled;
pub mod reply;
pub mod request;
pub mod slicing;
pub mod value;
pub mod variable;
pub mod variable_table;
pub mod variables;
pub mod view;
pub mod without_client;
