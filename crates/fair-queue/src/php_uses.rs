//! Who has used PHP, for the operator: by network, program and kind of page. The tables are bounded, and what is
//! used often stays in them.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use crate::Millis;
use crate::clients::{RequestFacts, network_of};
use crate::decaying::DecayingSum;
use crate::generations::Generations;

/// Half of the entries of each table.
const HALF: usize = 512;
/// Parts of a path, and arguments, that tell one kind of page from another.
const MAX_PARTS: usize = 4;

/// What uses of PHP have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// A line of the queue.
    Class,
    /// A /24, or the /48 of an IPv6 address.
    Network,
    /// A `User-Agent`.
    Agent,
    /// Pages whose addresses differ in numbers only.
    Pages,
}

impl UseKind {
    /// Its name for the operator.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Network => "network",
            Self::Agent => "program",
            Self::Pages => "pages",
        }
    }
}

/// A part of the use of PHP.
#[derive(Clone, Debug, PartialEq)]
pub struct PhpUse {
    pub kind: UseKind,
    /// Which class, network, program or pages.
    pub name: Box<str>,
    /// Milliseconds of PHP in the last minute.
    pub minute_ms: f64,
    /// And in the last hour.
    pub hour_ms: f64,
}

/// "The last minute" and "the last hour" of a use.
pub(crate) const MINUTE: f64 = 60_000.0;
const HOUR: f64 = 3_600_000.0;

/// The time used lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsedTime {
    minute: DecayingSum,
    hour: DecayingSum,
}

impl UsedTime {
    pub fn add(&mut self, cost: f64, now: Millis) {
        self.minute.add(cost, MINUTE, now);
        self.hour.add(cost, HOUR, now);
    }

    pub fn minute_ms(&self, now: Millis) -> f64 {
        self.minute.value(MINUTE, now)
    }

    pub fn hour_ms(&self, now: Millis) -> f64 {
        self.hour.value(HOUR, now)
    }

    pub fn describe(&self, kind: UseKind, name: Box<str>, now: Millis) -> PhpUse {
        PhpUse {
            kind,
            name,
            minute_ms: self.minute_ms(now),
            hour_ms: self.hour_ms(now),
        }
    }
}

/// The name and the time of each, by the hash of what is named.
type NamedUses = Generations<(Box<str>, UsedTime)>;

/// The uses of one group's servers.
#[derive(Debug)]
pub(crate) struct PhpUses {
    seed: RandomState,
    tables: [(UseKind, NamedUses); 3],
}

impl Default for PhpUses {
    fn default() -> Self {
        let kinds = [UseKind::Network, UseKind::Agent, UseKind::Pages];
        Self {
            seed: RandomState::new(),
            tables: kinds.map(|kind| (kind, Generations::new(HALF))),
        }
    }
}

impl PhpUses {
    /// A request has used `cost` milliseconds.
    pub fn note(&mut self, request: &RequestFacts, cost: u64, now: Millis) {
        // A page has no space in its name.
        let named = request.latest.split_once(" by ");
        let (page, agent) = named.unwrap_or((&request.latest, ""));
        let network = request.address.map(network_of);
        let shape = shape_of(page);
        let keys = [
            network.map(|network| self.seed.hash_one(network)),
            (!agent.is_empty()).then(|| self.seed.hash_one(agent)),
            (!shape.is_empty()).then(|| self.seed.hash_one(&*shape)),
        ];
        for ((kind, table), key) in self.tables.iter_mut().zip(keys) {
            let Some(key) = key else {
                continue;
            };
            let name = || match kind {
                UseKind::Network => network_name(network),
                UseKind::Agent => agent.into(),
                UseKind::Class | UseKind::Pages => shape.as_str().into(),
            };
            let (_, used) = table.entry(key, || (name(), UsedTime::default()));
            used.add(cost as f64, now);
        }
    }

