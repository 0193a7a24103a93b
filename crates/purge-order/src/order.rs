//! The targets of a purge: each interface makes an [`Order`], and `carry_out` does it.

use cache_decision::address::{self, AddressRules};
use cache_decision::pattern;
use control::{PurgeRequest, Refusal, TargetKind};
use http_cache::{CacheKey, OwnedPurgeTarget, Pattern};

/// Prefixes, patterns and hosts that one request may name: each is a walk through all addresses.
pub const MAX_WALKS: usize = 256;

/// A purge with more targets is long.
pub const MAX_SHORT_TARGETS: usize = 256;

/// A purge that is ready to be carried out.
#[derive(Clone)]
pub struct Order {
    pub targets: Vec<Target>,
    /// Stale copies are shown while one request fetches the page anew.
    pub soft: bool,
    /// The pages are counted, and not purged.
    pub dry_run: bool,
}

#[derive(Clone)]
pub struct Target {
    pub kind: TargetKind,
    /// The text of the request.
    pub text: String,
    /// The names of the target in a zone.
    pub names: Vec<OwnedPurgeTarget>,
}

impl Target {
    /// The target of all responses stored for addresses.
    pub fn url(text: &[u8], addresses: Vec<Vec<u8>>) -> Target {
        let addresses = addresses.into_iter();
        let names = addresses.map(|address| OwnedPurgeTarget::Address(address.into()));
        target(TargetKind::Url, text, names)
    }

    /// The target of all responses stored for the addresses of patterns.
    pub fn walk(
        kind: TargetKind,
        text: &[u8],
        patterns: impl IntoIterator<Item = Pattern>,
    ) -> Target {
        let names = patterns.into_iter().map(OwnedPurgeTarget::Addresses);
        target(kind, text, names)
    }

    /// The target of all responses that carry a tag.
    pub fn tag(tag: &[u8]) -> Target {
        let names = [OwnedPurgeTarget::Tag(tag.into())];
        target(TargetKind::Tag, tag, names)
    }

    /// The target of the response stored under a key, or, if the key ends in `*`, under all keys
    /// that begin with the text before it.
    pub fn key(key: &[u8]) -> Target {
        let name = match key.strip_suffix(b"*") {
            Some(start) => OwnedPurgeTarget::Prefix(start.into()),
            None => OwnedPurgeTarget::Key(CacheKey::new(key.to_vec())),
        };
        target(TargetKind::Key, key, [name])
    }

    /// The target of all responses stored for an address under any key; with `*` at the end, for
    /// all addresses that begin so.
    pub fn address(address: Vec<u8>) -> Target {
        match address.strip_suffix(b"*") {
            Some(start) => {
                let walk = Pattern::Prefix(start.into());
                Target::walk(TargetKind::Prefix, &address, [walk])
            }
            None => Target::url(&address.clone(), vec![address]),
        }
    }

    pub fn is_everything(&self) -> bool {
        matches!(self.names[..], [OwnedPurgeTarget::Everything])
    }

    /// All that is stored.
    pub fn everything() -> Target {
        target(TargetKind::Everything, b"", [OwnedPurgeTarget::Everything])
    }

    /// Whether a whole table is looked through.
    pub fn is_walk(&self) -> bool {
        self.names.iter().any(OwnedPurgeTarget::is_walk)
    }
}

impl Order {
    /// Whether it takes longer than an event loop may stand still.
    pub fn is_long(&self) -> bool {
        self.targets.iter().any(Target::is_walk) || self.targets.len() > MAX_SHORT_TARGETS
    }

