//! A request on its way through the server: what was received, where routing
//! has brought it, and what has been found out for variables and logs.
//!
//! One value lives from the parsed head to the log line; internal redirects
//! change its path and location in place. Subrequests are further values made
//! by [`Request::internal`].

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use cache_decision::Decision;
use http_cache::{DecidedBy, Outcome, Reason};
use http_semantics::RequestHead;
use parking_lot::Mutex;
use site::{Location, LocationId, Server, ServerId, Settings};
use transport::facts::ConnectionFacts;
use transport::outbound::SentHead;
use transport::request_body::RequestBody;
use transport::spare_fields;

use crate::base::sampling::Sample;
use crate::exchange::compiled_location::{CompiledLocation, CompiledLocationId, CompiledLocations};
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::error_page::ErrorPage;
use crate::exchange::extras::Extras;
use crate::exchange::host_name::HostName;
use crate::exchange::own_visit::Purpose;
use crate::exchange::reply::Reply;
use crate::exchange::request_buffers::RequestBuffers;
use crate::exchange::slicing::Slicing;
use crate::exchange::view::View;
use crate::upstreams::fetch::Trace;

pub use http_semantics::Method;

/// How often a request may be redirected internally (nginx: 10).
const MAX_INTERNAL_REDIRECTS: u8 = 10;

/// Whether a request is still the one that came from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Received,
    /// Redirected internally, as the configuration says (`try_files`, `index`).
    Redirected,
    /// Redirected internally to what an application (`X-Accel-Redirect`) or an error (`error_page`)
    /// names.
    Diverted,
    /// Made by the server itself: a subrequest, a refresh in the background and the like.
    Subrequest,
}

/// Where routing has brought a request.
#[derive(Debug, Clone, Copy)]
struct RequestRoute {
    server: ServerId,
    /// One of the server's.
    location: LocationId,
    /// The same among those of all servers.
    compiled: CompiledLocationId,
}

impl RequestRoute {
    fn new(locations: &CompiledLocations, server: ServerId, location: LocationId) -> RequestRoute {
        RequestRoute {
            server,
            location,
            compiled: locations.id(server, location),
        }
    }
}

/// A request and everything that variables, handlers and logs ask of it.
pub struct Request {
    pub configuration: ConfigurationHandle,
    pub connection: Arc<ConnectionFacts>,
    pub head: RequestHead,
    pub method: Method,
    /// `Some` where an internal redirect or `convert_head` changed it.
    pub method_override: Option<&'static str>,
    /// Current path, decoded and normalised: `$uri`.
    pub path: Vec<u8>,
    /// Query string without `?`: `$args`.
    pub args: Vec<u8>,
    /// Host without port, lower case; empty where the client named none.
    pub host: HostName,
    routed: RequestRoute,
    /// `http` or `https`: that of the connection, or what a trusted proxy says.
    pub scheme: &'static str,
    /// Client address: the peer's, or what a trusted proxy says.
    pub client: Option<SocketAddr>,
    /// Unix milliseconds of the first byte.
    pub started_at: u64,
    /// If it is one of those that are looked at more closely.
    pub sample: Option<Sample>,
    /// Unix milliseconds at which this request was last looked at.
    pub now: u64,
    pub nth_on_connection: u64,
    pub pipelined: bool,
    /// It came ahead of the end of the TLS handshake (RFC 8470).
    pub is_early: bool,
    pub kind: RequestKind,
    pub redirects_left: u8,
    /// How many requests it is part of.
    pub depth: u8,
    /// The path was changed by `rewrite` since the location was chosen.
    pub path_changed: bool,
    /// Path or arguments are no longer those of the target that was received.
    pub target_changed: bool,
    /// `try_files` found a file below an `alias` that stands for a whole path.
    pub adds_path_to_alias: bool,
    pub error_page: ErrorPage,
    pub limit_rate: Option<u64>,
    /// Set once `$slice_range` was asked for.
    pub slicing: Slicing,
    pub view: View,
    /// X-Accel-Buffering, where it was sent.
    pub accel_buffering: Option<bool>,
    pub body: RequestBody,
    /// Some location's `client_max_body_size` has let the body in.
    pub is_body_let_in: bool,
    /// Bytes of head and body received: `$request_length`.
    pub received_bytes: u64,
    /// What upstreams did; `None` while no upstream was asked.
    pub trace: Option<Arc<Mutex<Trace>>>,
    pub cache: CacheFacts,
    /// What most requests do without.
    pub extras: Extras,
    /// The response once its head is known: `$sent_http_*`, `$status`. Its body
    /// is on its way.
    pub reply: Option<Box<Reply>>,
    /// What its head says of the connection.
    pub sent_head: Option<SentHead>,
    pub status: u16,
    pub bytes_sent: u64,
    pub head_bytes_sent: u64,
    pub is_complete: bool,
}

