//! Requests that applications have asked the server to make again and again (`X-Cache-Repeat`): which, how often,
//! and when each is due. Applications whose pages stay in memory for hours do by them what they otherwise do while
//! they make pages, such as WordPress's cron. `warming/repeat.rs` makes them.
//!
//! ```text
//! named ─► due ─► under way ─► waits for its next turn ─► due ...
//!            └── not named again in GRACE, and the application answers: forgotten
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// More than the sites of one server ask for; beyond it, the one that was named longest ago makes room.
const MAX_REPEATS: usize = 256;
/// More than one site asks for, so that each site drives out its own alone.
const MAX_REPEATS_OF_SITE: usize = 32;
/// No request is made more often.
pub const MIN_EVERY: Duration = Duration::from_secs(1);
/// The longest period of a repeated request.
pub const MAX_EVERY: Duration = Duration::from_secs(24 * 3600);
/// The time after which a request that no response names is forgotten, if ten of its turns have passed too.
const GRACE: Duration = Duration::from_secs(600);

/// The requests of all configurations, one after the other.
#[derive(Default)]
pub struct Repeats {
    all: Mutex<Vec<Repeat>>,
    /// One was added.
    added: Notify,
}

/// The server whose requests are repeated, by its number in the configuration. All hosts that are no `server_name`
/// have the requests of the first one, since visitors invent hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatSite {
    pub server: usize,
    /// Scheme, host and the listener's port, as URLs begin.
    pub origin: String,
    pub is_named: bool,
}

impl RepeatSite {
    fn has(&self, known: &Repeat, target: &str) -> bool {
        let is_same_host = !self.is_named || known.site.origin == self.origin;
        known.site.server == self.server
            && known.site.is_named == self.is_named
            && is_same_host
            && known.target() == target
    }
}

struct Repeat {
    site: RepeatSite,
    url: String,
    every: Duration,
    named_at: Instant,
    due_at: Instant,
    is_under_way: bool,
}

/// A request that is under way. Dropped, it waits for its next turn.
pub struct Turn {
    repeats: Arc<Repeats>,
    pub url: String,
    /// The application has answered.
    pub is_answered: bool,
}

impl Repeat {
    fn target(&self) -> &str {
        self.url.get(self.site.origin.len()..).unwrap_or_default()
    }
}

impl Repeats {
    /// A response names a request by its path. Its first turn is one interval later.
    pub fn name(&self, site: &RepeatSite, target: &str, every: Duration, now: Instant) {
        let every = every.clamp(MIN_EVERY, MAX_EVERY);
        let mut all = self.all.lock();
        if let Some(known) = all.iter_mut().find(|it| site.has(it, target)) {
            known.named_at = now;
            known.every = every;
            return;
        }
        let is_own = |it: &Repeat| it.site.server == site.server;
        let is_full = all.iter().filter(|it| is_own(it)).count() >= MAX_REPEATS_OF_SITE;
        if is_full || all.len() >= MAX_REPEATS {
            let candidates = all.iter().enumerate();
            let candidates = candidates.filter(|(_, it)| !is_full || is_own(it));
            if let Some((oldest, _)) = candidates.min_by_key(|(_, it)| it.named_at) {
                all.swap_remove(oldest);
            }
        }
        all.push(Repeat {
            site: site.clone(),
            url: format!("{}{target}", site.origin),
            every,
            named_at: now,
            due_at: now + every,
            is_under_way: false,
        });
        drop(all);
        self.added.notify_one();
    }

    /// Takes one that is due, of a site that has none under way. `Err`: when the next will be, if there is any.
    pub fn take(self: &Arc<Repeats>, now: Instant) -> Result<Turn, Option<Instant>> {
        let mut all = self.all.lock();
        let under_way = all.iter().filter(|it| it.is_under_way);
        let busy: Vec<usize> = under_way.map(|it| it.site.server).collect();
        let next = all.iter_mut().filter(|it| !busy.contains(&it.site.server));
        match next.min_by_key(|it| it.due_at) {
            Some(next) if next.due_at <= now => {
                next.is_under_way = true;
                Ok(Turn {
                    repeats: self.clone(),
                    url: next.url.clone(),
                    is_answered: false,
                })
            }
            next => Err(next.map(|it| it.due_at)),
        }
    }