    /// Reads a program's request.
    ///
    /// # Errors
    /// A refusal of status 400 that names the field.
    pub fn of_request(request: &PurgeRequest, rules: &AddressRules) -> Result<Order, Refusal> {
        request.check()?;
        let walks = request.prefixes.len() + request.patterns.len() + request.hosts.len();
        if walks > MAX_WALKS {
            return Err(Refusal::new(
                413,
                format!(
                    "{walks} prefixes, patterns and hosts; expected at most {MAX_WALKS} in one request"
                ),
            ));
        }
        let mut hosts = Vec::new();
        for (at, text) in request.hosts.iter().enumerate() {
            hosts.push(address::host(text.as_bytes()).ok_or_else(|| {
                Refusal::field(
                    format!("hosts[{at}]"),
                    "expected a name such as example.org",
                )
            })?);
        }
        let mut targets = Vec::with_capacity(request.targets());
        for (at, text) in request.urls.iter().enumerate() {
            let found = rules.of_url(text.as_bytes(), &hosts);
            let found =
                found.map_err(|why| Refusal::field(format!("urls[{at}]"), why.to_string()))?;
            targets.push(Target::url(text.as_bytes(), found));
        }
        targets.extend(request.tags.iter().map(|tag| Target::tag(tag.as_bytes())));
        for (at, text) in request.prefixes.iter().enumerate() {
            let found = address::prefixes(text.as_bytes(), &hosts);
            let found =
                found.map_err(|why| Refusal::field(format!("prefixes[{at}]"), why.to_string()))?;
            let walks = found.into_iter().map(|it| Pattern::Prefix(it.into()));
            targets.push(Target::walk(TargetKind::Prefix, text.as_bytes(), walks));
        }
        for (at, text) in request.patterns.iter().enumerate() {
            let found = pattern::of_addresses(text, &hosts);
            let found =
                found.map_err(|why| Refusal::field(format!("patterns[{at}]"), why.to_string()))?;
            targets.push(Target::walk(TargetKind::Pattern, text.as_bytes(), [found]));
        }
        // Hosts under which a URL without a host is looked for.
        if !has_path_alone(request) {
            for (text, host) in request.hosts.iter().zip(hosts) {
                let walk = Pattern::Host(host.into());
                targets.push(Target::walk(TargetKind::Host, text.as_bytes(), [walk]));
            }
        }
        if request.everything {
            targets.push(Target::everything());
        }
        Ok(Order {
            targets,
            soft: request.soft,
            dry_run: request.dry_run,
        })
    }
}

/// Whether one of the URLs, prefixes and patterns begins with its path.
fn has_path_alone(request: &PurgeRequest) -> bool {
    let mut texts = request
        .urls
        .iter()
        .chain(&request.prefixes)
        .chain(&request.patterns);
    texts.any(|text| text.starts_with('/') && !text.starts_with("//"))
}

/// A target that `text` stands for.
pub fn target(
    kind: TargetKind,
    text: &[u8],
    names: impl IntoIterator<Item = OwnedPurgeTarget>,
) -> Target {
    Target {
        kind,
        text: String::from_utf8_lossy(text).into_owned(),
        names: names.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(json: &str) -> Result<Order, Refusal> {
        let request = PurgeRequest::from_json(json.as_bytes())?;
        Order::of_request(&request, &AddressRules::default())
    }

    #[test]
    fn hosts_are_purged_unless_they_are_those_of_paths() {
        let kinds = |json: &str| -> Vec<TargetKind> {
            let order = order(json).unwrap();
            order.targets.iter().map(|target| target.kind).collect()
        };
        assert_eq!(
            kinds(r#"{"urls":["https://a/x"],"hosts":["b"]}"#),
            [TargetKind::Url, TargetKind::Host]
        );
        assert_eq!(kinds(r#"{"urls":["/x"],"hosts":["b"]}"#), [TargetKind::Url]);
        assert_eq!(
            kinds(r#"{"patterns":["/x*"],"hosts":["b"]}"#),
            [TargetKind::Pattern]
        );
        assert_eq!(
            kinds(r#"{"tags":["t"],"everything":true}"#),
            [TargetKind::Tag, TargetKind::Everything]
        );
    }

    #[test]
    fn mistakes_are_named_by_their_field() {
        for (json, field, message) in [
            (
                r#"{"urls":["https://a/","/news/5"]}"#,
                "urls[1]",
                "absolute URL",
            ),
            (r#"{"prefixes":["x"]}"#, "prefixes[0]", "absolute URL"),
            (r#"{"patterns":["~("]}"#, "patterns[0]", "unclosed"),
            (r#"{"hosts":["a b"]}"#, "hosts[0]", "a name"),
        ] {
            let refusal = order(json).err().unwrap();
            assert_eq!(
                (refusal.status, refusal.field.as_deref()),
                (400, Some(field)),
                "{json}"
            );
            assert!(refusal.message.contains(message), "{json}: {refusal}");
        }
        let many = format!("{{\"patterns\":[{}\"~a\"]}}", "\"~a\",".repeat(MAX_WALKS));
        assert_eq!(order(&many).err().unwrap().status, 413);
    }
}
