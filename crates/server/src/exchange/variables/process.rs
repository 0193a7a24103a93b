//! Facts of the process and its configuration.

use site::Builtin as B;

use crate::exchange::value::{put, put_number};
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;

/// Version of nginx whose language and behaviour this server speaks.
const NGINX_VERSION: &str = "1.31.5";

pub const VARIABLES: Variables = &[
    (
        B::Hostname,
        Of(|request, out| put(Some(request.configuration.hostname.as_bytes()), out)),
    ),
    (
        B::NginxVersion,
        Of(|_, out| put(Some(NGINX_VERSION.as_bytes()), out)),
    ),
    (B::Pid, Of(|_, out| put_number(std::process::id(), out))),
];
