//! Parts of a visitor's request that the shared request leaves out although an application could read them,
//! in kinds and classes: two visitors of one class may be shown one page once it has been seen that the
//! class does not matter.
//!
//! A value is a number that stands for a class; 0 is the shared request's own value. The classes are coarse
//! where visitors choose freely (the host of a `Referer`, the family of a `User-Agent`), so that their
//! number is small; the exact text is in no class, and `docs/security.md` describes the risk that remains.

use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A kind of part that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trait {
    /// The languages of `Accept-Language`, in their one form.
    Language,
    /// The family of browsers and the system that `User-Agent` names.
    Agent,
    /// Whether `Referer` names this host, another one, and which.
    Referer,
    /// Cookies that are not sent, and that no rule calls harmless.
    Cookies,
    /// Further fields by which the client describes itself: `Accept`, `Sec-Fetch-*`, client hints, `DNT`.
    Hints,
    /// The address of the client.
    Network,
    /// The cookies of a guest, to whom the application has given a session of which it knows nothing.
    Session,
}

impl Trait {
    pub const ALL: [Trait; 7] = [
        Trait::Language,
        Trait::Agent,
        Trait::Referer,
        Trait::Cookies,
        Trait::Hints,
        Trait::Network,
        Trait::Session,
    ];

    /// One word for logs and explanations.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Trait::Language => "language",
            Trait::Agent => "user-agent",
            Trait::Referer => "referer",
            Trait::Cookies => "cookies",
            Trait::Hints => "hints",
            Trait::Network => "network",
            Trait::Session => "session",
        }
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraitSet(u8);

impl TraitSet {
    pub const NONE: TraitSet = TraitSet(0);
    pub const ALL: TraitSet = TraitSet((1 << Trait::ALL.len()) - 1);

    #[must_use]
    pub fn of(it: Trait) -> TraitSet {
        TraitSet(1 << it as u8)
    }

    #[must_use]
    pub fn has(self, it: Trait) -> bool {
        self.0 & TraitSet::of(it).0 != 0
    }

    #[must_use]
    pub fn with(self, it: Trait) -> TraitSet {
        TraitSet(self.0 | TraitSet::of(it).0)
    }

    #[must_use]
    pub fn without(self, it: Trait) -> TraitSet {
        TraitSet(self.0 & !TraitSet::of(it).0)
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds in their order.
    pub fn iter(self) -> impl Iterator<Item = Trait> {
        Trait::ALL.into_iter().filter(move |it| self.has(*it))
    }
}

/// The traits that one request leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    values: [u32; Trait::ALL.len()],
    /// A number for the network of the client; 0 if there is no address: a unix socket.
    network_group: u32,
    /// Stands for the place of the client: the network that a field names, or that of a public address; 0: neither.
    place: u32,
    /// A field names an address of the client.
    names_address: bool,
}

impl LeftOut {
    /// Returns the class of the part left out; 0: none.
    #[must_use]
    pub fn value(&self, of: Trait) -> u32 {
        self.values[of as usize]
    }

    #[must_use]
    pub fn network_group(&self) -> u32 {
        self.network_group
    }

    /// Returns a number for the place of the client, by which pages may differ. A client who names an address chooses it.
    #[must_use]
    pub fn place(&self) -> u32 {
        match self.place {
            0 => self.value(Trait::Network),
            place => place,
        }
    }

    /// Does a field name an address of the client?
    #[must_use]
    pub fn names_address(&self) -> bool {
        self.names_address
    }

    /// Notes the address that a field names.
    pub(crate) fn note_named_address(&mut self, value: &[u8]) {
        self.names_address = true;
        self.add(Trait::Network, value);
        let text = std::str::from_utf8(value.trim_ascii()).unwrap_or_default();
        self.place = match text.parse::<IpAddr>().map(|named| named.to_canonical()) {
            Ok(IpAddr::V4(address)) => class_of(&address.octets()[..2]),
            Ok(IpAddr::V6(address)) => class_of(&address.octets()[..4]),
            Err(_) => class_of(value),
        };
    }

    /// The kinds of which something is left out.
    #[must_use]
    pub fn traits(&self) -> TraitSet {
        let named = Trait::ALL.into_iter().filter(|it| self.value(*it) != 0);
        named.fold(TraitSet::NONE, TraitSet::with)
    }

