//! Requests that an upstream answers, whatever is spoken to it: `fastcgi_pass`,
//! `proxy_pass`. Reads the body as the directives say, has the request put
//! together by its protocol's file (`fastcgi`, `proxy`, `memcached`), and turns what came back
//! into a reply.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http_cache::{Millis, StoredResponse};
use http1::{Fields, same_name};
use site::{Bind, LogLevel, Pass, PassTarget, Protocol, ProxyVersion};
use upstream::LocalEnd;

use crate::base::deadline::SharedDeadline;
use crate::content::early_hints::EarlyHints;
use crate::content::file_copy::Copying;
use crate::content::policy;
use crate::content::policy::{CachePlan, PurgedKeys};
use crate::content::{fastcgi, memcached, proxy, through_cache};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::handled::Handled;
use crate::exchange::reply::{Body, Reply, ReplyHead};
use crate::exchange::request::{Method, Request};
use crate::exchange::variable;
use crate::live::upstream_groups::GroupHandle;
use crate::log::error_log;
use crate::route::pattern;
use crate::transport::body::RequestBody;
use crate::transport::client::{ClientSide, unless_gone};
use crate::upstreams::fetch;
use crate::upstreams::fetch::{FetchContext, FetchError, FetchSpec, Fetched, UpstreamRequest};
use crate::upstreams::naming;
use crate::upstreams::naming::{Lookup, NameError};

/// What can be said without waiting for anybody.
pub enum AtOnce<'a> {
    Handled(Handled),
    /// Somebody has to be asked.
    Must(CachePlan<'a>),
}

/// Plans, and answers if memory has a fresh answer.
pub fn at_once<'a>(
    request: &mut Request,
    configuration: &'a ActiveConfiguration,
    pass: &'a Pass,
) -> AtOnce<'a> {
    match &pass.protocol {
        Protocol::Http(proxy) => proxy::settle_url(request, &pass.target, proxy),
        Protocol::Memcached(_) if !matches!(request.method, Method::Get | Method::Head) => {
            return AtOnce::Handled(Handled::Status(405));
        }
        Protocol::Memcached(_) | Protocol::FastCgi(_) => {}
    }
    let plan = policy::plan(request, configuration, pass);
    if pattern::has_failed(request) {
        return AtOnce::Handled(Handled::Status(500));
    }
    match plan {
        CachePlan::Purge { zone, keys } => AtOnce::Handled(purge(request, zone, &keys)),
        CachePlan::UnknownZone(name) => {
            let message = format_args!("cache \"{name}\" not found");
            error_log::request(request, LogLevel::Error, message);
            AtOnce::Handled(Handled::Status(500))
        }
        CachePlan::Use(plan) => match through_cache::fresh(request, &plan) {
            Some(reply) => {
                request.cache.key = plan.key;
                AtOnce::Handled(of_cache(request, pass, reply))
            }
            None => AtOnce::Must(CachePlan::Use(plan)),
        },
        plan => AtOnce::Must(plan),
    }
}

/// Answers with what the upstream says, through the cache where there is one.
pub async fn serve(
    request: &mut Request,
    pass: &Arc<Pass>,
    plan: CachePlan<'_>,
    client: &mut ClientSide,
) -> Handled {
    match plan {
        CachePlan::Off => direct(request, pass, client).await,
        CachePlan::UnknownZone(_) => Handled::Status(500),
        CachePlan::Purge { zone, keys } => purge(request, zone, &keys),
        CachePlan::Invalidate(invalidation) => {
            let handled = direct(request, pass, client).await;
            if let Handled::Reply(reply) = &handled
                && (200..400).contains(&reply.head.status)
            {
                invalidation.carry_out(Millis(crate::base::clock::now()));
            }
            handled
        }
        CachePlan::Use(plan) => {
            request.cache.key.clone_from(&plan.key);
            let began = crate::base::clock::now();
            let handled = Box::pin(through_cache::serve(request, pass, plan, client)).await;
            if let Some(reason) = request.cache.reason {
                let took = crate::base::clock::now().saturating_sub(began);
                error_log::not_stored(request, reason, took);
            }
            match handled {
                Handled::Reply(reply) => of_cache(request, pass, reply),
                handled => handled,
            }
        }
    }
}

