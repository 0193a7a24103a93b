//! Requests as they come from a client of this machine, for tests.

use std::sync::Arc;

use transport::facts::{ConnectionFacts, LocalAddress};
use transport::service::ReceivedHead;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::request::Request;

/// A request with this line, such as `GET /a?b`, and these field lines, for the first server. It is in no
/// location yet.
pub fn received(
    configuration: &Arc<ActiveConfiguration>,
    (line, fields): (&str, &str),
    now: u64,
) -> Box<Request> {
    let text = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
    let head = http1::parse_head(text, &http1::HeadLimits::default()).unwrap();
    let connection = ConnectionFacts {
        serial: 1,
        peer: Some("127.0.0.1:1".parse().unwrap()),
        local: LocalAddress::Ip("127.0.0.1:80".parse().unwrap()),
        scheme: "http",
        accepted_at: 0,
        proxy: None,
        tls: None,
        lacks_tls: false,
    };
    let handle = ConfigurationHandle::new(configuration.clone());
    let server = site::ServerId(0);
    let received = ReceivedHead::made(connection, head, now);
    let mut request = Request::new(handle, received, None, server, now);
    let host = http_semantics::parse_host(b"localhost").unwrap();
    request.received.believe_host(b"localhost", &host);
    let (_, target) = line.split_once(' ').unwrap();
    let (path, args) = target.split_once('?').unwrap_or((target, ""));
    request.route.path = path.into();
    request.route.args = args.into();
    request
}
