//! HTTP/2 with prior knowledge, on a port that also speaks HTTP/1.

mod ending;
mod h2spec;
mod requests;
pub mod smuggling;
mod streams;
mod through_cache;
pub mod uploads;
mod waiting;

use testkit::http2::{FrameClient, Http2Client};
use testkit::running::RunningServer;

/// A server with one virtual server that has these directives and speaks HTTP/2.
async fn site(directives: &str) -> RunningServer {
    site_with("", directives).await
}

/// Like [`site`], with more in the http block.
async fn site_with(http: &str, directives: &str) -> RunningServer {
    crate::site_with(http, &format!("http2 on;\n{directives}")).await
}

async fn client(server: &RunningServer) -> Http2Client {
    Http2Client::connect(&server.path("http")).await
}

async fn frames(server: &RunningServer) -> FrameClient {
    FrameClient::connect(&server.path("http")).await
}

/// The pseudo-fields of a request, for [`testkit::http2::headers`].
const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "site.test"),
    (":path", "/"),
];

const POST: [(&str, &str); 4] = [(":method", "POST"), GET[1], GET[2], GET[3]];

/// These pseudo-fields and then these fields.
fn with<'a>(
    pseudo: &[(&'a str, &'a str)],
    fields: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    [pseudo, fields].concat()
}
