//! Answers the requests that transports receive: takes the request (`receive`), runs the pipeline,
//! writes the logs (`end`).

mod counting;
mod end;
mod listener;
pub mod own_visit;
mod receive;
mod tls;
mod validate;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use http_semantics::RequestView;
use site::{HeadSettings, ListenAddress, ListenerId, LogLevel, Server, ServerId};
use tokio::task::JoinHandle;
use transport::ConnectionOpening;
use transport::client::ClientSide;
use transport::facts::{ConnectionFacts, TlsFacts};
use transport::handshake::HandshakeRequest;
use transport::http3;
use transport::outbound::SendError;
use transport::ready_or_pending::ReadyOrPending;
use transport::service::{
    BodyLength, Ending, ReceivedHead, Refusal, ResponseOutcome, Service, Terms,
};

use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::request::Request;
use crate::log::error_log;
use crate::pipeline;
use crate::worker::WorkersState;

pub use listener::Memory;

/// A client of HTTP/3 is given up after this time without a sign of life, however soon
/// `keepalive_timeout` would end its connection: packets get lost.
const SILENCE_AT_LEAST: Duration = Duration::from_secs(30);

/// The configuration for the next request of a connection, and the listener in it.
pub struct RequestTerms {
    configuration: ConfigurationHandle,
    listener: ListenerId,
    server: ServerId,
}

impl RequestTerms {
    fn speaks_http2(&self) -> bool {
        let http = &self.configuration.site.http;
        let listener = &http.listeners[self.listener.0];
        listener.options.http2 || http.servers[self.server.0].http2.enabled
    }
}

impl Terms for RequestTerms {
    #[inline]
    fn head(&self) -> &HeadSettings {
        &self.configuration.site.http.servers[self.server.0].head
    }

    fn connection_opening(&self) -> ConnectionOpening {
        let listener = &self.configuration.site.http.listeners[self.listener.0];
        ConnectionOpening {
            proxy_header: listener.options.proxy_protocol,
            tls: listener.options.ssl,
            http2: self.speaks_http2(),
        }
    }

    fn http2(&self) -> http2::Settings {
        let server = &self.configuration.site.http.servers[self.server.0];
        http2::Settings {
            max_concurrent_streams: server.http2.max_concurrent_streams,
            stream_window_bytes: server.http2.body_preread_bytes,
            head: self.head_limits(),
            ..http2::Settings::default()
        }
    }

    fn http3(&self) -> http3::Settings {
        let server = &self.configuration.site.http.servers[self.server.0];
        let keep = server.settings(Server::ROOT).connection.keepalive_timeout;
        let http3 = &server.http3;
        http3::Settings {
            max_concurrent_streams: http3.max_concurrent_streams,
            stream_buffer_bytes: http3.stream_buffer_bytes,
            validates_addresses: http3.validates_addresses,
            segmentation_offload: http3.segmentation_offload,
            idle_timeout: keep.max(server.head.timeout).max(SILENCE_AT_LEAST),
            first_request_timeout: server.head.timeout,
            head: self.head_limits(),
        }
    }
}

impl RequestTerms {
    fn head_limits(&self) -> http2::HeadLimits {
        let head = self.head();
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let field_bytes = bytes(head.large_buffer_bytes);
        http2::HeadLimits {
            max_field_bytes: field_bytes,
            max_list_bytes: field_bytes.saturating_mul(head.large_buffers),
            max_fields: head.max_fields,
            ignore_invalid_fields: head.ignore_invalid,
            underscores: head.underscores,
        }
    }
}

impl Service for WorkersState {
    type Exchange = Request;
    type Configuration = ConfigurationHandle;
    type Terms = RequestTerms;
    type Memory = Memory;

    fn memory(&self, address: ListenAddress) -> Memory {
        Memory::new(address)
    }

    #[inline]
    fn terms(&self, connection: &ConnectionFacts, memory: &mut Memory) -> Option<RequestTerms> {
        let configuration = self.configuration_of_thread();
        let listener = memory.listener(&configuration, &connection.local)?;
        Some(RequestTerms {
            server: configuration.site.http.listeners[listener.0].default_server,
            configuration,
            listener,
        })
    }