    /// Is there nothing in this request that the shared request leaves out?
    #[must_use]
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.values == [0; Trait::ALL.len()]
    }

    pub fn set(&mut self, of: Trait, value: u32) {
        self.values[of as usize] = value;
    }

    /// Adds to the class of a kind, for kinds that several fields make up.
    pub(crate) fn add(&mut self, of: Trait, text: &[u8]) {
        self.values[of as usize] = chained(self.values[of as usize], text);
    }

    /// Notes where the client is.
    #[must_use]
    pub fn from(mut self, client: Option<IpAddr>) -> LeftOut {
        let Some(client) = client else {
            return self;
        };
        match client.to_canonical() {
            IpAddr::V4(address) if address == DUMMY => {}
            IpAddr::V4(address) => {
                let octets = address.octets();
                self.add(Trait::Network, &octets);
                let is_known = !(address.is_loopback()
                    || address.is_private()
                    || address.is_link_local()
                    || octets[0] == 100 && octets[1] & 0xc0 == 64);
                // Any network may have a private address: then only the smallest is known.
                self.be_in(&octets[..if is_known { 2 } else { 3 }], is_known);
            }
            IpAddr::V6(address) => {
                let octets = address.octets();
                // A client has a /64.
                self.add(Trait::Network, &octets[..8]);
                let is_known = !(address.is_loopback()
                    || address.is_unique_local()
                    || address.is_unicast_link_local());
                self.be_in(&octets[..if is_known { 4 } else { 8 }], is_known);
            }
        }
        self
    }

    /// Notes the client's network; `is_public`: pages may differ by it.
    fn be_in(&mut self, network: &[u8], is_public: bool) {
        self.network_group = class_of(network);
        if is_public && self.place == 0 {
            self.place = self.network_group;
        }
    }
}

/// The address in keys, and of the server's own visits: the IPv4 dummy address (RFC 7600), which no machine has.
pub const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// Networks for documentation (RFC 5737), which no machine is in.
const DOCUMENTATION: [[u8; 3]; 3] = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];

/// Networks of 256 addresses in 198.18.0.0/15, which is for benchmarks (RFC 2544): no visitor comes from there.
const BENCHMARKS: usize = 512;

/// Draws the address that a shared request or a trial comes from: each of 130,810 in its turn, and each from another
/// network than those before. An application that blocks an address or its network for asking too often, or that gives
/// so many pages to each, would refuse the only one, and its refusal would be everybody's page.
#[must_use]
pub fn next_address() -> Ipv4Addr {
    static DRAWN: AtomicUsize = AtomicUsize::new(0);
    const HOSTS: usize = 254;
    const NETWORKS: usize = BENCHMARKS + DOCUMENTATION.len();
    let drawn = DRAWN.fetch_add(1, Ordering::Relaxed) % (NETWORKS * HOSTS);
    let network = drawn % NETWORKS;
    let [a, b, c] = match DOCUMENTATION.get(network) {
        Some(documentation) => *documentation,
        None => {
            let network = network - DOCUMENTATION.len();
            [198, 18 + u8::from(network > 255), (network % 256) as u8]
        }
    };
    let host = u8::try_from(drawn / NETWORKS + 1).unwrap_or(1);
    Ipv4Addr::new(a, b, c, host)
}

/// A number for a text, never 0. Another one in each process: a visitor who could compute it would choose a
/// text with the number of another visitor's.
#[must_use]
pub fn class_of(text: &[u8]) -> u32 {
    chained(0, text)
}

/// The secret of the process.
static SECRET: LazyLock<foldhash::fast::RandomState> = LazyLock::new(Default::default);

fn chained(before: u32, text: &[u8]) -> u32 {
    let mut hasher = SECRET.build_hasher();
    hasher.write_u32(before);
    hasher.write(text);
    ((hasher.finish() >> 32) as u32).max(1)
}

/// The class of a `Referer` that names the host of the request.
const OWN_HOST: u32 = 1;

