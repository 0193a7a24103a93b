//! Removing from a zone on a request's behalf, once `purge_keys` has said what.

use http_cache::{KeyRef, Millis, PurgeMode, PurgeTarget, Zone};

use super::purge_keys::{Invalidation, PurgedKeys};
use crate::exchange::handled::Handled;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;

impl PurgedKeys {
    /// Removes what is stored under them; how many responses.
    pub fn purge(&self, zone: &Zone, now: Millis) -> usize {
        let purge = |target| zone.purge(target, PurgeMode::Hard, now).responses;
        match self {
            PurgedKeys::One(key) => purge(PurgeTarget::Key(KeyRef::new(key))),
            PurgedKeys::Prefix(start) => purge(PurgeTarget::Prefix(start)),
            PurgedKeys::Url(starts) => starts
                .iter()
                .map(|start| purge(PurgeTarget::Prefix(start)))
                .sum(),
            PurgedKeys::Everything => purge(PurgeTarget::Everything),
        }
    }
}

/// Removes what is stored under `keys`, and says so.
pub fn purge(request: &Request, zone: &Zone, keys: &[PurgedKeys]) -> Handled {
    let now = Millis(request.now);
    let purged: usize = keys.iter().map(|keys| keys.purge(zone, now)).sum();
    if purged == 0 && !keys.contains(&PurgedKeys::Everything) {
        return Handled::Status(404);
    }
    let shown = keys.first().map(PurgedKeys::shown).unwrap_or_default();
    let body = format!(
        "<html>\r\n<head><title>Successful purge</title></head>\r\n<body bgcolor=\"white\">\r\n\
         <center><h1>Successful purge</h1><p>Key : {}</p></center>\r\n</body>\r\n</html>\r\n",
        String::from_utf8_lossy(&http_semantics::escape::escape_html(&shown))
    );
    Handled::Reply(Box::new(Reply::new(200, b"text/html", body)))
}

impl Invalidation<'_> {
    /// Removes it.
    pub fn carry_out(&self, now: Millis) {
        if self.drops_not_found {
            let target = PurgeTarget::NotFound;
            self.zone.purge(target, PurgeMode::Hard, now);
        }
        for key in &self.keys {
            let key = KeyRef::new(key);
            let may = self
                .pause
                .is_none_or(|pause| self.zone.may_invalidate(&key, now, pause));
            if may {
                self.zone.purge(PurgeTarget::Key(key), PurgeMode::Hard, now);
            }
        }
    }
}