    fn tls(
        &self,
        terms: &RequestTerms,
        asked: HandshakeRequest<'_>,
    ) -> Option<Arc<rustls::ServerConfig>> {
        tls::choose(terms, asked)
    }

    fn judge_client(&self, terms: &RequestTerms, facts: &mut TlsFacts) {
        terms.configuration.live.stats.handshakes[0].fetch_add(1, Relaxed);
        tls::judge(terms, facts);
    }

    #[inline]
    fn is_stopping(&self) -> bool {
        WorkersState::is_stopping(self)
    }

    fn closes_idle(&self) -> bool {
        WorkersState::closes_idle(self)
    }

    fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stop = self.stop_signal();
        async move {
            // An error is an end as well.
            let _ = stop.wait_for(|&is_stopping| is_stopping).await;
        }
    }

    fn report_broken_connection(
        &self,
        terms: &RequestTerms,
        connection: &ConnectionFacts,
        reason: &str,
    ) {
        let configuration = terms.configuration.shared();
        let server = &configuration.site.http.servers[terms.server.0];
        let logs = &server.settings(Server::ROOT).error_logs;
        error_log::broken_connection(configuration, logs, connection.serial, reason);
    }

    fn report_failed_handshake(
        &self,
        terms: &RequestTerms,
        connection: &ConnectionFacts,
        reason: &str,
    ) {
        let configuration = terms.configuration.shared();
        configuration.live.stats.handshakes[1].fetch_add(1, Relaxed);
        let server = &configuration.site.http.servers[terms.server.0];
        let logs = &server.settings(Server::ROOT).error_logs;
        // Like in nginx: the client is to blame, and any client can cause it.
        if error_log::are_logged(logs, LogLevel::Info) {
            configuration.live.error_logs.write(
                logs,
                LogLevel::Info,
                connection.serial,
                format_args!("{reason} while SSL handshaking"),
                &connection.log_context(),
            );
        }
    }

    #[inline]
    fn receive(
        &self,
        terms: RequestTerms,
        memory: &mut Memory,
        received: ReceivedHead,
        body_of: impl FnOnce(RequestView<'_>, bool) -> Result<BodyLength, Box<Refusal>>,
    ) -> (Box<Request>, Result<BodyLength, Box<Refusal>>) {
        receive::receive(terms, memory, received, body_of)
    }

    fn receive_unreadable(&self, terms: RequestTerms, received: ReceivedHead) -> Box<Request> {
        receive::receive_unreadable(terms, received)
    }

    fn abandoned(&self, terms: RequestTerms, received: ReceivedHead, reason: &str, status: u16) {
        receive::abandoned(terms, received, reason, status);
    }

    #[inline]
    fn configuration(&self, request: &Request) -> ConfigurationHandle {
        request.configuration.clone()
    }

    #[inline]
    fn respond<'a>(
        &self,
        request: &'a mut Request,
        configuration: &'a ConfigurationHandle,
        client: &'a mut ClientSide,
        refused: Option<&Refusal>,
    ) -> ReadyOrPending<'a, ResponseOutcome> {
        if let Some(refusal) = refused {
            let reason = format_args!("{}", refusal.reason);
            error_log::request(request, LogLevel::Info, reason);
        }
        let refused = refused.map(|refusal| refusal.status);
        let answer = pipeline::serve(request, client, configuration, refused);
        match configuration.live.sibling.is_there() {
            false => answer,
            // A purge by the request takes effect in both processes before its client gets the
            // response.
            true => ReadyOrPending::pending(move || async move {
                let outcome = answer.end().await;
                configuration.live.sibling.settled().await;
                outcome
            }),
        }
    }

    fn outlived(&self, request: &Request) -> impl Future<Output = ()> + Send {
        WorkersState::outlived(self, request.configuration.shared().clone())
    }

    #[inline]
    fn end(
        &self,
        request: &mut Request,
        memory: &mut Memory,
        ending: &Result<Ending, SendError>,
    ) -> Option<JoinHandle<()>> {
        end::end(request, memory, ending)
    }
}
