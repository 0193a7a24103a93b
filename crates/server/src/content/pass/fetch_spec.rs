//! Creates the fetch for a request: the upstream group and how to reach it, the request in its
//! protocol, the body.

use std::sync::Arc;

use bytes::Bytes;
use site::{
    Bind, LogLevel, Part, Pass, PassTarget, Protocol, Proxy, ProxyVersion, Template, TlsId,
    TlsIdentity,
};
use transport::client::ClientSide;
use transport::request_body::RequestBody;
use upstream::LocalEnd;

use super::fetch_log::{RequestFetchLog, Visitor};
use super::fetch_purpose::FetchPurpose;
use super::turn;
use crate::content::fastcgi;
use crate::content::memcached;
use crate::content::proxy;
use crate::content::request_body;
use crate::exchange::request::{Method, Request};
use crate::exchange::variable;
use crate::log::error_log;
use crate::route::pattern;
use live_state::connectors::NamedCertificateError;
use live_state::upstream_groups::GroupHandle;
use upstream_fetch::naming;
use upstream_fetch::naming::{Lookup, NameError};
use upstream_fetch::{FetchContext, FetchSpec, FetchTarget, UpstreamRequest};

/// Is there a body to be seen to?
pub fn wants_body(request: &Request, pass: &Pass) -> bool {
    matches!(request.body, RequestBody::Unread) && pass.exchange.pass_request_body
}

/// Sees to the request's body: reads all of it, or leaves it to be streamed.
pub async fn take_body(
    request: &Request,
    pass: &Pass,
    client: &mut ClientSide,
) -> Result<RequestBody, u16> {
    let body = &request.settings().body;
    // HTTP/1.0 has no way to send a body whose length is not known yet.
    let needs_length = pass
        .proxy()
        .is_some_and(|proxy| proxy.version == ProxyVersion::Http10)
        && client
            .input()
            .is_some_and(|input| input.remaining().is_none());
    if !pass.exchange.request_buffering
        && !needs_length
        && !request.route.is_subrequest()
        // One that is here already can be sent again and read by `$request_body`.
        && !client.input().is_some_and(|input| input.is_at_hand(body))
    {
        client.begin_body(body).await;
        let length = client.input().and_then(|input| input.remaining());
        return Ok(RequestBody::Streamed(length));
    }
    request_body::read(request, client).await
}

/// Puts everything together that a fetch needs; the error is a status.
pub fn spec(
    request: &Request,
    pass: &Arc<Pass>,
    purpose: &FetchPurpose<'_>,
    visitor: Visitor,
) -> Result<FetchSpec, u16> {
    let (group, lookup) = group(request, pass)?;
    let (class, turn) = turn::of(request, &group.group);
    let is_idempotent = request.route.method.is_idempotent();
    let rendered = render(request, pass, purpose, &group);
    if pattern::has_failed(request) {
        return Err(500);
    }
    let RenderedRequest {
        request: upstream_request,
        body,
        is_head,
        tls,
    } = rendered?;
    let target = match &upstream_request {
        UpstreamRequest::FastCgi { .. } | UpstreamRequest::Memcached(_) => Bytes::new(),
        UpstreamRequest::Http(http) => http.head.slice(http.target.clone()),
    };
    let hash_key = group.hash_key.as_ref();
    let hash_key = hash_key.map(|key| variable::evaluate(request, key));
    Ok(FetchSpec {
        rate: match pass.exchange.limit_rate.as_constant() {
            Some(_) => rate(request, pass),
            // It may depend on the response.
            None => 0,
        },
        to: FetchTarget {
            own_pool: group.is_own_pool,
            group: group.group.clone(),
            lookup,
            hash_key,
            client: request.received.client_ip(),
            turn,
            tls,
            local: local_end(request, pass),
        },
        request: upstream_request,
        is_head,
        is_idempotent,
        body,
        streaming: None,
        class,
        deadline: purpose.deadline.cloned().unwrap_or_default(),
        context: Arc::new(FetchContext {
            pass: pass.clone(),
            trace: visitor.trace,
            keeps_fields: request.configuration.site.http.uses_upstream_fields,
            log: Box::new(RequestFetchLog {
                configuration: request.configuration.clone(),
                settings: request.settings_held(),
                connection: request.received.connection().serial,
                origin: visitor.origin,
                scheme: pass.scheme(),
                target,
                page: request.page_budget().cloned(),
            }),
            turn: visitor.turn,
        }),
        hints: None,
        progress: None,
        tag_mark: purpose.tag_mark.map(Into::into),
    })
}