/// What the cache did with a request, for variables and logs.
#[derive(Debug, Clone, Default)]
pub struct CacheFacts {
    /// Set where a cache zone was in play.
    pub outcome: Option<http_cache::Outcome>,
    pub key: Vec<u8>,
    /// Age of the stored response in seconds.
    pub age: Option<u64>,
    pub last_modified: Option<Bytes>,
    /// What the answer from memory spared an upstream, in microseconds.
    pub spared_micros: u64,
    /// Why the cache had no part in the response, or could not keep it.
    pub reason: Option<Reason>,
    /// The visitor gets the read-your-writes cookie, for this time.
    pub marks_writer: Option<std::time::Duration>,
}

impl CacheFacts {
    /// Notes what was decided about the request.
    pub fn note_decision(&mut self, decision: &Decision) {
        if let Some(forward) = decision.forward {
            self.outcome = Some(Outcome::forwarded(forward));
        }
        self.reason = decision.reason;
    }

    /// The response is not kept. Where the request went past the cache, that is the reason: no
    /// response would have been looked up.
    pub fn note_not_stored(&mut self, why: Reason) {
        let is_past = |why: Reason| why.decided_by() == DecidedBy::Request;
        if !self.reason.is_some_and(is_past) {
            self.reason = Some(why);
        }
    }

    /// Its head lets the response be stored: what was known of the one before is over.
    pub fn note_storing(&mut self) {
        self.forget(DecidedBy::Response);
    }

    /// The response is stored.
    pub fn note_stored(&mut self) {
        self.forget(DecidedBy::Response);
        self.forget(DecidedBy::Body);
    }

    fn forget(&mut self, decided_by: DecidedBy) {
        self.reason.take_if(|why| why.decided_by() == decided_by);
    }
}

impl Request {
    pub fn server(&self) -> &Server {
        &self.configuration.site.http.servers[self.routed.server.0]
    }

    pub fn server_id(&self) -> ServerId {
        self.routed.server
    }

    /// The location that the request is in.
    pub fn location(&self) -> &Location {
        self.server().location(self.routed.location)
    }

    /// Where upstreams' doings are noted.
    pub fn trace(&mut self) -> &Arc<Mutex<Trace>> {
        self.trace.get_or_insert_default()
    }

    /// A request line was understood: without one there is nothing but its bytes.
    pub fn has_line(&self) -> bool {
        !self.head.method().is_empty()
    }

    pub fn method_name(&self) -> &[u8] {
        match self.method_override {
            Some(name) => name.as_bytes(),
            None => self.head.method(),
        }
    }

    /// Path and query as the client sent them: `$request_uri`. Of a target with
    /// scheme and authority (RFC 9112 §3.2.2) what follows these, as in nginx.
    pub fn received_target(&self) -> &[u8] {
        self.head.target()
    }

    pub fn client_ip(&self) -> Option<IpAddr> {
        self.client.map(|address| address.ip())
    }

    /// Makes it a GET from here on, as an error page's request is (HEAD stays).
    pub fn become_get(&mut self) {
        if self.method != Method::Head && self.method != Method::Get {
            self.method = Method::Get;
            self.method_override = Some("GET");
        }
    }

    /// Goes on in `server`, at its own level.
    pub fn enter_server(&mut self, server: ServerId) {
        self.routed.server = server;
        self.enter(Server::ROOT);
    }

    /// Goes on in `location`, with its settings.
    pub fn enter(&mut self, location: LocationId) {
        self.adds_path_to_alias = false;
        let server = self.routed.server;
        self.routed = RequestRoute::new(&self.configuration.locations, server, location);
    }

    /// What holds in the location.
    pub fn settings(&self) -> &Settings {
        &self.compiled_location().settings
    }

    /// The same for keeps, where the request changes meanwhile. All threads count
    /// their shares in one place: not for what every hit does.
    pub fn settings_held(&self) -> Arc<Settings> {
        self.compiled_location().settings.clone()
    }

    /// Where the location stands among all: for those who hold the configuration
    /// themselves, while the request changes.
    pub fn compiled_location_id(&self) -> CompiledLocationId {
        self.routed.compiled
    }

    /// The location, with what is known of it ahead.
    pub fn compiled_location(&self) -> &CompiledLocation {
        self.configuration.locations.get(self.routed.compiled)
    }

    /// Would an `error_page` take this status?
    pub fn may_intercept(&self, status: u16) -> bool {
        let pages = &self.settings().error_pages;
        (!self.error_page.is_tried() || self.settings().recursive_error_pages)
            && pages.iter().any(|page| page.statuses.contains(&status))
    }

