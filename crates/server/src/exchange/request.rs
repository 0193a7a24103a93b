//! A request on its way through the server, in parts by stage: the received request, its route, the
//! cache's facts, and the delivery of its answer.
//!
//! One value lives from the parsed head to the log line; internal redirects
//! change its route in place. Subrequests are further values made
//! by [`Request::internal`].

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use http_semantics::RequestHead;
use parking_lot::Mutex;
use site::{Location, LocationId, Server, ServerId, Settings};
use transport::facts::ConnectionFacts;
use transport::request_body::RequestBody;
use transport::service::ReceivedHead;

use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::compiled_location::{CompiledLocation, CompiledLocationId};
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::delivery::Delivery;
use crate::exchange::fragment_facts::FragmentFacts;
use crate::exchange::own_visit::{OwnVisit, Purpose};
use crate::exchange::page_budget::PageBudget;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request_buffers::RequestBuffers;
use crate::exchange::request_route::{RequestKind, RequestRoute};
use crate::exchange::request_values::RequestValues;
use server_base::sampling::Sample;
use upstream::Class;
use upstream_fetch::Trace;

pub use http_semantics::Method;

/// A request and everything that variables, handlers and logs ask of it.
pub struct Request {
    pub configuration: ConfigurationHandle,
    pub received: ReceivedRequest,
    pub route: RequestRoute,
    pub body: RequestBody,
    /// Some location's `client_max_body_size` has let the body in.
    pub is_body_let_in: bool,
    /// Bytes of head and body received: `$request_length`.
    pub received_bytes: AtomicU64,
    /// Unix milliseconds at which this request was last looked at.
    now: AtomicU64,
    /// The trace of the upstreams that were tried; empty while no upstream was asked.
    pub trace: OnceLock<Arc<Mutex<Trace>>>,
    pub cache: CacheFacts,
    pub values: RequestValues,
    /// Set for a page of fragments, and for its parts.
    pub fragments: OnceLock<Box<FragmentFacts>>,
    /// The class of the request or task that its upstream requests are made for.
    pub class: Class,
    /// The server asks itself.
    pub own_visit: Option<Box<OwnVisit>>,
    pub delivery: Delivery,
}

impl Request {
    /// Creates a request from a received head, at the level of `server`.
    #[inline]
    pub fn new(
        configuration: ConfigurationHandle,
        received: ReceivedHead,
        sample: Option<Sample>,
        server: ServerId,
        now: u64,
    ) -> Box<Request> {
        let place = Box::new_uninit();
        let buffers = RequestBuffers::take();
        let method = Method::parse(received.head.method());
        let target = (buffers.path, buffers.args);
        let route = RequestRoute::new(&configuration.locations, server, method, target);
        // It is large, so its parts are made where they stay: nothing between them can fail,
        // or each would need a place of its own from which it could be dropped.
        Box::write(
            place,
            Request {
                configuration,
                received_bytes: AtomicU64::new(received.bytes),
                received: ReceivedRequest::new(received, sample),
                route,
                body: RequestBody::None,
                is_body_let_in: false,
                now: AtomicU64::new(now),
                trace: OnceLock::new(),
                cache: CacheFacts::new(buffers.key),
                values: RequestValues::default(),
                fragments: OnceLock::new(),
                class: Class::Visitor,
                own_visit: None,
                delivery: Delivery::default(),
            },
        )
    }

    /// A new request to be served by the server itself in the place of this
    /// one's client: same head, same target, no body.
    pub fn internal(&self) -> Box<Request> {
        let (connection, head) = (self.received.connection(), self.received.head());
        self.internal_with(connection.clone(), head.clone())
    }

    /// Like [`Request::internal`], with another connection and head.
    pub fn internal_with(
        &self,
        connection: Arc<ConnectionFacts>,
        head: RequestHead,
    ) -> Box<Request> {
        Box::new(Request {
            configuration: self.configuration.clone(),
            received: self.received.remade(connection, head, self.now()),
            route: self.route.subrequest(),
            body: RequestBody::None,
            is_body_let_in: false,
            received_bytes: AtomicU64::new(0),
            now: AtomicU64::new(self.now()),
            trace: OnceLock::new(),
            cache: CacheFacts::default(),
            values: self.values.inherited(),
            fragments: match self.page_budget() {
                Some(budget) => FragmentFacts::new(budget.clone()).into(),
                None => OnceLock::new(),
            },
            class: self.class,
            own_visit: None,
            delivery: Delivery::default(),
        })
    }

    /// The same request once more, to be changed and sent in this one's place.
    pub fn again(&self) -> Box<Request> {
        let mut again = self.on_same_way(self.internal());
        again.trace = self.trace.clone();
        again.body = self.body.share();
        again.values.get_mut().request_id = Some(self.values.name_request());
        again
    }

