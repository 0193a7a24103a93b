//! The body of a client's request, read for a handler as the location's directives say.

use std::sync::atomic::Ordering::Relaxed;

use site::{BodySettings, LogLevel};
use transport::client::ClientSide;
use transport::request_body::RequestBody;

use crate::exchange::request::Request;
use crate::log::error_log;

/// Reads the whole body; the error is the status that the client gets.
pub async fn read(request: &Request, client: &mut ClientSide) -> Result<RequestBody, u16> {
    let settings = request.settings();
    let (read, wire_bytes) = match request.configuration.site.http.uses_request_body_file {
        true => {
            let named = BodySettings {
                has_name: true,
                ..settings.body.clone()
            };
            client.read_body(&named).await
        }
        false => client.read_body(&settings.body).await,
    };
    request.received_bytes.fetch_add(wire_bytes, Relaxed);
    read.map_err(|error| {
        let status = error.status();
        let level = match status {
            500 => LogLevel::Crit,
            _ => LogLevel::Info,
        };
        error_log::request(request, level, format_args!("{error}"));
        status
    })
}
