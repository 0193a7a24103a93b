//! Whole configurations as their authors published them.

mod combinations;
mod microcache;

use testkit::fake_php::{FakePhp, Script};

/// The `fastcgi_params` of distributions, as far as pages differ by it.
const FASTCGI_PARAMS: &str = "fastcgi_param QUERY_STRING $query_string;\n\
    fastcgi_param REQUEST_METHOD $request_method;\n\
    fastcgi_param CONTENT_TYPE $content_type;\n\
    fastcgi_param CONTENT_LENGTH $content_length;\n\
    fastcgi_param SCRIPT_NAME $fastcgi_script_name;\n\
    fastcgi_param REQUEST_URI $request_uri;\n\
    fastcgi_param DOCUMENT_ROOT $document_root;\n";

/// PHP whose pages have the request that made them, with this head.
pub async fn pages(head: &'static str) -> FakePhp {
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
