//! Requests that PHP answers: `fastcgi_pass`. Reads the body as the directives
//! say, puts the params together, and turns what came back into a reply.

use std::sync::Arc;

use ::fastcgi::{Params, ParamsEncoder};
use bytes::Bytes;
use http_cache::{KeyRef, Millis, PurgeMode, PurgeTarget, StoredResponse};
use http1::Fields;
use site::{FastCgi, LogLevel, PassTarget};
use upstream::Group;

use crate::body::RequestBody;
use crate::client::ClientSide;
use crate::error_log;
use crate::fetch::{self, FetchError, FetchSpec, Fetched, LogContext};
use crate::pipeline::Handled;
use crate::policy::{self, CachePlan};
use crate::reply::{Body, Reply, ReplyHead};
use crate::request::{Method, Request};
use crate::serve::through_cache;
use crate::variable;

/// What can be said without waiting for anybody.
pub enum AtOnce {
    Handled(Handled),
    /// Somebody has to be asked.
    Must(CachePlan),
}

/// Plans, and answers if memory has a fresh answer.
pub fn at_once(request: &mut Request, fastcgi: &FastCgi) -> AtOnce {
    match policy::plan(request, fastcgi) {
        CachePlan::Purge { zone, key } => AtOnce::Handled(purge(request, &zone, &key)),
        CachePlan::Use(plan) => match through_cache::fresh(request, &plan) {
            Some(handled) => {
                request.cache.key = plan.key;
                AtOnce::Handled(handled)
            }
            None => AtOnce::Must(CachePlan::Use(plan)),
        },
        plan => AtOnce::Must(plan),
    }
}

/// Answers with what PHP says, through the cache where there is one.
pub async fn serve(
    request: &mut Request,
    fastcgi: Arc<FastCgi>,
    plan: CachePlan,
    client: &mut ClientSide,
) -> Handled {
    match plan {
        CachePlan::Off => direct(request, fastcgi, client).await,
        CachePlan::Purge { zone, key } => purge(request, &zone, &key),
        CachePlan::Invalidate { zone, key } => {
            let handled = direct(request, fastcgi, client).await;
            if let Handled::Reply(reply) = &handled
                && (200..400).contains(&reply.head.status)
            {
                let now = Millis(crate::clock::now());
                zone.purge(PurgeTarget::Key(KeyRef::new(&key)), PurgeMode::Hard, now);
            }
            handled
        }
        CachePlan::Use(plan) => {
            request.cache.key.clone_from(&plan.key);
            through_cache::serve(request, fastcgi, *plan, client).await
        }
    }
}

fn purge(request: &Request, zone: &http_cache::Zone, key: &[u8]) -> Handled {
    let target = match key.strip_suffix(b"*") {
        Some(prefix) => PurgeTarget::Prefix(prefix),
        None => PurgeTarget::Key(KeyRef::new(key)),
    };
    let purged = zone.purge(target, PurgeMode::Hard, Millis(request.now));
    if purged.responses == 0 {
        return Handled::Status(404);
    }
    let body = format!(
        "<html>\r\n<head><title>Successful purge</title></head>\r\n<body bgcolor=\"white\">\r\n\
         <center><h1>Successful purge</h1><p>Key : {}</p></center>\r\n</body>\r\n</html>\r\n",
        String::from_utf8_lossy(&http1::escape::escape_html(key))
    );
    Handled::Reply(Box::new(Reply::new(200, b"text/html", body)))
}

/// Fetches for this client alone.
pub async fn direct(
    request: &mut Request,
    fastcgi: Arc<FastCgi>,
    client: &mut ClientSide,
) -> Handled {
    if let Err(status) = take_body(request, &fastcgi, client).await {
        return Handled::Status(status);
    }
    let mut spec = match spec(request, &fastcgi, &Asked::default()) {
        Ok(spec) => spec,
        Err(status) => return Handled::Status(status),
    };
    if matches!(request.body, RequestBody::Streamed) {
        spec.streaming = client.lend_input();
    }
    let watch = !fastcgi.exchange.ignore_client_abort && spec.streaming.is_none();
    let fetched = match client.stream() {
        Some(stream) if watch => {
            tokio::select! {
                biased;
                fetched = fetch::fetch(&mut spec) => fetched,
                () = stream.closed() => {
                    spec.trace.lock().end_try(Some(499));
                    return Handled::ClientGone;
                }
            }
        }
        _ => fetch::fetch(&mut spec).await,
    };
    match fetched {
        Ok(fetched) => into_handled(request, &fastcgi, fetched),
        Err(error) => failed(error),
    }
}

