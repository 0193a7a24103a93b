//! The resolvers of a configuration, and the last addresses of names that are followed:
//! a group whose name servers are silent keeps its servers over a reload.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use dns::{Resolver, ResolverSpec};
use parking_lot::Mutex;
use site::{NameResolution, ResolverSettings, Site};

use crate::registry::Registry;

/// The resolvers of a configuration, and the last addresses of followed names.
pub struct Names {
    resolvers: Registry<ResolverSpec, Arc<Resolver>>,
    pub answers: Arc<NameAnswers>,
}

/// The servers found under each followed name, by its host and service.
pub type NameAnswers = Mutex<HashMap<(String, Option<String>), Vec<ResolvedServer>>>;

/// One server that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedServer {
    pub address: IpAddr,
    /// The port, weight and priority of its SRV record.
    pub service: Option<SrvTarget>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrvTarget {
    pub port: u16,
    pub weight: u16,
    /// Among the records of the best priority?
    pub is_first: bool,
}

impl Names {
    /// Resolvers that stay the same keep their answers.
    pub fn build(site: &Site, previous: Option<&Names>) -> Names {
        let resolvers = site.http.resolvers.iter().map(|settings| {
            let spec = resolver_spec(settings);
            (spec.clone(), move || Resolver::new(spec))
        });
        let answers = previous.map_or_else(HashMap::new, |names| names.answers.lock().clone());
        Names {
            resolvers: Registry::renew(previous.map(|names| &names.resolvers), resolvers),
            answers: Arc::new(Mutex::new(answers)),
        }
    }

    /// The resolver that `names` goes by.
    pub fn resolver(&self, names: &NameResolution) -> Option<Arc<Resolver>> {
        let id = names.resolver?;
        self.resolvers.get(id.0).cloned()
    }
}

pub(crate) fn resolver_spec(settings: &ResolverSettings) -> ResolverSpec {
    ResolverSpec {
        valid: settings.valid,
        ipv4: settings.ipv4,
        ipv6: settings.ipv6,
        ..ResolverSpec::new(settings.servers.clone())
    }
}
