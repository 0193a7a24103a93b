//! The locations of a configuration as requests meet them: the settings of all of them in one
//! table, and beside each the features that it does not use. Most locations use few features; so a
//! request checks once, and pays only for those in use.

use std::collections::BTreeSet;
use std::sync::Arc;

use site::{
    Coding, CompressionSettings, Content, Expires, Listener, ListenerId, LocationId, RewriteOp,
    Server, ServerId, ServerTokens, Settings, Site,
};

/// One location.
pub struct CompiledLocation {
    pub settings: Arc<Settings>,
    pub before_content: BeforeContent,
    /// Responses leave as they are, but for a content coding: no fields are added, no
    /// body put together.
    pub adds_nothing: bool,
    /// The codings that bodies may be compressed with, in the order of preference. `None`: they
    /// leave in the content coding that they came in.
    pub recoding: Option<[Option<Coding>; 3]>,
    /// Bodies may be slowed down.
    pub is_paced: bool,
    pub server_line: ServerLine,
    /// With `cache_shared`: the part of cache keys that separates this location from others that the
    /// same URL may lead to. Empty if the URL alone leads to it.
    pub name_in_key: Box<[u8]>,
}

/// The stages that run before the content of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeforeContent {
    /// Nothing: no limits, access rules, `try_files`,
    /// `mirror`, or proxies whose word is taken for the client's address.
    Nothing,
    /// Something, but no access rules.
    Stages,
    /// `allow`, `deny`, `auth_basic` or `auth_request`, and perhaps more.
    AccessRules,
}

/// The `Server` field of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerLine {
    Version,
    Name,
    /// Text of the operator's, evaluated for each request.
    Text,
}

/// All locations of all servers.
pub struct CompiledLocations {
    /// The index of each server's first location.
    first: Vec<usize>,
    locations: Vec<CompiledLocation>,
    /// For each listener: do all its requests go to its default server?
    has_one_server: Vec<bool>,
}

/// The index of a location in [`CompiledLocations`].
#[derive(Debug, Clone, Copy)]
pub struct CompiledLocationId(usize);

impl CompiledLocations {
    pub fn of(site: &Site) -> CompiledLocations {
        let (mut first, mut locations) = (Vec::new(), Vec::new());
        for (id, server) in site.http.servers.iter().enumerate() {
            first.push(locations.len());
            let in_key = names_in_key(site, ServerId(id));
            let own = server.locations.iter().zip(in_key);
            locations
                .extend(own.map(|(location, name)| CompiledLocation::of(&location.settings, name)));
        }
        CompiledLocations {
            first,
            locations,
            has_one_server: site.http.listeners.iter().map(has_one_server).collect(),
        }
    }

    /// Is there nothing to choose among behind this listener?
    pub fn has_one_server(&self, listener: ListenerId) -> bool {
        self.has_one_server[listener.0]
    }

    pub fn id(&self, server: ServerId, location: LocationId) -> CompiledLocationId {
        CompiledLocationId(self.first[server.0] + location.0)
    }

    pub fn get(&self, id: CompiledLocationId) -> &CompiledLocation {
        &self.locations[id.0]
    }
}

/// Returns the part of cache keys for each location of a server
/// ([`CompiledLocation::name_in_key`]).
///
/// Which server a request comes to depends on the address that it is sent to, beside the
/// host. Named locations and those of `if` are reached on conditions that anything of a
/// request may meet. Names are used, and not numbers, so that keys stay the same when a new
/// configuration has more locations than the old one.
fn names_in_key(site: &Site, id: ServerId) -> Vec<Box<[u8]>> {
    let servers = &site.http.servers;
    let server = &servers[id.0];
    let sharing = servers.iter().filter(|server| {
        let mut locations = server.locations.iter();
        locations.any(|location| is_shared(&location.settings))
    });
    let of_server = match sharing.count() {
        0 | 1 => String::new(),
        _ => {
            let before = servers[..id.0].iter();
            let number = before.filter(|other| other.name == server.name).count();
            format!("{}#{number}", server.name)
        }
    };
    let conditional = conditional_locations(server);
    let locations = server.locations.iter().enumerate();
    locations
        .map(|(at, location)| {
            if !is_shared(&location.settings) {
                return Box::default();
            }
            let mut name = of_server.clone();
            if conditional.contains(&at) {
                let same = |other: &&usize| server.locations[**other].name == location.name;
                let before = conditional.iter().filter(|&&other| other < at);
                let number = before.filter(same).count();
                name.push_str(&format!(" {}#{number}", location.name));
            }
            name.into_bytes().into()
        })
        .collect()
}

