//! Audits of learned pages (`cache_learn`): of a thousand answers, one page that counts as unchanged is made
//! again, and compared with its stored copy. An audit is a request like that of a visitor who has never been
//! here, which stands in the line of refreshes.

use std::sync::Weak;
use std::time::Duration;

use numbers::table::CACHE_STATUSES;
use shared_request::Class;
use tokio::time::{sleep, timeout};

use super::visit;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::own_visit::Purpose;
use crate::service::own_visit::{self, AskedUrl};

/// Answers for one audit.
const ANSWERS_EACH: u64 = 1000;
/// How often it is looked whether one is due. No more than one is made in this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An audit that takes longer is given up.
const MAX_AUDIT: Duration = Duration::from_secs(60);
/// Audits that are owed at most, after a time without room for them.
const MAX_DUE: u64 = 10;

/// Runs as long as the configuration is in force.
pub async fn run(configuration: Weak<ActiveConfiguration>) {
    let mut seen = None;
    let mut due = Due::default();
    loop {
        sleep(LOOK_EVERY).await;
        let Some(configuration) = configuration.upgrade() else {
            return;
        };
        let answers = answers(&configuration);
        due.count(answers.saturating_sub(seen.replace(answers).unwrap_or(answers)));
        if !due.take() {
            continue;
        }
        let Some(pools) = configuration.live.groups.learned() else {
            return;
        };
        let pages = pools.pools().filter_map(|pool| pool.page_to_audit());
        let pages: Vec<String> = pages.collect();
        let configuration = ConfigurationHandle::new(configuration);
        for url in pages {
            // Its result is compared in the learned pool.
            let _ = timeout(MAX_AUDIT, audit(&configuration, &url)).await;
        }
    }
}

async fn audit(configuration: &ConfigurationHandle, url: &str) {
    let asked = AskedUrl {
        url,
        method: "GET",
        client: None,
        fields: visit::fields(Class::Desktop),
    };
    // A site that a reload has taken away has no such page any more.
    if let Ok(mut request) = own_visit::of_url(configuration, &asked, Purpose::Audit) {
        visit::visit(&mut request).await;
    }
}

/// Answers through a cache since the start.
fn answers(configuration: &ActiveConfiguration) -> u64 {
    let by_cache = configuration.live.stats.ended.by_cache();
    let counts = by_cache.into_iter().zip(CACHE_STATUSES);
    let through = counts.filter(|(_, status)| !matches!(**status, "none" | "BYPASS"));
    through.map(|(count, _)| count).sum()
}

/// How many audits are owed.
#[derive(Default)]
struct Due {
    answers: u64,
}

impl Due {
    fn count(&mut self, answers: u64) {
        self.answers = (self.answers + answers).min(MAX_DUE * ANSWERS_EACH);
    }

    fn take(&mut self) -> bool {
        let is_due = self.answers >= ANSWERS_EACH;
        self.answers -= if is_due { ANSWERS_EACH } else { 0 };
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thousand_answers_is_audited_and_debts_are_bounded() {
        let mut due = Due::default();
        due.count(999);
        assert!(!due.take());
        due.count(1001);
        assert!(due.take());
        assert!(due.take());
        assert!(!due.take());
        due.count(u64::MAX / 2);
        let taken = (0..100).filter(|_| due.take()).count();
        assert_eq!(taken as u64, MAX_DUE);
    }
}