/// The class of a `Referer`: the visitor comes from this host (`own`), or from which other one.
#[must_use]
pub(crate) fn referer(value: &[u8], own: &[u8]) -> u32 {
    let rest = value
        .strip_prefix(b"https://")
        .or(value.strip_prefix(b"http://"));
    let Some(rest) = rest else {
        return other_host(value.get(..64).unwrap_or(value));
    };
    let (host, after) = rest.split_at_checked(own.len()).unwrap_or((rest, b""));
    if matches!(after, [] | [b'/' | b'?' | b'#', ..]) && host.eq_ignore_ascii_case(own) {
        return OWN_HOST;
    }
    let end = memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let start = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    let host = authority.get(start..).unwrap_or_default();
    let name = match memchr::memrchr(b':', host) {
        Some(at) if !host.ends_with(b"]") => host.get(..at).unwrap_or_default(),
        _ => host,
    };
    match name.eq_ignore_ascii_case(own) {
        true => OWN_HOST,
        false => other_host(name),
    }
}

fn other_host(name: &[u8]) -> u32 {
    class_of(&name.to_ascii_lowercase()).max(OWN_HOST + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_referer_is_known_by_its_host() {
        let own = referer(b"https://a.example/x?y", b"a.example");
        for (value, is_own) in [
            ("http://A.Example", true),
            ("https://a.example:8443/", true),
            ("https://user@a.example/", true),
            ("https://a.example@b.example/", false),
            ("https://b.example/a.example", false),
            ("https://a.example.b.example/", false),
            ("a.example", false),
            ("", false),
        ] {
            assert_eq!(
                referer(value.as_bytes(), b"a.example") == own,
                is_own,
                "{value}"
            );
        }
        let other = |text: &str| referer(text.as_bytes(), b"a.example");
        assert_eq!(other("https://b.example/1"), other("http://B.example/2"));
        assert_ne!(other("https://b.example/1"), other("https://c.example/1"));
        assert_ne!(other(""), 0);
    }

    #[test]
    fn addresses_of_nobody_are_drawn_in_turn() {
        let drawn: Vec<Ipv4Addr> = (0..1000).map(|_| next_address()).collect();
        let is_of_nobody = |address: &Ipv4Addr| {
            let [a, b, ..] = address.octets();
            address.is_documentation() || a == 198 && (b == 18 || b == 19)
        };
        assert!(drawn.iter().all(is_of_nobody));
        for some in drawn.windows(100) {
            let network = |address: &Ipv4Addr| address.octets()[..3].to_vec();
            let networks: std::collections::HashSet<_> = some.iter().map(network).collect();
            assert_eq!(
                networks.len(),
                100,
                "514 others come between two of one network"
            );
        }
    }

    #[test]
    fn private_addresses_are_told_apart_and_are_of_a_small_network() {
        let of = |text: &str| LeftOut::default().from(Some(text.parse().unwrap()));
        assert!(LeftOut::default().from(None).is_nothing());
        assert!(of("192.0.0.8").is_nothing());
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "100.64.0.1",
            "::1",
            "fd00::1",
        ] {
            assert_ne!(of(address).network_group(), 0, "{address}");
            assert_eq!(of(address).place(), of(address).value(Trait::Network));
            assert_ne!(of(address).value(Trait::Network), 0, "{address}");
        }
        assert_ne!(of("127.0.0.1"), of("127.0.0.2"));
        for (one, other, are_one) in [
            ("127.0.0.1", "127.0.0.2", true),
            ("127.0.0.1", "127.0.1.1", false),
            ("10.0.0.5", "10.0.0.6", true),
            ("fd00::1", "fd00::2", true),
            ("fd00::1", "fd00:0:0:1::1", false),
        ] {
            let are = of(one).network_group() == of(other).network_group();
            assert_eq!(are, are_one, "{one} {other}");
        }
        assert_eq!(
            of("203.0.113.1").network_group(),
            of("203.0.1.1").network_group()
        );
        assert_ne!(
            of("203.0.113.1").network_group(),
            of("203.1.113.1").network_group()
        );
        assert_eq!(of("2001:db8:1::1"), of("2001:db8:1::2"));
        assert_eq!(of("::ffff:203.0.113.1"), of("203.0.113.1"));
    }

    #[test]
    fn sets_of_kinds_are_walked_in_their_order() {
        let mut left_out = LeftOut::default();
        assert!(left_out.traits().is_empty());
        left_out.set(Trait::Network, 7);
        left_out.set(Trait::Language, 9);
        let named: Vec<Trait> = left_out.traits().iter().collect();
        assert_eq!(named, [Trait::Language, Trait::Network]);
        assert_eq!(TraitSet::ALL.iter().count(), Trait::ALL.len());
    }
}
