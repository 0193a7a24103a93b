//! Which server's TLS holds for a connection, and whether a request may use it.

use std::sync::Arc;

use rustls::ServerConfig;
use site::{ListenerId, ServerId, ServerTlsId};
use tls_server::{Refusal as ClientRefusal, TlsServer};
use transport::facts::TlsFacts;
use transport::handshake::HandshakeRequest;
use transport::service::Refusal;

use super::RequestTerms;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::request::Method;
use crate::exchange::request::Request;
use crate::exchange::variable;
use crate::exchange::without_client;
use crate::log::error_log;
use crate::route;
use live_state::handshake_certificates::{self, OfHandshake};

/// The rules for a client that asks for this; `None` if its handshake is refused.
pub fn choose(terms: &RequestTerms, asked: HandshakeRequest<'_>) -> Option<Arc<ServerConfig>> {
    let configuration = &terms.configuration;
    if asked.for_validation
        && let Some(answer) = asked
            .name
            .and_then(|it| configuration.live.acme_answers.tls(it))
    {
        return Some(answer);
    }
    let name = asked.name;
    let http = &configuration.site.http;
    let server = server_of(configuration, terms.listener, name);
    let listener = &http.listeners[terms.listener.0];
    let with_http2 = listener.options.http2 || http.servers[server.0].http2.enabled;
    let tls = &configuration.server_tls[tls_of(configuration, terms.listener, server)?.0];
    if tls.rejects_handshake() {
        return None;
    }
    let speaks_http3 = http.servers[server.0].http3.enabled;
    if let Some(certificates) = tls.of_handshake() {
        let served = of_handshake(configuration, certificates, (terms.listener, server), name)?;
        return match listener.options.quic {
            false => Some(served.config(with_http2).clone()),
            true => speaks_http3.then(|| served.http3_config().clone()),
        };
    }
    match tls.read_named(name) {
        Ok(true) => {}
        Ok(false) => return None,
        // Clients cause this as often as they like.
        Err(reason) if error_log::may_tell_refusal(configuration) => {
            error_log::emergency(configuration, format_args!("{reason}"));
        }
        Err(_) => {}
    }
    if !listener.options.quic {
        return Some(tls.config(with_http2).clone());
    }
    speaks_http3.then(|| tls.http3_config().clone())
}

/// The TLS with the certificates that variables name; `None` if there is none.
fn of_handshake(
    configuration: &ConfigurationHandle,
    certificates: &OfHandshake,
    (listener, server): (ListenerId, ServerId),
    name: Option<&str>,
) -> Option<Arc<TlsServer>> {
    let tls = &configuration.site.http.server_tls[tls_of(configuration, listener, server)?.0];
    let name = name.map(str::to_ascii_lowercase);
    let name = name.filter(|name| handshake_certificates::is_file_name(name));
    let request = without_client::in_handshake(configuration, server, name)?;
    let value = |template| {
        let value = variable::evaluate(&request, template);
        String::from_utf8_lossy(&value).into_owned()
    };
    let pairs = tls.certificates_of_handshake.iter();
    let values = pairs.map(|pair| (value(&pair.chain), value(&pair.key)));
    match certificates.server(values.collect()) {
        Ok(server) => server,
        Err(reason) => {
            // Clients cause this as often as they like.
            if error_log::may_tell_refusal(configuration) {
                error_log::emergency(configuration, format_args!("{reason}"));
            }
            None
        }
    }
}

/// Notes the verdict of the server that the client asked for on the client's certificate.
pub fn judge(terms: &RequestTerms, facts: &mut TlsFacts) {
    let configuration = &terms.configuration;
    let server = server_of(configuration, terms.listener, facts.server_name.as_deref());
    if let Some(id) = tls_of(configuration, terms.listener, server) {
        let chain = &facts.client_certificates[..];
        let chain = (!chain.is_empty()).then_some(chain);
        facts.verdict = configuration.server_tls[id.0].verdict(chain);
    }
}

/// May the request, whose server is known, come over this connection? As nginx sees it.
///
/// # Errors
/// 421 where the server verifies clients, and the handshake was another server's; 425 where the
/// handshake is not over and the method is not safe (RFC 8470 §4); 495 and 496 where the client's
/// certificate is bad or not there.
pub fn check(request: &Request, listener: ListenerId) -> Result<(), Box<Refusal>> {
    if request.received.connection().lacks_tls {
        let reason = "client sent plain HTTP request to HTTPS port \
                      while reading client request headers";
        return Err(Refusal::new(497, reason));
    }
    let Some(facts) = &request.received.connection().tls else {
        return Ok(());
    };
    if request.received.is_early() && !is_safe(request.route.method) {
        let reason = "client sent a request that changes something before the end of the SSL \
                      handshake while reading client request headers";
        return Err(Refusal::new(425, reason));
    }
    let configuration = &request.configuration;
    let server = request.route.server();
    let Some(id) = tls_of(configuration, listener, server) else {
        return Ok(());
    };
    let tls = &configuration.server_tls[id.0];
    if !tls.asks_clients() {
        return Ok(());
    }
    let asked = facts.server_name.as_deref();
    if asked.is_some() && server_of(configuration, listener, asked) != server {
        let reason = "client attempted to request the server name different from the one that \
                      was negotiated while reading client request headers";
        return Err(Refusal::new(421, reason));
    }
    match tls.refusal(&facts.verdict) {
        None => Ok(()),
        Some(ClientRefusal::BadCertificate) => {
            let reason = format!(
                "client SSL certificate verify error: {} while reading client request headers",
                facts.verdict
            );
            Err(Refusal::new(495, reason))
        }
        Some(ClientRefusal::NoCertificate) => {
            let reason =
                "client sent no required SSL certificate while reading client request headers";
            Err(Refusal::new(496, reason))
        }
    }
}

/// RFC 9110 §9.2.1.
fn is_safe(method: Method) -> bool {
    matches!(method, Method::Get | Method::Head | Method::Options)
}

fn server_of(
    configuration: &ActiveConfiguration,
    listener: ListenerId,
    name: Option<&str>,
) -> ServerId {
    let listener = &configuration.site.http.listeners[listener.0];
    match name {
        Some(name) => route::server_for(listener, name.to_ascii_lowercase().as_bytes()),
        None => listener.default_server,
    }
}

/// The TLS of a server, or that of the default server of its address.
fn tls_of(
    configuration: &ActiveConfiguration,
    listener: ListenerId,
    server: ServerId,
) -> Option<ServerTlsId> {
    let http = &configuration.site.http;
    let default = http.listeners[listener.0].default_server;
    http.servers[server.0].tls.or(http.servers[default.0].tls)
}
