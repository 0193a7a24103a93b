//! `https://` upstreams: the files of `proxy_ssl_*` made ready, and which groups
//! may keep their connections: one that was made for another name, or under
//! other rules, must not serve a request that asks for more.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use site::{Content, GroupId, PassTarget, Site, Template, TlsId, TlsSettings};
use tls_client::{Connector, Identity, Protocols, Settings, Verify};

use crate::build_error::BuildError;
use crate::tls_files::TlsFiles;

/// Reads the files and makes the settings ready.
pub fn connector(settings: &TlsSettings, files: &TlsFiles) -> Result<Connector, BuildError> {
    let read = |path: &Path| read(files, path);
    let verify = match &settings.verify {
        Some(verify) => Some(Verify {
            trusted_pem: read(&verify.trusted)?,
            depth: verify.depth,
            crl_pem: verify.crl.as_deref().map(read).transpose()?,
        }),
        None => None,
    };
    let identity = match &settings.identity {
        Some((chain, key)) => Some(Identity {
            chain_pem: read(chain)?,
            key_pem: read(key)?,
        }),
        None => None,
    };
    let settings = Settings {
        verify,
        identity,
        protocols: Protocols {
            tls12: settings.tls12,
            tls13: settings.tls13,
        },
        send_name: settings.send_name,
        reuse_sessions: settings.reuse_sessions,
        alpn: Vec::new(),
    };
    Connector::new(&settings).map_err(|error| BuildError::Tls(error.to_string()))
}

fn read(files: &TlsFiles, path: &Path) -> Result<Vec<u8>, BuildError> {
    files.bytes(path).map_err(|error| {
        BuildError::Tls(format!(
            "cannot load certificate \"{}\": {error}",
            path.display()
        ))
    })
}

/// Groups that are spoken to in more than one way, or under names that are known
/// only at run time.
pub fn mixed_groups(site: &Site) -> HashSet<GroupId> {
    let mut ways: HashMap<GroupId, (Option<TlsId>, &Template)> = HashMap::new();
    let mut mixed = HashSet::new();
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    for location in locations {
        let Content::Pass(pass) = &location.settings.content else {
            continue;
        };
        let (PassTarget::Group(group), Some(proxy)) = (&pass.target, pass.proxy()) else {
            continue;
        };
        let way = (proxy.tls, &proxy.tls_name);
        let known = ways.entry(*group).or_insert(way);
        let is_alike = known.0.is_none() && way.0.is_none() || *known == way;
        if !is_alike || (way.0.is_some() && !names_upstream(way.1)) {
            mixed.insert(*group);
        }
    }
    mixed
}

/// A constant, or `$proxy_host`, which is one for each group.
fn names_upstream(name: &Template) -> bool {
    use site::{Builtin, Part, Variable};
    name.as_constant().is_some()
        || matches!(
            name.parts.as_slice(),
            [Part::Variable(Variable::Builtin(Builtin::ProxyHost))]
        )
}
