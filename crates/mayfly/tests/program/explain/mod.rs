//! `mayfly explain` and `$cache_reason`: the prediction is the outcome.

mod audit;
mod client;
mod command;
mod inside;
mod litespeed;
mod reasons;

use control::{ExplainRequest, Explanation};
use testkit::running::RunningServer;

/// Returns the server's explanation of a request.
async fn explain(server: &RunningServer, request: &ExplainRequest) -> Explanation {
    let socket = server.path("pid.control");
    let told = control::client::explain(&socket, request).await;
    told.unwrap_or_else(|error| panic!("{request:?}: {error}"))
}

fn get(path: &str) -> ExplainRequest {
    ExplainRequest {
        url: format!("http://site.test{path}"),
        ..ExplainRequest::default()
    }
}

/// Like [`get`], with fields as they are sent.
fn get_with(path: &str, fields: &str) -> ExplainRequest {
    let lines = fields.lines().filter_map(|line| line.split_once(": "));
    let fields = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ExplainRequest {
        fields: fields.collect(),
        ..get(path)
    }
}