/// A request in the terms of its protocol.
struct RenderedRequest {
    request: UpstreamRequest,
    body: RequestBody,
    is_head: bool,
    /// With TLS: the connector, and the name that the upstream's certificate must have.
    tls: Option<(tls_client::Connector, String)>,
}

fn render(
    request: &Request,
    pass: &Pass,
    purpose: &FetchPurpose<'_>,
    group: &GroupHandle,
) -> Result<RenderedRequest, u16> {
    let mut body = match &request.body {
        _ if !pass.exchange.pass_request_body => RequestBody::None,
        body => body.share(),
    };
    let mut is_head = request.route.method == Method::Head;
    let mut tls = None;
    let upstream_request = match &pass.protocol {
        Protocol::FastCgi(fastcgi) => {
            let params = fastcgi::params(request, fastcgi, &pass.exchange, purpose);
            let params = params.map_err(|error| {
                error_log::request(request, LogLevel::Error, format_args!("{error}"));
                500u16
            })?;
            let keep_conn = fastcgi.keep_conn;
            UpstreamRequest::FastCgi { params, keep_conn }
        }
        Protocol::Memcached(memcached) => {
            UpstreamRequest::Memcached(memcached::upstream_request(request, memcached)?)
        }
        Protocol::Http(proxy) => {
            let mut rendered = proxy::render(request, proxy, &pass.exchange, purpose);
            tls = proxy
                .tls
                .map(|id| upstream_tls(request, proxy, id))
                .transpose()?;
            rendered.request.keep_alive &= match &pass.target {
                PassTarget::Group(_) => !group.is_mixed,
                // Who else speaks to it, and how, is not known.
                PassTarget::Variable(_) => tls.is_none(),
            };
            if let Some(bytes) = rendered.body {
                body = RequestBody::Memory(bytes);
            }
            is_head = rendered.is_head;
            UpstreamRequest::Http(rendered.request)
        }
    };
    Ok(RenderedRequest {
        request: upstream_request,
        body,
        is_head,
        tls,
    })
}

/// Returns how the upstream is asked over TLS, and the name that its certificate must have.
fn upstream_tls(
    request: &Request,
    proxy: &Proxy,
    id: TlsId,
) -> Result<(tls_client::Connector, String), u16> {
    let name = variable::evaluate(request, &proxy.tls_name);
    let name = String::from_utf8_lossy(&name).into_owned();
    let identity = &request.configuration.site.http.tls[id.0].identity;
    let Some(TlsIdentity::OfRequest { chain, key, .. }) = identity else {
        let tls = &request.configuration.upstream_tls[id.0];
        return Ok((tls.connector().clone(), name));
    };
    let found = file_name(request, chain).and_then(|chain| {
        let key = file_name(request, key)?;
        request.configuration.upstream_tls[id.0].connector_of(&chain, &key)
    });
    match found {
        Ok(connector) => Ok((connector, name)),
        Err(error) => {
            error_log::request(request, LogLevel::Error, format_args!("{error}"));
            Err(500)
        }
    }
}

/// A name of a file with variables, whose values may lead to no other folder.
fn file_name(request: &Request, template: &Template) -> Result<String, NamedCertificateError> {
    let value = variable::evaluate(request, template);
    let steps = |text: &[u8]| memchr::memmem::find_iter(text, b"..").count();
    let own = template.parts.iter().map(|part| match part {
        Part::Literal(text) => steps(text),
        Part::Variable(_) => 0,
    });
    let value = String::from_utf8(value)?;
    match steps(value.as_bytes()) > own.sum() || value.contains('\0') {
        true => Err(NamedCertificateError::UnsafeName(value)),
        false => Ok(value),
    }
}

/// `*_bind` and `*_socket_keepalive`. Like in nginx, a value that is no address is logged, and
/// the system chooses.
fn local_end(request: &Request, pass: &Pass) -> LocalEnd {
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
pub fn rate(request: &Request, pass: &Pass) -> u64 {
    let exchange = &pass.exchange;
    if exchange.limit_rate.is_empty() || !exchange.buffering {
        return 0;
    }
    let rate = variable::evaluate(request, &exchange.limit_rate);
    crate::route::rewrite::parse_rate(&rate).unwrap_or(0)
}

/// The group to ask, and how to find its servers if they are not known.
fn group(request: &Request, pass: &Pass) -> Result<(Arc<GroupHandle>, Option<Lookup>), u16> {
    match &pass.target {
        PassTarget::Group(id) => Ok((request.configuration.live.groups[id.0].clone(), None)),
        PassTarget::Variable(template) => {
            let name = match (&pass.protocol, &request.route.proxy_url) {
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