/// No response: what the client is told.
pub fn failed(error: FetchError) -> Handled {
    match error {
        FetchError::Overloaded => {
            let mut fields = Fields::new();
            fields.append("Retry-After", "1");
            Handled::StatusWith(503, fields)
        }
        error => Handled::Status(error.status()),
    }
}

/// Sees to the request's body: reads all of it, or leaves it to be streamed.
pub async fn take_body(
    request: &mut Request,
    fastcgi: &FastCgi,
    client: &mut ClientSide,
) -> Result<(), u16> {
    if !matches!(request.body, RequestBody::Unread) || !fastcgi.exchange.pass_request_body {
        return Ok(());
    }
    let body = &request.settings.body;
    if !fastcgi.exchange.request_buffering
        && !request.is_subrequest
        // One that is here already can be sent again and read by `$request_body`.
        && !client.input().is_some_and(|input| input.is_at_hand(body))
    {
        client.begin_body(request).await;
        request.body = RequestBody::Streamed;
        return Ok(());
    }
    client.read_body(request).await
}

/// How a fetch differs from the client's own request.
#[derive(Default)]
pub struct Asked<'a> {
    /// For the cache: the client's conditions and ranges stay away.
    pub for_cache: bool,
    /// HEAD becomes GET, so that there is a body to store.
    pub as_get: bool,
    /// Validate this stored response.
    pub validating: Option<&'a StoredResponse>,
}

/// Fields of the client's request that would make the response one for this
/// client alone.
const NOT_FOR_CACHE: [&str; 6] = [
    "if-modified-since",
    "if-unmodified-since",
    "if-none-match",
    "if-match",
    "range",
    "if-range",
];

/// Puts everything together that a fetch needs.
pub fn spec(
    request: &mut Request,
    fastcgi: &Arc<FastCgi>,
    asked: &Asked<'_>,
) -> Result<FetchSpec, u16> {
    let group = group(request, &fastcgi.target)?;
    let method = (request.method, request.method_override);
    if asked.as_get && request.method == Method::Head {
        request.method = Method::Get;
        request.method_override = Some("GET");
    }
    let params = params(request, fastcgi, asked);
    let is_head = request.method == Method::Head;
    let is_idempotent = request.method.is_idempotent();
    (request.method, request.method_override) = method;
    let params = params.map_err(|error| {
        error_log::request(request, LogLevel::Error, format_args!("{error}"));
        500u16
    })?;
    let hash_key = request
        .runtime
        .hash_key(&group)
        .map(|key| variable::evaluate(request, &key));
    let exchange = &fastcgi.exchange;
    let rate = match exchange.limit_rate.is_empty() || !exchange.buffering {
        true => 0,
        false => {
            let rate = variable::evaluate(request, &exchange.limit_rate);
            crate::rewrite::parse_rate(&rate).unwrap_or(0)
        }
    };
    Ok(FetchSpec {
        rate,
        runtime: request.runtime.clone(),
        own_pool: request.runtime.is_own_pool(&group),
        group,
        fastcgi: fastcgi.clone(),
        params,
        is_head,
        is_idempotent,
        body: request.body.share(),
        streaming: None,
        hash_key,
        client: request.client_ip(),
        trace: request.trace().clone(),
        log: LogContext {
            logs: request.settings.error_logs.clone().into(),
            connection: request.connection.serial,
            text: error_log::context(request).into(),
        },
    })
}

fn group(request: &mut Request, target: &PassTarget) -> Result<Arc<Group>, u16> {
    match target {
        PassTarget::Group(id) => Ok(request.runtime.groups[id.0].clone()),
        PassTarget::Variable(template) => {
            let name = variable::evaluate(request, template);
            let name = String::from_utf8_lossy(&name).into_owned();
            request.runtime.group_named(&name).map_err(|error| {
                error_log::request(
                    request,
                    LogLevel::Error,
                    format_args!("invalid upstream \"{name}\" in \"fastcgi_pass\": {error}"),
                );
                500
            })
        }
    }
}

