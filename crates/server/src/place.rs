//! The locations of a configuration as requests meet them: the settings of all of
//! them in one table, and beside each what its settings leave out. Most use little
//! of what there is; so a request asks once, and pays for what is used.

use std::sync::Arc;

use site::{
    Coding, Listener, ListenerId, Location, LocationId, ServerId, ServerTokens, Settings, Site,
};

use crate::respond::ServerLine;
use crate::{gate, recode, respond};

/// One location.
pub struct Place {
    pub settings: Arc<Settings>,
    /// More than host and path may have led here.
    pub is_conditional: bool,
    /// Nothing stands before the content: no limits, access rules, `try_files`,
    /// `mirror`, or proxies whose word is taken for the client's address.
    pub is_open: bool,
    /// Responses leave as they are, but for a content coding: no fields are added, no
    /// body put together.
    pub adds_nothing: bool,
    /// Bodies may leave in another content coding than they came in.
    pub recodes: bool,
    /// What they may be compressed with, in the order of preference.
    pub codings: [Option<Coding>; 3],
    /// Bodies may be slowed down.
    pub is_paced: bool,
    pub server_line: ServerLine,
}

/// All locations of all servers.
pub struct Places {
    /// Of each server, where its locations begin.
    first: Vec<usize>,
    places: Vec<Place>,
    /// Of each listener, whether whatever comes to it is for its default server.
    has_one_server: Vec<bool>,
}

/// Where a location stands in [`Places`].
#[derive(Debug, Clone, Copy)]
pub struct PlaceId(usize);

impl Places {
    pub fn of(site: &Site) -> Places {
        let (mut first, mut places) = (Vec::new(), Vec::new());
        for server in &site.http.servers {
            first.push(places.len());
            let own = &server.locations;
            places.extend(own.iter().map(Place::of));
        }
        Places {
            first,
            places,
            has_one_server: site.http.listeners.iter().map(has_one_server).collect(),
        }
    }

    /// Is there nothing to choose among behind this listener?
    pub fn has_one_server(&self, listener: ListenerId) -> bool {
        self.has_one_server[listener.0]
    }

    pub fn id(&self, server: ServerId, location: LocationId) -> PlaceId {
        PlaceId(self.first[server.0] + location.0)
    }

    pub fn get(&self, id: PlaceId) -> &Place {
        &self.places[id.0]
    }
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

impl Place {
    fn of(location: &Location) -> Place {
        let settings = &location.settings;
        let codings = recode::codings(&settings.compression);
        Place {
            settings: settings.clone(),
            is_conditional: location.is_conditional,
            is_open: is_open(settings),
            adds_nothing: adds_nothing(settings),
            recodes: settings.compression.gunzip || codings.iter().any(Option::is_some),
            codings,
            is_paced: respond::is_pace_configured(settings),
            server_line: ServerLine::of(&settings.headers.server_tokens),
        }
    }
}

fn is_open(settings: &Settings) -> bool {
    settings.limits.connections.is_empty()
        && settings.limits.requests.is_empty()
        && !gate::is_guarded(settings)
        && settings.files.try_files.is_none()
        && settings.mirror.is_none()
        && settings.real_ip.from.is_empty()
}

fn adds_nothing(settings: &Settings) -> bool {
    let headers = &settings.headers;
    headers.trailers.is_empty()
        && !matches!(headers.server_tokens, ServerTokens::Text(_))
        && !respond::adds_fields(settings)
        && settings.addition.before.is_none()
        && settings.addition.after.is_none()
        && !settings.ssi.enabled
}