    /// Waits until one is added.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    fn ended(&self, url: &str, is_answered: bool, now: Instant) {
        let mut all = self.all.lock();
        let Some(at) = all.iter().position(|it| it.url == url) else {
            return;
        };
        let repeat = &mut all[at];
        repeat.is_under_way = false;
        repeat.due_at = now + repeat.every;
        let grace = GRACE.max(repeat.every * 10);
        if is_answered && now.saturating_duration_since(repeat.named_at) > grace {
            all.swap_remove(at);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.repeats
            .ended(&self.url, self.is_answered, Instant::now());
        self.repeats.added.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn site(server: usize) -> RepeatSite {
        RepeatSite {
            server,
            origin: "http://a".to_owned(),
            is_named: true,
        }
    }

    /// All that are due, one after the other.
    fn urls_due(repeats: &Arc<Repeats>, now: Instant) -> Vec<String> {
        let all = repeats.all.lock();
        let due = all.iter().filter(|it| it.due_at <= now);
        due.map(|it| it.url.clone()).collect()
    }

    #[test]
    fn a_request_is_due_one_interval_after_it_was_named_and_not_twice_at_once() {
        let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
        repeats.name(&site(0), "/cron", MINUTE, now);
        repeats.name(&site(0), "/cron", MINUTE, now);
        assert_eq!(repeats.take(now).err(), Some(Some(now + MINUTE)));
        let Ok(turn) = repeats.take(now + MINUTE) else {
            panic!("it is due");
        };
        assert_eq!(turn.url, "http://a/cron");
        assert_eq!(repeats.take(now + 10 * MINUTE).err(), Some(None));
        drop(turn);
        assert_eq!(urls_due(&repeats, Instant::now() + MINUTE).len(), 1);
    }

    #[test]
    fn intervals_have_bounds() {
        let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
        repeats.name(&site(0), "/1", Duration::ZERO, now);
        assert_eq!(repeats.take(now).err(), Some(Some(now + MIN_EVERY)));
    }

    #[test]
    fn the_one_that_was_named_longest_ago_makes_room() {
        let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
        for number in 0..MAX_REPEATS {
            repeats.name(
                &site(number / MAX_REPEATS_OF_SITE),
                &format!("/{number}"),
                MINUTE,
                now + MINUTE * u32::try_from(number).unwrap(),
            );
        }
        let later = now + MINUTE * 1000;
        repeats.name(&site(0), "/0", MINUTE, later);
        repeats.name(&site(MAX_REPEATS), "/more", MINUTE, later);
        let due = urls_due(&repeats, later + MINUTE);
        assert_eq!(due.len(), MAX_REPEATS);
        assert!(due.contains(&"http://a/0".to_owned()));
        assert!(!due.contains(&"http://a/1".to_owned()));
    }

    #[test]
    fn what_an_application_names_no_more_is_forgotten_once_it_has_answered() {
        let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
        repeats.name(&site(0), "/cron", MIN_EVERY, now);
        let late = now + GRACE + MINUTE;
        repeats.ended("http://a/cron", false, late);
        assert!(repeats.take(late + MINUTE).is_ok(), "PHP was down");
        repeats.ended("http://a/cron", true, late);
        assert_eq!(repeats.take(late + MINUTE).err(), Some(None));
    }

    #[test]
    fn invented_hosts_have_one_request_together_and_leave_those_of_names() {
        let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
        repeats.name(&site(0), "/cron", MINUTE, now);
        for number in 0..2 * MAX_REPEATS {
            let invented = RepeatSite {
                origin: format!("http://{number}"),
                is_named: false,
                ..site(0)
            };
            repeats.name(&invented, "/cron", MINUTE, now);
        }
        let due = urls_due(&repeats, now + MINUTE);
        assert_eq!(due, ["http://a/cron", "http://0/cron"]);
    }

    #[test]
    fn a_site_drives_out_its_own_requests_and_has_one_place_of_those_under_way() {
        let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
        repeats.name(&site(1), "/cron", MINUTE, now + Duration::from_secs(1));
        for number in 0..2 * MAX_REPEATS {
            repeats.name(&site(0), &format!("/{number}"), MINUTE, now);
        }
        let due = urls_due(&repeats, now + 2 * MINUTE);
        assert_eq!(due.len(), MAX_REPEATS_OF_SITE + 1);
        let turns: Vec<Turn> = std::iter::from_fn(|| repeats.take(now + 2 * MINUTE).ok()).collect();
        assert_eq!(turns.len(), 2);
        assert!(turns.iter().any(|turn| turn.url == "http://a/cron"));
    }
}
