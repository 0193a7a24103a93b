//! The address of a collector, and the protocol to it.

use std::fmt;

/// The path of the one method of gRPC that is called.
const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// How batches are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf in the body of a POST (OTLP/HTTP).
    Http,
    /// OTLP/gRPC, over HTTP/2.
    Grpc,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// A name or an address, without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    pub is_tls: bool,
    /// With one it is OTLP/HTTP, without one OTLP/gRPC.
    pub path: Option<String>,
}

impl Endpoint {
    pub fn protocol(&self) -> Protocol {
        match self.path {
            Some(_) => Protocol::Http,
            None => Protocol::Grpc,
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(GRPC_PATH)
    }

    /// Host and port as a request names them.
    pub(crate) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Writes the endpoint in the form of the configuration.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        let path = self.path.as_deref().unwrap_or_default();
        write!(f, "{scheme}://{}{path}", self.authority())
    }
}