    /// Does the server ask itself, in the name of no visitor?
    pub fn is_own_visit(&self) -> bool {
        self.extras.own_visit.is_some()
    }

    /// Does the server ask itself, so that the page is stored?
    pub fn is_to_be_stored(&self) -> bool {
        let visit = self.extras.own_visit.as_ref();
        visit.is_some_and(|visit| !matches!(visit.purpose, Purpose::Ask))
    }

    /// Is it forbidden to ask an upstream on its behalf?
    pub fn is_dry(&self) -> bool {
        let visit = self.extras.own_visit.as_ref();
        visit.is_some_and(|visit| visit.is_dry())
    }

    /// Not the client's own: a subrequest, a refresh in the background and the like.
    pub fn is_subrequest(&self) -> bool {
        self.kind == RequestKind::Subrequest
    }

    /// Is it what a client has asked for? Not so what the server asks itself (fragments,
    /// `auth_request`, warming) and what an application or an error names in the place of it: these
    /// reach nothing that is for the operator.
    pub fn is_clients_own(&self) -> bool {
        matches!(self.kind, RequestKind::Received | RequestKind::Redirected) && !self.is_own_visit()
    }

    /// Made by the server itself, or redirected internally: may enter `internal` locations.
    pub fn is_internal(&self) -> bool {
        self.kind != RequestKind::Received
    }

    /// It is redirected internally.
    pub fn become_internal(&mut self) {
        if self.kind == RequestKind::Received {
            self.kind = RequestKind::Redirected;
        }
    }

    /// An application or an error names another path.
    pub fn become_diverted(&mut self) {
        if self.kind != RequestKind::Subrequest {
            self.kind = RequestKind::Diverted;
        }
    }

    /// Counts an internal redirect; false when there were too many.
    pub fn may_redirect(&mut self) -> bool {
        match self.redirects_left.checked_sub(1) {
            Some(left) => {
                self.redirects_left = left;
                true
            }
            None => false,
        }
    }

    /// A new request to be served by the server itself in the place of this
    /// one's client: same head, same target, no body.
    pub fn internal(&self) -> Box<Request> {
        let mut copy = Request::new(
            self.configuration.clone(),
            self.connection.clone(),
            self.head.clone(),
            self.routed.server,
            self.now,
        );
        copy.method = self.method;
        copy.method_override = self.method_override;
        copy.path = self.path.clone();
        copy.args = self.args.clone();
        copy.host = self.host.clone();
        copy.scheme = self.scheme;
        copy.client = self.client;
        copy.enter(self.routed.location);
        copy.extras = self.extras.inherited();
        copy.kind = RequestKind::Subrequest;
        copy.redirects_left = self.redirects_left;
        copy.path_changed = self.path_changed;
        copy.target_changed = self.target_changed;
        copy
    }

    pub fn new(
        configuration: ConfigurationHandle,
        connection: Arc<ConnectionFacts>,
        head: RequestHead,
        server: ServerId,
        now: u64,
    ) -> Box<Request> {
        let buffers = RequestBuffers::take();
        let method = Method::parse(head.method());
        let routed = RequestRoute::new(&configuration.locations, server, Server::ROOT);
        let (client, scheme) = (connection.peer, connection.scheme);
        // Made where it stays: it is large.
        Box::write(
            Box::new_uninit(),
            Request {
                configuration,
                connection,
                head,
                method,
                method_override: None,
                path: buffers.path,
                args: buffers.args,
                host: HostName::default(),
                routed,
                scheme,
                client,
                started_at: now,
                sample: None,
                now,
                nth_on_connection: 1,
                pipelined: false,
                is_early: false,
                kind: RequestKind::Received,
                redirects_left: MAX_INTERNAL_REDIRECTS,
                depth: 0,
                path_changed: false,
                target_changed: false,
                adds_path_to_alias: false,
                error_page: ErrorPage::Untried,
                limit_rate: None,
                slicing: Slicing::None,
                view: View::Plain,
                accel_buffering: None,
                body: RequestBody::None,
                is_body_let_in: false,
                received_bytes: 0,
                trace: None,
                cache: CacheFacts {
                    key: buffers.key,
                    ..CacheFacts::default()
                },
                extras: Extras::default(),
                reply: None,
                sent_head: None,
                status: 0,
                bytes_sent: 0,
                head_bytes_sent: 0,
                is_complete: false,
            },
        )
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        spare_fields::give(std::mem::take(&mut self.head.fields));
        RequestBuffers {
            path: std::mem::take(&mut self.path),
            args: std::mem::take(&mut self.args),
            key: std::mem::take(&mut self.cache.key),
        }
        .give();
    }
}