/// What the cache gave, with the fields that are written anew for each client.
#[inline]
fn of_cache(request: &mut Request, pass: &Pass, mut reply: Box<Reply>) -> Handled {
    let head = &mut reply.head;
    if head.stored.is_none() {
        return Handled::Reply(reply);
    }
    if intercepts(request, pass, head.status) {
        head.unpack();
        return intercepted(head.status, head.fields.as_slice());
    }
    head.passes_date = pass.exchange.passes_date;
    head.passes_server = pass.exchange.passes_server;
    rewrite_fields(request, pass, head);
    Handled::Reply(reply)
}

/// `*_intercept_errors`: does an error page take the response's place?
fn intercepts(request: &Request, pass: &Pass, status: u16) -> bool {
    pass.exchange.intercept_errors && status >= 300 && request.may_intercept(status)
}

fn intercepted(status: u16, fields: &[(Bytes, Bytes)]) -> Handled {
    let is_challenge = |name: &Bytes| name.eq_ignore_ascii_case(b"www-authenticate");
    let kept = fields
        .iter()
        .filter(|(name, _)| status == 401 && is_challenge(name))
        .cloned()
        .collect();
    Handled::StatusWith(status, kept)
}

fn purge(request: &Request, zone: &http_cache::Zone, keys: &[PurgedKeys]) -> Handled {
    let now = Millis(request.now);
    let purged: usize = keys.iter().map(|keys| keys.purge(zone, now)).sum();
    if purged == 0 && !keys.contains(&PurgedKeys::Everything) {
        return Handled::Status(404);
    }
    let shown = keys.first().map(PurgedKeys::shown).unwrap_or_default();
    let body = format!(
        "<html>\r\n<head><title>Successful purge</title></head>\r\n<body bgcolor=\"white\">\r\n\
         <center><h1>Successful purge</h1><p>Key : {}</p></center>\r\n</body>\r\n</html>\r\n",
        String::from_utf8_lossy(&http1::escape::escape_html(&shown))
    );
    Handled::Reply(Box::new(Reply::new(200, b"text/html", body)))
}