fn is_shared(settings: &Settings) -> bool {
    match &settings.content {
        Content::Pass(pass) => {
            let cache = pass.cache.as_ref();
            cache.is_some_and(|rules| rules.shared.is_some())
        }
        _ => false,
    }
}

/// Named locations, and those of `if` blocks that change a setting.
fn conditional_locations(server: &Server) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for (at, location) in server.locations.iter().enumerate() {
        if location.named {
            found.insert(at);
        }
        for op in &location.rewrite {
            if let RewriteOp::If {
                location: Some(inner),
                ..
            } = op
                && !Arc::ptr_eq(server.settings(*inner), &location.settings)
            {
                found.insert(inner.0);
            }
        }
    }
    found
}

fn has_one_server(listener: &Listener) -> bool {
    let names = &listener.names;
    let wildcards = names
        .leading_wildcard
        .iter()
        .chain(&names.trailing_wildcard);
    let mut named = names
        .exact
        .values()
        .chain(wildcards.map(|(_, server)| server));
    names.patterns.is_empty() && named.all(|server| *server == listener.default_server)
}

impl CompiledLocation {
    fn of(settings: &Arc<Settings>, name_in_key: Box<[u8]>) -> CompiledLocation {
        let codings = codings(&settings.compression);
        let recodes = settings.compression.gunzip || codings.iter().any(Option::is_some);
        CompiledLocation {
            settings: settings.clone(),
            before_content: before_content(settings),
            adds_nothing: adds_nothing(settings),
            recoding: recodes.then_some(codings),
            is_paced: is_paced(settings),
            server_line: server_line(&settings.headers.server_tokens),
            name_in_key,
        }
    }
}

fn before_content(settings: &Settings) -> BeforeContent {
    match is_open(settings) {
        _ if has_access_rules(settings) => BeforeContent::AccessRules,
        true => BeforeContent::Nothing,
        false => BeforeContent::Stages,
    }
}

fn is_open(settings: &Settings) -> bool {
    settings.limits.connections.is_empty()
        && settings.limits.requests.is_empty()
        && settings.files.try_files.is_none()
        && settings.mirror.is_none()
        && !settings
            .otel
            .as_ref()
            .is_some_and(|otel| otel.begins_traces())
        && settings.real_ip.from.is_empty()
}

fn adds_nothing(settings: &Settings) -> bool {
    let headers = &settings.headers;
    headers.trailers.is_empty()
        && !matches!(headers.server_tokens, ServerTokens::Text(_))
        && !adds_fields(settings)
        && settings.addition.before.is_none()
        && settings.addition.after.is_none()
        && settings.sub_filter.is_none()
        && settings.post_action.is_none()
        && !settings.ssi.enabled
        && !settings.esi.is_on()
}

/// Is there anything to check?
fn has_access_rules(settings: &Settings) -> bool {
    !settings.access.is_empty() || settings.auth.is_some() || settings.auth_request.is_some()
}

/// `add_header`, `more_set_headers`, `expires`, `userid` or `charset` may add or change a field.
pub fn adds_fields(settings: &Settings) -> bool {
    !settings.headers.add.is_empty()
        || !settings.headers.edits.is_empty()
        || settings.headers.expires != Expires::Off
        || settings.headers.user_id.is_some()
        || !settings.charset.charset.is_empty()
}

/// `limit_rate` may slow a response down.
fn is_paced(settings: &Settings) -> bool {
    let template = &settings.limit_rate;
    !template.is_empty() && template.as_constant() != Some(b"0")
}

/// The codings that bodies may be compressed with, in the order of [`Coding::ALL`].
fn codings(settings: &CompressionSettings) -> [Option<Coding>; Coding::ALL.len()] {
    Coding::ALL.map(|coding| settings.coding(coding).enabled.then_some(coding))
}

fn server_line(tokens: &ServerTokens) -> ServerLine {
    match tokens {
        ServerTokens::On | ServerTokens::Build => ServerLine::Version,
        ServerTokens::Off => ServerLine::Name,
        ServerTokens::Text(_) => ServerLine::Text,
    }
}
