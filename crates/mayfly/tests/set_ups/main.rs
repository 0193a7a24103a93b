//! Whole set-ups as their authors published them, and what is said to an administrator
//! about a configuration that does not fit.
//!
//! `MAYFLY_UNDER_TEST=PATH` runs another build of the program instead, to see what it
//! does with them.

mod access_log;
mod applications;
mod messages;
mod microcache;
mod post;
mod published;
mod purge;
mod variables;

use testkit::client::Reply;
use testkit::fake_php::{FakePhp, Script};
use testkit::running::Running;

/// The program under test.
fn program() -> String {
    std::env::var("MAYFLY_UNDER_TEST").unwrap_or_else(|_| env!("CARGO_BIN_EXE_mayfly").to_owned())
}

/// What distributions ship as `fastcgi_params`, as far as pages are told apart by it.
const FASTCGI_PARAMS: &str = "fastcgi_param QUERY_STRING $query_string;\n\
    fastcgi_param REQUEST_METHOD $request_method;\n\
    fastcgi_param CONTENT_TYPE $content_type;\n\
    fastcgi_param CONTENT_LENGTH $content_length;\n\
    fastcgi_param SCRIPT_NAME $fastcgi_script_name;\n\
    fastcgi_param REQUEST_URI $request_uri;\n\
    fastcgi_param DOCUMENT_ROOT $document_root;\n";

async fn start(http: &str) -> Running {
    Running::start(&program(), "", http).await
}

/// PHP whose pages say which request made them, with this head.
async fn pages(head: &'static str) -> FakePhp {
    FakePhp::tcp(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        Script::page(
            head,
            format!(
                "{} {} {body} run {}",
                request.param("REQUEST_METHOD"),
                request.param("REQUEST_URI"),
                request.number
            ),
        )
    })
    .await
}

fn cache(reply: &Reply) -> &str {
    reply.field("x-cache")
}
