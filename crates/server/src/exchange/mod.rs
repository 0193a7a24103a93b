//! Requests, replies, templates and the configuration in force: values that all stages share.
//!
//! The body of a reply may be made while it is sent, of the request, and the request holds the
//! reply once its head is known. So `request`, `delivery` and `reply` import each other in a circle.

pub mod active_configuration;
pub mod cache_facts;
pub mod captures;
pub mod client_facts;
pub mod compiled_location;
pub mod configuration_handle;
pub mod delivery;
pub mod error_page;
pub mod fragment_facts;
pub mod functions;
pub mod guest_visit;
pub mod handled;
pub mod host_name;
pub mod htaccess_site;
pub mod numbers;
pub mod origin;
pub mod own_visit;
pub mod page_budget;
pub mod page_name;
pub mod received_request;
pub mod reply;
pub mod request;
pub mod request_buffers;
pub mod request_fields;
pub mod request_route;
pub mod request_values;
pub mod sent_fields;
pub mod sharing_note;
pub mod slicing;
pub mod subrequest;
#[cfg(test)]
pub mod test_request;
pub mod tracing;
pub mod value;
pub mod variable;
pub mod variable_table;
pub mod variables;
pub mod view;
pub mod without_client;
