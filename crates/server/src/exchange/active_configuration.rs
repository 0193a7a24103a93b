//! A site ready to serve: the configuration, and handles of the live state that it goes
//! by. A reload builds a new one and swaps a pointer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use site::{Content, InFileOnly, Site};
use transport::body;
use transport::connections::Connections;

use crate::exchange::compiled_location::CompiledLocations;
use crate::exchange::htaccess_site::{self, HtaccessSite};
use live_state::connectors::UpstreamTls;
use live_state::quic_keys::QuicKeys;
use live_state::server_tls::{self, ServerTlsInForce};
use live_state::{BuildError, LiveState, Resources};
use upstream_fetch::{health, naming};

/// A configuration in force.
pub struct ActiveConfiguration {
    /// Another for each one built.
    pub serial: u64,
    pub site: Site,
    pub locations: CompiledLocations,
    /// The location of each server's `.htaccess` files.
    pub htaccess: Vec<Option<HtaccessSite>>,
    /// Some location has `cache_refill on`.
    pub refills: bool,
    /// A request may have to go past the stored responses: nodes share purges, or pages are
    /// learned.
    pub may_forbid_stored: bool,
    pub live: LiveState,
    /// Made from the site's `charset_map` tables.
    pub charsets: Arc<recoding::Conversions>,
    pub hostname: String,
    /// By [`site::TlsId`].
    pub upstream_tls: Vec<UpstreamTls>,
    /// By [`site::ServerTlsId`].
    pub server_tls: Vec<ServerTlsInForce>,
    pub quic_keys: QuicKeys,
    /// The connections of clients, whatever configuration they began under.
    pub connections: Arc<Connections>,
}

impl ActiveConfiguration {
    /// Makes a site ready, carrying over unchanged parts from `previous`.
    ///
    /// # Errors
    /// The site cannot be served.
    pub fn build(
        site: Site,
        resources: Resources,
        previous: Option<&ActiveConfiguration>,
    ) -> Result<Arc<ActiveConfiguration>, BuildError> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let tls_files = resources.tls_files.clone();
        let live = LiveState::build(&site, resources, previous.map(|previous| &previous.live))?;
        let upstream_tls = site.http.tls.iter();
        let upstream_tls = upstream_tls.map(|tls| UpstreamTls::new(tls, &tls_files));
        let upstream_tls = upstream_tls.collect::<Result<_, _>>()?;
        let server_tls = server_tls::build(&site, &tls_files, &live.tls_resumption)?;
        let quic_keys = QuicKeys::read(&site, &tls_files)?;
        // From here on nothing fails, and the groups may serve already.
        if let Some(traces) = &live.traces {
            traces.tell(&live.error_logs, &site.process.error_logs);
        }
        let groups = live.groups.groups();
        for followed in naming::followed(&site, groups, &live.names) {
            followed.recall();
        }
        if previous.is_none() {
            sweep_bodies(&site);
        }
        let former = previous.map_or(&[][..], |previous| previous.live.groups.groups());
        health::watch(&site, groups, former);
        Ok(Arc::new(ActiveConfiguration {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed),
            locations: CompiledLocations::of(&site),
            htaccess: htaccess_site::sites(&site),
            refills: refills(&site),
            may_forbid_stored: live.nodes.is_some() || live.groups.learned().is_some(),
            live,
            upstream_tls,
            server_tls,
            quic_keys,
            connections: previous.map_or_else(Arc::default, |it| it.connections.clone()),
            charsets: Arc::new(recoding::Conversions::new(&site.http.charset_maps)),
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .to_ascii_lowercase(),
            site,
        }))
    }
}

fn refills(site: &Site) -> bool {
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    locations
        .filter_map(|location| match &location.settings.content {
            Content::Pass(pass) => pass.cache.as_ref(),
            _ => None,
        })
        .any(|rules| rules.refill)
}

/// Removes bodies of clients that an earlier process has left.
fn sweep_bodies(site: &Site) {
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    let cleaned = locations
        .map(|location| &location.settings.body)
        .filter(|body| match body.in_file_only {
            InFileOnly::Clean => true,
            InFileOnly::Off => site.http.uses_request_body_file,
            InFileOnly::On => false,
        })
        .map(|body| &body.temp_path);
    for folder in cleaned.collect::<BTreeSet<_>>() {
        body::sweep(folder);
    }
}
