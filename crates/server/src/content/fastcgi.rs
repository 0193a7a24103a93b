//! Requests in FastCGI's terms: the params that PHP finds in `$_SERVER`, and the variables
//! `$fastcgi_script_name` and `$fastcgi_path_info`.

use ::fastcgi::{Error, Params, ParamsEncoder};
use cache_decision::litespeed;
use site::{Builtin as B, Content, Exchange, FastCgi};

use crate::content::pass::fetch_purpose::{ESI_CAPABILITY, FetchPurpose};
use crate::exchange::request::Request;
use crate::exchange::request_values::PathInfo;
use crate::exchange::value::put;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::route::pattern;

/// The param that passes PHP the mark of lines that name tags (`cache_tags ... stderr`).
const TAG_MARK: &[u8] = b"MAYFLY_TAG_MARK";

/// Params by which PHP-FPM is configured: no variable of a site has such a name.
const SETTINGS_OF_PHP: [&[u8]; 2] = [b"PHP_VALUE", b"PHP_ADMIN_VALUE"];

pub const VARIABLES: Variables = &[
    (B::FastcgiPathInfo, Of(put_path_info)),
    (B::FastcgiScriptName, Of(put_script_name)),
];

/// The params of `fastcgi_param` and of the client's own fields.
pub fn params(
    request: &Request,
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
    let has_path_info = values
        .iter()
        .any(|(name, value)| *name == b"PATH_INFO" && !value.is_empty());
    for (name, value) in &request.route.script_variables {
        let name = name.as_bytes();
        let is_own =
            fastcgi.params.iter().any(|param| *param.name == *name) && name != b"REDIRECT_STATUS";
        let is_for_php = SETTINGS_OF_PHP.contains(&name) || name.starts_with(b"MAYFLY_");
        // PHP-FPM takes the path info away from a script that has both.
        let hides_path_info = has_path_info && name == b"REDIRECT_URL";
        if !is_own && !is_for_php && !hides_path_info {
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
    if let Some(mark) = purpose.tag_mark {
        encoder.push(TAG_MARK, mark.as_bytes());
    }
    if let Some(number) = purpose.learned_fetch {
        encoder.push(learning::FETCH_PARAMETER, number.to_string().as_bytes());
    }
    if request.settings().esi.is_on() {
        encoder.push(b"HTTP_SURROGATE_CAPABILITY", ESI_CAPABILITY);
    }
    if exchange.litespeed {
        let announcement = litespeed::announcement(request.settings().esi.is_on());
        // Both spellings: the one of a server behind a proxy, and that of LiteSpeed's own
        // server.
        encoder.push(b"HTTP_X_LSCACHE", announcement);
        encoder.push(b"X-LSCACHE", announcement);
        if let Some(value) = purpose.vary_value {
            encoder.push(b"HTTP_X_LSCACHE_VARY_VALUE", value.as_bytes());
        }
    }
    if let Some(trace) = purpose.trace {
        encoder.push_http_field(b"traceparent", trace.traceparent.as_bytes());
        if !trace.tracestate.is_empty() {
            encoder.push_http_field(b"tracestate", trace.tracestate.as_bytes());
        }
    }
    if exchange.pass_request_headers {
        for (name, value) in request.received.head().fields() {
            if !purpose.leaves_out(request, exchange, name) {
                encoder.push_http_field(name, value);
            }
        }
    }
    encoder.finish()
}

fn put_script_name(request: &Request, out: &mut Vec<u8>) -> bool {
    split_path_info(request);
    if put_split(request, |split| &split.script, out) {
        return true;
    }
    out.extend_from_slice(&request.route.path);
    if request.route.path.last() == Some(&b'/')
        && let Content::Pass(pass) = &request.settings().content
        && let Some(fastcgi) = pass.fastcgi()
        && let Some(index) = &fastcgi.index
    {
        out.extend_from_slice(index);
    }
    true
}

fn put_path_info(request: &Request, out: &mut Vec<u8>) -> bool {
    split_path_info(request);
    put_split(request, |split| &split.info, out);
    true
}

/// Appends a part of the split path; false if the path was not split.
fn put_split(request: &Request, part: fn(&PathInfo) -> &Vec<u8>, out: &mut Vec<u8>) -> bool {
    let values = &request.values;
    values.read(|values| put(values.path_info.as_ref().map(|split| &part(split)[..]), out))
}

/// Runs `fastcgi_split_path_info` once for the current path.
fn split_path_info(request: &Request) {
    let Content::Pass(pass) = &request.settings().content else {
        return;
    };
    let Some(pattern) = pass
        .fastcgi()
        .and_then(|fastcgi| fastcgi.split_path_info.as_ref())
    else {
        return;
    };
    let path = &request.route.path;
    let is_split = |split: &PathInfo| split.for_path == *path;
    if request
        .values
        .read(|values| values.path_info.as_ref().is_some_and(is_split))
    {
        return;
    }
    request.values.forget_path_info();
    if let Some(locations) = pattern::captures(request, pattern, path) {
        let group = |number| {
            locations
                .get(number)
                .and_then(|(start, end)| path.get(start..end))
                .unwrap_or_default()
                .to_vec()
        };
        let split = PathInfo {
            for_path: path.clone(),
            script: group(1),
            info: group(2),
        };
        request
            .values
            .write(|values| values.path_info = Some(split));
    }
}
