//! PHP pools whose pages are learned (`cache_learn`), by upstream group.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use learning::{DatabaseAccount, LearnedPool, Learning, PoolRules};
use site::{GroupId, LearnDatabase, LearnMode, LearnRules, Site, UpstreamEndpoint, UpstreamGroup};

use crate::build_error::BuildError;
use crate::php_identity;

/// The pools of a configuration whose pages are learned.
pub struct LearnedPools {
    learning: Arc<Learning>,
    /// By [`GroupId`].
    by_group: Vec<Option<Arc<LearnedPool>>>,
}

impl LearnedPools {
    /// Hears the libraries of the pools to which `sockets` belong. Pages learned before stay.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn build(
        site: &Site,
        sockets: HashMap<String, OwnedFd>,
        previous: Option<&LearnedPools>,
    ) -> Result<Option<LearnedPools>, BuildError> {
        if sockets.is_empty() {
            return Ok(None);
        }
        let previous = previous.map(|previous| &*previous.learning);
        let rules = |pool: &str| PoolRules {
            accounts: accounts(site, pool, |rules| &rules.database),
            cache_accounts: accounts(site, pool, |rules| &rules.object_cache),
            keeps: wanted(site).any(|(name, rules)| name == pool && rules.keeps()),
            replays: wanted(site).any(|(name, rules)| name == pool && rules.replays),
            follows: wanted(site).any(|(name, rules)| name == pool && rules.follows),
            lasts: lasts(site, pool),
        };
        let learning = Learning::renew(previous, sockets, rules).map_err(BuildError::Learning)?;
        let groups = site.http.groups.iter();
        let by_group = groups.map(|group| learning.pool(only_pool(group)?).cloned());
        Ok(Some(LearnedPools {
            by_group: by_group.collect(),
            learning: Arc::new(learning),
        }))
    }

    /// The pool that a group consists of.
    pub fn of_group(&self, group: GroupId) -> Option<&Arc<LearnedPool>> {
        self.by_group.get(group.0)?.as_ref()
    }

    pub fn pools(&self) -> impl Iterator<Item = &Arc<LearnedPool>> {
        self.learning.pools()
    }

    pub fn learning(&self) -> &Arc<Learning> {
        &self.learning
    }
}

/// The name of the pool that is the only server of a group.
fn only_pool(group: &UpstreamGroup) -> Option<&str> {
    match &group.servers[..] {
        [server] => match &server.endpoint {
            UpstreamEndpoint::PhpPool(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a configuration wants pages of this pool learned.
pub fn is_wanted(site: &Site, pool: &str) -> bool {
    wanted(site).any(|(name, _)| name == pool)
}

/// Pages are read back from disk where replays decide about them.
fn lasts(site: &Site, pool: &str) -> Option<u64> {
    let replays = wanted(site)
        .any(|(name, rules)| name == pool && rules.mode == LearnMode::On && rules.replays);
    let model = site.process.php_pools.iter().find(|it| it.name == pool);
    php_identity::of(model.filter(|_| replays)?)
}

/// The accounts that the locations of a pool name for this purpose.
fn accounts(
    site: &Site,
    pool: &str,
    of: impl Fn(&LearnRules) -> &Option<LearnDatabase>,
) -> Vec<DatabaseAccount> {
    let mut accounts = Vec::new();
    for (_, rules) in wanted(site).filter(|(name, _)| *name == pool) {
        let Some(database) = of(rules) else {
            continue;
        };
        let account = DatabaseAccount {
            server: database.server.clone(),
            user: database.user.clone(),
            password: database.password.clone(),
        };
        if !accounts.contains(&account) {
            accounts.push(account);
        }
    }
    accounts
}

/// The pools that a configuration wants learned, by location.
fn wanted(site: &Site) -> impl Iterator<Item = (&str, &LearnRules)> {
    let locations = site.http.servers.iter().flat_map(|it| &it.locations);
    locations.filter_map(|location| {
        let site::Content::Pass(pass) = &location.settings.content else {
            return None;
        };
        let rules = pass.cache.as_ref()?.learn.as_ref()?;
        let group = match pass.target {
            site::PassTarget::Group(id) => site.http.groups.get(id.0),
            site::PassTarget::Variable(_) => None,
        };
        Some((only_pool(group?)?, rules))
    })
}