fn params(
    request: &mut Request,
    fastcgi: &FastCgi,
    asked: &Asked<'_>,
) -> Result<Params, ::fastcgi::Error> {
    let mut values: Vec<(&[u8], Vec<u8>)> = Vec::with_capacity(fastcgi.params.len());
    for param in &fastcgi.params {
        let value = variable::evaluate(request, &param.value);
        values.push((&param.name, value));
    }
    let validators = asked.validating.map(|stored| {
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
    if fastcgi.exchange.pass_request_headers {
        for (name, value) in request.head.fields() {
            let left_out = asked.for_cache
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

/// A response for this client alone, as the directives want it sent.
pub fn into_handled(request: &mut Request, fastcgi: &FastCgi, mut fetched: Fetched) -> Handled {
    let exchange = &fastcgi.exchange;
    if let Some(target) = accel_redirect(&fetched.fields, exchange) {
        let target = target.to_vec();
        return redirect_internally(request, fetched, &target);
    }
    if exchange.intercept_errors && fetched.status >= 300 && request.may_intercept(fetched.status) {
        let mut kept = Fields::new();
        for (name, value) in &fetched.fields {
            if fetched.status == 401 && name.eq_ignore_ascii_case(b"www-authenticate") {
                kept.append(name.clone(), value.clone());
            }
        }
        return Handled::StatusWith(fetched.status, kept);
    }
    let mut head = ReplyHead::new(fetched.status);
    head.reason = Some(std::mem::take(&mut fetched.reason)).filter(|reason| !reason.is_empty());
    head.content_length = fetched.content_length;
    apply_accel(request, &mut head, &fetched.fields, exchange);
    for (name, value) in fetched.fields.drain(..) {
        if is_sent(&name, exchange) {
            head.fields.append(name, value);
        }
    }
    head.last_modified = head
        .fields
        .get("last-modified")
        .and_then(http1::date::parse);
    head.accepts_ranges = exchange.force_ranges;
    Handled::Reply(Box::new(Reply {
        head,
        body: Body::Upstream(Box::new(fetched.body)),
    }))
}

/// X-Accel-Redirect, unless it is to be ignored.
pub fn accel_redirect<'f>(
    fields: &'f [(Bytes, Bytes)],
    exchange: &site::Exchange,
) -> Option<&'f [u8]> {
    if exchange.ignored_fields.x_accel_redirect {
        return None;
    }
    let (_, value) = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(b"x-accel-redirect"))?;
    Some(value)
}

/// Fields that come along when the response's place is taken by another
/// location's: nginx copies these.
const KEPT_ON_REDIRECT: [&str; 6] = [
    "content-type",
    "content-disposition",
    "accept-ranges",
    "set-cookie",
    "cache-control",
    "expires",
];

fn redirect_internally(request: &mut Request, fetched: Fetched, target: &[u8]) -> Handled {
    let mut kept = Fields::new();
    for (name, value) in &fetched.fields {
        if KEPT_ON_REDIRECT
            .iter()
            .any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
        {
            kept.append(name.clone(), value.clone());
        }
    }
    request.carried = kept;
    request.become_get();
    fetched.body.give_up(upstream::Outcome::Success);
    if target.first() == Some(&b'@') {
        return Handled::Named(target.to_vec());
    }
    let mark = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, args) = target.split_at(mark);
    let path = match http1::Target::parse(path, true) {
        Ok(target) => target.path.into_owned(),
        Err(_) => return Handled::Status(500),
    };
    Handled::Redirect {
        path,
        args: args.get(1..).unwrap_or_default().to_vec(),
    }
}

fn apply_accel(
    request: &mut Request,
    head: &mut ReplyHead,
    fields: &[(Bytes, Bytes)],
    exchange: &site::Exchange,
) {
    for (name, value) in fields {
        if name.eq_ignore_ascii_case(b"x-accel-limit-rate")
            && !exchange.ignored_fields.x_accel_limit_rate
        {
            request.limit_rate = crate::rewrite::parse_rate(value);
        } else if name.eq_ignore_ascii_case(b"x-accel-charset")
            && !exchange.ignored_fields.x_accel_charset
        {
            if value.eq_ignore_ascii_case(b"off") {
                head.keeps_charset = true;
            } else {
                request.accel_charset = Some(value.to_vec());
            }
        } else if name.eq_ignore_ascii_case(b"x-accel-buffering")
            && !exchange.ignored_fields.x_accel_buffering
        {
            request.accel_buffering = Some(value.eq_ignore_ascii_case(b"yes"));
        }
    }
}

/// Fields that are written anew for each response, or that concern only the
/// connection to the upstream.
const NOT_PASSED: [&str; 5] = [
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "trailer",
];

/// Does a field of the upstream's response go on to clients?
pub fn is_sent(name: &[u8], exchange: &site::Exchange) -> bool {
    let is = |field: &[u8]| name.eq_ignore_ascii_case(field);
    !NOT_PASSED.iter().any(|field| is(field.as_bytes()))
        && !exchange.hidden_fields.iter().any(|field| is(field))
}
