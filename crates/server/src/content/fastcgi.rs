//! Requests in FastCGI's terms: the params that PHP finds in `$_SERVER`.

use ::fastcgi::{Error, Params, ParamsEncoder};
use site::{Exchange, FastCgi};

use crate::content::pass::fetch_purpose::{FetchPurpose, NOT_FOR_CACHE};
use crate::exchange::request::Request;
use crate::exchange::variable;

/// The params of `fastcgi_param` and of the client's own fields.
pub fn params(
    request: &mut Request,
    fastcgi: &FastCgi,
    exchange: &Exchange,
    purpose: &FetchPurpose<'_>,
) -> Result<Params, Error> {
    let mut values: Vec<(&[u8], Vec<u8>)> = Vec::with_capacity(fastcgi.params.len());
    for param in &fastcgi.params {
        let value = variable::evaluate(request, &param.value);
        values.push((&param.name, value));
    }
    let validators = purpose.validating.map(|stored| {
        (
            stored.last_modified().map(<[u8]>::to_vec),
            stored.etag().map(<[u8]>::to_vec),
        )
    });
    let mut encoder = ParamsEncoder::new();
    for ((name, value), param) in values.iter().zip(&fastcgi.params) {
        if param.if_not_empty && value.is_empty() {
            encoder.replace_http_field(name);
        } else {
            encoder.push(name, value);
        }
    }
    if let Some((last_modified, etag)) = &validators {
        if let Some(value) = last_modified {
            encoder.push(b"HTTP_IF_MODIFIED_SINCE", value);
        }
        if let Some(value) = etag {
            encoder.push(b"HTTP_IF_NONE_MATCH", value);
        }
    }
    if exchange.pass_request_headers {
        for (name, value) in request.head.fields() {
            let left_out = purpose.for_cache
                && NOT_FOR_CACHE
                    .iter()
                    .any(|field| name.eq_ignore_ascii_case(field.as_bytes()));
            if !left_out {
                encoder.push_http_field(name, value);
            }
        }
    }
    encoder.finish()
}