/// Fetches for this client alone.
pub async fn direct(request: &mut Request, pass: &Arc<Pass>, client: &mut ClientSide) -> Handled {
    if wants_body(request, pass)
        && let Err(status) = Box::pin(take_body(request, pass, client)).await
    {
        return Handled::Status(status);
    }
    let asked = Asked {
        deadline: Some(client.deadline()),
        ..Asked::default()
    };
    let mut spec = match spec(request, pass, &asked) {
        Ok(spec) => spec,
        Err(status) => return Handled::Status(status),
    };
    if matches!(request.body, RequestBody::Streamed) {
        spec.streaming = client.lend_input();
    }
    let exchange = &pass.exchange;
    let is_for_more = exchange.ignore_client_abort || exchange.file_copy.is_some();
    let watch = !is_for_more && spec.streaming.is_none();
    let hints = EarlyHints::of(request, client, &mut spec);
    let fetched = {
        // It is large, and stays where it is.
        let fetching = pin!(fetch::fetch(&mut spec));
        let fetching = unless_gone(client.stream().filter(|_| watch), fetching);
        match hints {
            None => fetching.await,
            Some(hints) => Box::pin(hints.while_waiting(request, exchange, fetching))
                .await
                .flatten(),
        }
    };
    let fetched = match fetched {
        Some(Ok(fetched)) => fetched,
        Some(Err(error)) => return failed(error),
        None => {
            spec.context.trace.lock().end_try(Some(499));
            return Handled::ClientGone;
        }
    };
    let copying = match spec.is_head {
        true => None,
        false => Copying::plan(request, pass, &fetched),
    };
    let mut handled = into_handled(request, pass, fetched);
    // Without buffering the response is the client's alone, as in nginx.
    if let (Some(copying), Handled::Reply(reply)) = (copying, &mut handled)
        && let Body::Upstream(body) = &mut reply.body
        && request.accel_buffering.unwrap_or(pass.exchange.buffering)
    {
        body.copy_to(copying);
    }
    handled
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

/// Is there a body to be seen to?
fn wants_body(request: &Request, pass: &Pass) -> bool {
    matches!(request.body, RequestBody::Unread) && pass.exchange.pass_request_body
}

/// Sees to the request's body: reads all of it, or leaves it to be streamed.
pub async fn take_body(
    request: &mut Request,
    pass: &Pass,
    client: &mut ClientSide,
) -> Result<(), u16> {
    if !wants_body(request, pass) {
        return Ok(());
    }
    let body = &request.settings().body;
    // HTTP/1.0 has no way to send a body whose length is not known yet.
    let needs_length = pass
        .proxy()
        .is_some_and(|proxy| proxy.version == ProxyVersion::Http10)
        && request.head.field("content-length").is_none();
    if !pass.exchange.request_buffering
        && !needs_length
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
    /// The timer of whoever waits; otherwise the fetch has its own.
    pub deadline: Option<&'a SharedDeadline>,
}

/// Fields of the client's request that would make the response one for this
/// client alone.
pub const NOT_FOR_CACHE: [&str; 6] = [
    "if-modified-since",
    "if-unmodified-since",
    "if-none-match",
    "if-match",
    "range",
    "if-range",
];

/// Puts everything together that a fetch needs.
pub fn spec(request: &mut Request, pass: &Arc<Pass>, asked: &Asked<'_>) -> Result<FetchSpec, u16> {
    let (group, lookup) = group(request, pass)?;
    let method = (request.method, request.method_override);
    if asked.as_get && request.method == Method::Head {
        request.method = Method::Get;
        request.method_override = Some("GET");
    }
    let is_idempotent = request.method.is_idempotent();
    let mut body = match &request.body {
        _ if !pass.exchange.pass_request_body => RequestBody::None,
        body => body.share(),
    };
    let mut is_head = request.method == Method::Head;
    let mut tls = None;
    let asking = match &pass.protocol {
        Protocol::FastCgi(fastcgi) => {
            let params = fastcgi::params(request, fastcgi, &pass.exchange, asked);
            let keep_conn = fastcgi.keep_conn;
            params.map(|params| UpstreamRequest::FastCgi { params, keep_conn })
        }
        Protocol::Http(proxy) => {
            let mut rendered = proxy::render(request, proxy, &pass.exchange, asked);
            tls = proxy.tls.map(|id| {
                let name = variable::evaluate(request, &proxy.tls_name);
                let name = String::from_utf8_lossy(&name).into_owned();
                (request.configuration.connectors[id.0].clone(), name)
            });
            rendered.asking.keep_alive &= match &pass.target {
                PassTarget::Group(_) => !group.is_mixed,
                // Who else speaks to it, and how, is not known.
                PassTarget::Variable(_) => tls.is_none(),
            };
            if let Some(bytes) = rendered.body {
                body = RequestBody::Memory(bytes);
            }
            is_head = rendered.is_head;
            Ok(UpstreamRequest::Http(rendered.asking))
        }
        Protocol::Memcached(memcached) => Ok(UpstreamRequest::Memcached(memcached::asking(
            request, memcached,
        )?)),
    };
    (request.method, request.method_override) = method;
    if pattern::has_failed(request) {
        return Err(500);
    }
    let asking = asking.map_err(|error| {
        error_log::request(request, LogLevel::Error, format_args!("{error}"));
        500u16
    })?;
    let target = match &asking {
        UpstreamRequest::FastCgi { .. } | UpstreamRequest::Memcached(_) => Bytes::new(),
        UpstreamRequest::Http(asking) => asking.head.slice(asking.target.clone()),
    };
    let hash_key = group.hash_key.as_ref();
    let hash_key = hash_key.map(|key| variable::evaluate(request, key));
    Ok(FetchSpec {
        rate: match pass.exchange.limit_rate.as_constant() {
            Some(_) => rate(request, pass),
            // It may depend on the response.
            None => 0,
        },
        own_pool: group.is_own_pool,
        group: group.group.clone(),
        lookup,
        asking,
        is_head,
        is_idempotent,
        body,
        streaming: None,
        hash_key,
        class: request.extras.class,
        tls,
        client: request.client_ip(),
        local: local_end(request, pass),
        deadline: asked.deadline.cloned().unwrap_or_default(),
        context: Arc::new(FetchContext {
            configuration: request.configuration.clone(),
            pass: pass.clone(),
            trace: request.trace().clone(),
            settings: request.settings_held(),
            connection: request.connection.serial,
            origin: error_log::origin(request),
            scheme: pass.scheme(),
            target,
        }),
        hints: None,
        progress: None,
    })
}

/// `*_bind` and `*_socket_keepalive`. As with nginx, what turns out to be no
/// address is logged, and the system chooses.
fn local_end(request: &mut Request, pass: &Pass) -> LocalEnd {
    let address = match &pass.exchange.bind {
        None => None,
        Some(Bind::To(address)) => Some(*address),
        Some(Bind::Named(template)) => {
            let value = variable::evaluate(request, template);
            let address = std::str::from_utf8(&value).ok().and_then(Bind::parse);
            if address.is_none() && !value.is_empty() {
                let value = String::from_utf8_lossy(&value);
                let message = format_args!("invalid local address \"{value}\"");
                error_log::request(request, LogLevel::Error, message);
            }
            address
        }
    };
    LocalEnd {
        address,
        probes: pass.exchange.socket_keepalive,
    }
}

/// `*_limit_rate`, in bytes per second; 0: no limit.
pub fn rate(request: &mut Request, pass: &Pass) -> u64 {
    let exchange = &pass.exchange;
    if exchange.limit_rate.is_empty() || !exchange.buffering {
        return 0;
    }
    let rate = variable::evaluate(request, &exchange.limit_rate);
    crate::route::rewrite::parse_rate(&rate).unwrap_or(0)
}

/// The group to ask, and how to find its servers if they are not known.
fn group(request: &mut Request, pass: &Pass) -> Result<(Arc<GroupHandle>, Option<Lookup>), u16> {
    match &pass.target {
        PassTarget::Group(id) => Ok((request.configuration.live.groups[id.0].clone(), None)),
        PassTarget::Variable(template) => {
            let name = match (&pass.protocol, &request.extras.proxy_url) {
                (Protocol::Http(_), Some(url)) => url.group.clone(),
                // The URL was none; that is in the log already.
                (Protocol::Http(_), None) => return Err(500),
                (Protocol::FastCgi(_) | Protocol::Memcached(_), _) => {
                    let name = variable::evaluate(request, template);
                    String::from_utf8_lossy(&name).into_owned()
                }
            };
            let live = &request.configuration.live;
            let found = naming::group_named(live, &name, &request.settings().names);
            found.map_err(|error| {
                let status = error.status();
                let directive = pass.directive();
                let message = match error {
                    NameError::NoResolver(error) => error.to_string(),
                    error => format!("invalid upstream \"{name}\" in \"{directive}\": {error}"),
                };
                error_log::request(request, LogLevel::Error, format_args!("{message}"));
                status
            })
        }
    }
}

/// A response for this client alone, as the directives want it sent.
pub fn into_handled(request: &mut Request, pass: &Pass, mut fetched: Fetched) -> Handled {
    let exchange = &pass.exchange;
    if let Some(target) = accel_redirect(&fetched.fields, exchange) {
        let target = target.to_vec();
        // What it says of rate and charset holds for the response in its place.
        apply_accel(request, &mut ReplyHead::new(0), &fetched.fields, exchange);
        return redirect_internally(request, fetched, &target);
    }
    if intercepts(request, pass, fetched.status) {
        return intercepted(fetched.status, &fetched.fields);
    }
    if fetched.status == 404 && matches!(pass.protocol, Protocol::Memcached(_)) {
        return Handled::Status(404);
    }
    fetched.body.set_rate(rate(request, pass));
    let mut head = ReplyHead::new(fetched.status);
    head.is_of_upstream = true;
    head.passes_date = exchange.passes_date;
    head.passes_server = exchange.passes_server;
    head.reason = Some(std::mem::take(&mut fetched.reason)).filter(|reason| !reason.is_empty());
    head.content_length = fetched.content_length;
    apply_accel(request, &mut head, &fetched.fields, exchange);
    let fields = fetched.fields.into_iter();
    head.fields = fields.filter(|(name, _)| is_sent(name, exchange)).collect();
    head.last_modified = head
        .fields
        .get("last-modified")
        .and_then(http1::date::parse);
    head.accepts_ranges = exchange.force_ranges;
    rewrite_fields(request, pass, &mut head);
    let body = fetched.body;
    Handled::Reply(Box::new(Reply {
        head,
        body: match fetched.is_upgrade {
            true => Body::Tunnel(body),
            false => Body::Upstream(body),
        },
    }))
}

/// What the protocol changes in a response's fields for this client.
pub fn rewrite_fields(request: &mut Request, pass: &Pass, head: &mut ReplyHead) {
    if let Protocol::Http(proxy) = &pass.protocol {
        proxy::rewrite_fields(request, proxy, head);
    }
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
        .find(|(name, _)| same_name(name, b"x-accel-redirect"))?;
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
    request.extras.carried = kept;
    request.become_get();
    fetched.body.give_up(upstream::Outcome::Success);
    if target.first() == Some(&b'@') {
        return Handled::Named(target.to_vec());
    }
    let (path, args) = http1::split_query(target);
    // Whoever wrote it does not mean to leave a folder that way: refused, as in nginx.
    let leaves_folder = http1::escape::unescape(path)
        .split(|&byte| byte == b'/')
        .any(|segment| segment == b"..");
    let path = match http1::Target::parse(path, true) {
        Ok(target) if !leaves_folder => target.path.into_owned(),
        _ => return Handled::Status(404),
    };
    Handled::Redirect {
        path,
        args: args.unwrap_or_default().to_vec(),
    }
}

fn apply_accel(
    request: &mut Request,
    head: &mut ReplyHead,
    fields: &[(Bytes, Bytes)],
    exchange: &site::Exchange,
) {
    for (name, value) in fields {
        if same_name(name, b"x-accel-limit-rate") && !exchange.ignored_fields.x_accel_limit_rate {
            request.limit_rate = crate::route::rewrite::parse_rate(value);
        } else if same_name(name, b"x-accel-charset") && !exchange.ignored_fields.x_accel_charset {
            if value.eq_ignore_ascii_case(b"off") {
                head.keeps_charset = true;
            } else {
                request.extras.accel_charset = Some(value.to_vec());
            }
        } else if same_name(name, b"x-accel-buffering")
            && !exchange.ignored_fields.x_accel_buffering
        {
            request.accel_buffering = Some(value.eq_ignore_ascii_case(b"yes"));
        }
    }
}

/// Does a field of the upstream's response go on to clients?
pub fn is_sent(name: &[u8], exchange: &site::Exchange) -> bool {
    !is_of_connection(name) && !exchange.hidden_fields.has(name)
}

/// Fields that are written anew for each response, or that concern only the
/// connection to the upstream.
fn is_of_connection(name: &[u8]) -> bool {
    let is = |field: &str| same_name(name, field.as_bytes());
    match name.len() {
        7 => is("trailer"),
        10 => is("connection") || is("keep-alive"),
        14 => is("content-length"),
        17 => is("transfer-encoding"),
        _ => false,
    }
}
