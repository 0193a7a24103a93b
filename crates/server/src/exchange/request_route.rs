//! The current route of a request: its server and location, and the path, arguments and method that
//! it goes on with. Rewriting and internal redirects change them.

use site::{LocationId, Server, ServerId};

use crate::exchange::compiled_location::{CompiledLocationId, CompiledLocations};

pub use http_semantics::Method;

/// How often a request may be redirected internally (nginx: 10).
const MAX_INTERNAL_REDIRECTS: u8 = 10;

/// Whether a request is still the one that came from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Received,
    /// Redirected internally by the configuration (`try_files`, `index`).
    Redirected,
    /// Redirected internally to a path that an application (`X-Accel-Redirect`) or an error
    /// (`error_page`) names.
    Diverted,
    /// Made by the server itself: a subrequest, a refresh in the background and the like.
    Subrequest,
}

/// Whether path and arguments are still those of the target that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetOrigin {
    Received,
    Changed,
    /// `rewrite` has changed the path since the location was chosen.
    Rewritten,
}

#[derive(Clone)]
pub struct RequestRoute {
    server: ServerId,
    /// One of the server's.
    location: LocationId,
    /// The index of the location among those of all servers.
    compiled: CompiledLocationId,
    pub method: Method,
    /// `Some` if an internal redirect or `convert_head` changed it.
    pub method_override: Option<&'static str>,
    /// Current path, decoded and normalised: `$uri`.
    pub path: Vec<u8>,
    /// Query string without `?`: `$args`.
    pub args: Vec<u8>,
    pub origin: TargetOrigin,
    pub kind: RequestKind,
    redirects_left: u8,
    /// How many requests it is part of.
    pub depth: u8,
    /// `try_files` found a file below an `alias` that stands for a whole path.
    pub adds_path_to_alias: bool,
    /// The URL that a `proxy_pass` with variables leads to; `None`: it has no variables, or none is meant.
    pub proxy_url: Option<Box<ProxyUrl>>,
    /// Variables that `.htaccess` files set for scripts.
    pub script_variables: Vec<(String, Vec<u8>)>,
}

/// The target of a `proxy_pass` with variables for one request.
#[derive(Debug, Clone, Default)]
pub struct ProxyUrl {
    /// Name of a group or `HOST:PORT` or `unix:PATH`.
    pub group: String,
    /// `$proxy_host` and `$proxy_port`
    pub host: Vec<u8>,
    pub port: Vec<u8>,
    pub uri: Option<Vec<u8>>,
}

impl RequestRoute {
    /// Creates the route of a request at the level of `server`; the buffers are empty.
    #[inline(always)]
    pub fn new(
        locations: &CompiledLocations,
        server: ServerId,
        method: Method,
        (path, args): (Vec<u8>, Vec<u8>),
    ) -> RequestRoute {
        RequestRoute {
            server,
            location: Server::ROOT,
            compiled: locations.id(server, Server::ROOT),
            method,
            method_override: None,
            path,
            args,
            origin: TargetOrigin::Received,
            kind: RequestKind::Received,
            redirects_left: MAX_INTERNAL_REDIRECTS,
            depth: 0,
            adds_path_to_alias: false,
            proxy_url: None,
            script_variables: Vec::new(),
        }
    }

    /// That of a request that the server makes itself, which begins where this one is.
    pub fn subrequest(&self) -> RequestRoute {
        RequestRoute {
            kind: RequestKind::Subrequest,
            depth: 0,
            adds_path_to_alias: false,
            ..self.clone()
        }
    }

    pub fn server(&self) -> ServerId {
        self.server
    }

    pub fn location(&self) -> LocationId {
        self.location
    }

    pub fn compiled(&self) -> CompiledLocationId {
        self.compiled
    }

    /// Goes on in `location` of `server`.
    pub fn enter(&mut self, locations: &CompiledLocations, server: ServerId, location: LocationId) {
        self.adds_path_to_alias = false;
        self.server = server;
        self.location = location;
        self.compiled = locations.id(server, location);
    }

    /// Makes it a GET, whatever the client's request is.
    pub fn make_get(&mut self) {
        self.method = Method::Get;
        self.method_override = Some("GET");
    }

    /// Makes it a GET from here on, as an error page's request is (HEAD stays).
    pub fn become_get(&mut self) {
        if self.method != Method::Head && self.method != Method::Get {
            self.make_get();
        }
    }

    /// Path or arguments are no longer those that were received.
    pub fn note_change(&mut self) {
        if self.origin == TargetOrigin::Received {
            self.origin = TargetOrigin::Changed;
        }
    }

    /// A location is chosen for the path as it is.
    pub fn note_location_chosen(&mut self) {
        if self.origin == TargetOrigin::Rewritten {
            self.origin = TargetOrigin::Changed;
        }
    }

    /// Has `rewrite` changed the path since the location was chosen?
    pub fn is_rewritten(&self) -> bool {
        self.origin == TargetOrigin::Rewritten
    }

    /// Not the client's own: a subrequest, a refresh in the background and the like.
    pub fn is_subrequest(&self) -> bool {
        self.kind == RequestKind::Subrequest
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

    /// Were there not too many internal redirects yet?
    pub fn may_redirect(&self) -> bool {
        self.redirects_left > 0
    }

    /// Counts an internal redirect.
    pub fn count_redirect(&mut self) {
        self.redirects_left = self.redirects_left.saturating_sub(1);
    }
}