    /// Returns the largest uses of each kind in the last minute, `most` of them.
    pub fn top(&self, most: usize, now: Millis) -> Vec<PhpUse> {
        let of_kind = |(kind, table): &(UseKind, Generations<(Box<str>, UsedTime)>)| {
            let uses = table.values();
            let uses = uses.map(|(name, used)| used.describe(*kind, name.clone(), now));
            largest(uses.collect(), most)
        };
        self.tables.iter().flat_map(of_kind).collect()
    }
}

/// The largest uses in the last minute, and then in the last hour.
pub(crate) fn largest(mut uses: Vec<PhpUse>, most: usize) -> Vec<PhpUse> {
    uses.retain(|it| it.hour_ms >= 1.0);
    uses.sort_by(|one, other| {
        let by_minute = other.minute_ms.total_cmp(&one.minute_ms);
        by_minute.then(other.hour_ms.total_cmp(&one.hour_ms))
    });
    uses.truncate(most);
    uses
}

fn network_name(network: Option<IpAddr>) -> Box<str> {
    match network {
        Some(IpAddr::V4(network)) => format!("{network}/24").into(),
        Some(IpAddr::V6(network)) => format!("{network}/48").into(),
        None => Box::default(),
    }
}

/// The name of a page without what numbers its pages: parts of the path with a digit, and all beyond the fourth.
/// The host stays as it is.
fn shape_of(page: &str) -> String {
    let (path, arguments) = page.split_once('?').unwrap_or((page, ""));
    let mut shape = String::new();
    for (at, part) in path.split('/').take(MAX_PARTS + 1).enumerate() {
        if at > 0 {
            shape.push('/');
        }
        let is_number = at > 0 && part.bytes().any(|byte| byte.is_ascii_digit());
        shape.push_str(if is_number { "*" } else { part });
    }
    let arguments = arguments.split('&').filter(|argument| !argument.is_empty());
    for (at, argument) in arguments.take(MAX_PARTS).enumerate() {
        shape.push(if at == 0 { '?' } else { '&' });
        shape.push_str(argument);
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_differ_in_numbers_are_of_one_kind() {
        for (page, shape) in [
            ("site1/calendar/2026-11/29", "site1/calendar/*/*"),
            ("site/a/b/c/d/e/f", "site/a/b/c/d"),
            ("site/?p=*&q=*&r=*&s=*&t=*", "site/?p=*&q=*&r=*&s=*"),
            ("site/", "site/"),
            ("", ""),
        ] {
            assert_eq!(shape_of(page), shape, "{page}");
        }
    }

    fn request(address: Option<[u8; 4]>, latest: &str) -> RequestFacts {
        RequestFacts {
            address: address.map(IpAddr::from),
            latest: latest.into(),
            ..RequestFacts::default()
        }
    }

    #[test]
    fn uses_are_counted_by_network_program_and_pages() {
        let mut uses = PhpUses::default();
        for number in 0..10_u8 {
            let page = format!("site/diff/{number} by Bot/1 by me");
            uses.note(&request(Some([192, 0, 2, number]), &page), 100, 0);
        }
        let other = request(Some([198, 51, 100, 1]), "site/ by Browser");
        uses.note(&other, 30, 0);
        let found = uses.top(1, 0);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.kind, &*it.name, it.minute_ms as u64, it.hour_ms as u64))
            .collect();
        assert_eq!(
            found,
            [
                (UseKind::Network, "192.0.2.0/24", 1000, 1000),
                (UseKind::Agent, "Bot/1 by me", 1000, 1000),
                (UseKind::Pages, "site/diff/*", 1000, 1000),
            ]
        );
    }

    #[test]
    fn what_is_used_often_stays_beside_a_storm_of_names() {
        let mut uses = PhpUses::default();
        for number in 0..20_000_u32 {
            uses.note(&request(None, &format!("site/ by Bot/{number}")), 1, 0);
            uses.note(&request(None, "site/ by Browser"), 2, 0);
        }
        let found = uses.top(1, 0);
        assert_eq!(
            (&*found[0].name, found[0].minute_ms as u64),
            ("Browser", 40_000)
        );
        let (_, agents) = &uses.tables[1];
        assert!(agents.values().count() <= 2 * HALF);
    }
}