    /// Takes `made` as far on its way through the configuration as this request is.
    pub fn on_same_way(&self, mut made: Box<Request>) -> Box<Request> {
        let values = made.values.get_mut();
        values.slicing = self.values.slicing();
        // It is made again.
        values.path_info = None;
        // The fetch has a trace of its own.
        values.tracing = None;
        made.cache.guest = self.cache.guest.clone();
        made.route.adds_path_to_alias = self.route.adds_path_to_alias;
        // It is the request that is answered, not a part of another.
        made.route.kind = self.route.kind;
        made
    }

    /// Returns the time in Unix milliseconds at which this request was last looked at.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    /// The request is looked at again, at this time.
    pub fn note_time(&self, now: u64) {
        self.now.store(now, Relaxed);
    }

    /// Sets the body that was read. No one reads a part of one, not even an error page.
    ///
    /// # Errors
    /// The status for a body that could not be read.
    pub fn set_body(&mut self, read: Result<RequestBody, u16>) -> Result<(), u16> {
        let (body, status) = match read {
            Ok(body) => (body, Ok(())),
            Err(status) => (RequestBody::None, Err(status)),
        };
        self.body = body;
        status
    }

    pub fn server(&self) -> &Server {
        &self.configuration.site.http.servers[self.route.server().0]
    }

    /// The location that the request is in.
    pub fn location(&self) -> &Location {
        self.server().location(self.route.location())
    }

    /// Returns the trace of upstreams, to note tries in.
    pub fn trace(&self) -> &Arc<Mutex<Trace>> {
        self.trace.get_or_init(Arc::default)
    }

    pub fn method_name(&self) -> &[u8] {
        match self.route.method_override {
            Some(name) => name.as_bytes(),
            None => self.received.head().method(),
        }
    }

    /// Goes on in `server`, at its own level.
    pub fn enter_server(&mut self, server: ServerId) {
        let locations = &self.configuration.locations;
        self.route.enter(locations, server, Server::ROOT);
    }

    /// Goes on in `location`, with its settings.
    pub fn enter(&mut self, location: LocationId) {
        let locations = &self.configuration.locations;
        self.route.enter(locations, self.route.server(), location);
    }

    /// The settings of the request's location.
    pub fn settings(&self) -> &Settings {
        &self.compiled_location().settings
    }

    /// Returns a counted reference to the settings, for callers that change the request meanwhile.
    /// All threads count in one place: not for the path of every hit.
    pub fn settings_held(&self) -> Arc<Settings> {
        self.compiled_location().settings.clone()
    }

    /// Returns the index of the location among all, for callers that hold the configuration
    /// themselves while the request changes.
    pub fn compiled_location_id(&self) -> CompiledLocationId {
        self.route.compiled()
    }

    /// Returns the location, with the facts compiled ahead.
    pub fn compiled_location(&self) -> &CompiledLocation {
        self.configuration.locations.get(self.route.compiled())
    }

    /// Returns the budget of the page of fragments that the request is for, or for a part of.
    pub fn page_budget(&self) -> Option<&Arc<PageBudget>> {
        self.fragments.get().map(|page| &page.budget)
    }

    /// Would an `error_page` take this status?
    pub fn may_intercept(&self, status: u16) -> bool {
        let pages = &self.settings().error_pages;
        self.delivery.error_page.may_follow()
            && pages.iter().any(|page| page.statuses.contains(&status))
    }

    /// Does the server ask itself, in the name of no visitor?
    pub fn is_own_visit(&self) -> bool {
        self.own_visit.is_some()
    }

    /// Does the server ask itself, so that the page is stored?
    pub fn is_to_be_stored(&self) -> bool {
        let visit = self.own_visit.as_ref();
        visit.is_some_and(|visit| !matches!(visit.purpose, Purpose::Ask))
    }

    /// Is it forbidden to ask an upstream on its behalf?
    pub fn is_dry(&self) -> bool {
        let visit = self.own_visit.as_ref();
        visit.is_some_and(|visit| visit.is_dry())
    }

    /// Is it the request of a client? Requests of the server itself (fragments, `auth_request`,
    /// warming), and paths that an application or an error names in its place, are not: these reach
    /// nothing that is for the operator.
    pub fn is_clients_own(&self) -> bool {
        let kind = self.route.kind;
        matches!(kind, RequestKind::Received | RequestKind::Redirected) && !self.is_own_visit()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        RequestBuffers {
            path: std::mem::take(&mut self.route.path),
            args: std::mem::take(&mut self.route.args),
            key: std::mem::take(&mut self.cache.key),
        }
        .give();
    }
}
