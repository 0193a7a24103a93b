//! The body of a client's request, read for a handler as the location's directives say.

use site::{BodySettings, LogLevel};
use transport::client::ClientSide;
use transport::request_body::RequestBody;

use crate::exchange::request::Request;
use crate::log::error_log;

/// Reads the whole body into the request; the error is the status that the client gets.
pub async fn read(request: &mut Request, client: &mut ClientSide) -> Result<(), u16> {
    let settings = request.settings_held();
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
    request.received_bytes += wire_bytes;
    match read {
        Ok(body) => {
            request.body = body;
            Ok(())
        }
        Err(error) => {
            let status = error.status();
            let level = match status {
                500 => LogLevel::Crit,
                _ => LogLevel::Info,
            };
            // No one reads a part of it, not even an error page.
            request.body = RequestBody::None;
            error_log::request(request, level, format_args!("{error}"));
            Err(status)
        }
    }
}
