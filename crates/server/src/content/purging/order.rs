//! What a purge is about, however it was asked for: each door makes an [`Order`], and `carry_out`
//! does it.

use cache_decision::address::{self, AddressRules};
use cache_decision::pattern;
use control::{PurgeRequest, Refusal, TargetKind};
use http_cache::{KeyRef, Pattern, PurgeTarget};

/// Prefixes, patterns and hosts that one request may name: each is a walk through all addresses.
pub const MAX_WALKS: usize = 256;

/// A purge that is ready to be carried out.
#[derive(Clone)]
pub struct Order {
    pub targets: Vec<Target>,
    /// Stale copies are shown while one request fetches the page anew.
    pub soft: bool,
    /// Nothing is purged, but counted.
    pub dry_run: bool,
}

/// One target.
#[derive(Clone)]
pub struct Target {
    pub kind: TargetKind,
    /// As it was asked for.
    pub text: String,
    pub named: TargetNames,
}

/// What a target names in a zone.
#[derive(Clone)]
pub enum TargetNames {
    /// All that is stored for these addresses.
    Addresses(Vec<Vec<u8>>),
    /// All that is stored for the addresses of these patterns.
    Walks(Vec<Pattern>),
    /// What is stored under this cache key.
    Key(Vec<u8>),
    /// What is stored under the cache keys that begin so.
    Keys(Vec<u8>),
    /// All that carries this tag.
    Tag(Vec<u8>),
    /// All that carries a tag of this pattern.
    Tags(Pattern),
    Everything,
}

impl Target {
    /// A tag by itself.
    pub fn tag(tag: &[u8]) -> Target {
        let text = String::from_utf8_lossy(tag);
        target(TargetKind::Tag, &text, TargetNames::Tag(tag.to_vec()))
    }

    /// What is stored under a key. One that ends in `*` means all that begin with what stands
    /// before.
    pub fn key(mut key: Vec<u8>) -> Target {
        let text = String::from_utf8_lossy(&key).into_owned();
        let named = match key.pop_if(|last| *last == b'*') {
            Some(_) => TargetNames::Keys(key),
            None => TargetNames::Key(key),
        };
        target(TargetKind::Key, &text, named)
    }

    /// What is stored for an address by whatever keys; `*` likewise.
    pub fn address(mut address: Vec<u8>) -> Target {
        let text = String::from_utf8_lossy(&address).into_owned();
        let (kind, named) = match address.pop_if(|last| *last == b'*') {
            Some(_) => {
                let walk = Pattern::Prefix(address.into());
                (TargetKind::Prefix, TargetNames::Walks(vec![walk]))
            }
            None => (TargetKind::Url, TargetNames::Addresses(vec![address])),
        };
        target(kind, &text, named)
    }

    pub fn is_everything(&self) -> bool {
        matches!(self.named, TargetNames::Everything)
    }

    /// All that is stored.
    pub fn everything() -> Target {
        target(TargetKind::Everything, "", TargetNames::Everything)
    }
}

impl TargetNames {
    /// Purges or counts them one by one; the sum of what `purge` gives.
    pub fn sum<'a>(&'a self, mut purge: impl FnMut(PurgeTarget<'a>) -> usize) -> usize {
        match self {
            TargetNames::Addresses(addresses) => {
                let addresses = addresses.iter();
                addresses.map(|it| purge(PurgeTarget::Address(it))).sum()
            }
            TargetNames::Walks(patterns) => {
                let patterns = patterns.iter();
                patterns.map(|it| purge(PurgeTarget::Addresses(it))).sum()
            }
            TargetNames::Key(key) => purge(PurgeTarget::Key(KeyRef::new(key))),
            TargetNames::Keys(start) => purge(PurgeTarget::Prefix(start)),
            TargetNames::Tag(tag) => purge(PurgeTarget::Tag(tag)),
            TargetNames::Tags(pattern) => purge(PurgeTarget::Tags(pattern)),
            TargetNames::Everything => purge(PurgeTarget::Everything),
        }
    }

    /// Is a whole table looked through?
    pub fn is_walk(&self) -> bool {
        matches!(
            self,
            TargetNames::Walks(_) | TargetNames::Keys(_) | TargetNames::Tags(_)
        )
    }
}

impl Order {
    /// Reads what a program asks for.
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
                found.map_err(|why| Refusal::field(format!("urls[{at}]"), why.message()))?;
            targets.push(target(TargetKind::Url, text, TargetNames::Addresses(found)));
        }
        for text in &request.tags {
            targets.push(target(
                TargetKind::Tag,
                text,
                TargetNames::Tag(text.clone().into()),
            ));
        }
        for (at, text) in request.prefixes.iter().enumerate() {
            let found = address::prefixes(text.as_bytes(), &hosts);
            let found =
                found.map_err(|why| Refusal::field(format!("prefixes[{at}]"), why.message()))?;
            let walks = found.into_iter().map(|it| Pattern::Prefix(it.into()));
            targets.push(target(
                TargetKind::Prefix,
                text,
                TargetNames::Walks(walks.collect()),
            ));
        }
        for (at, text) in request.patterns.iter().enumerate() {
            let found = pattern::of_addresses(text, &hosts);
            let found = found.map_err(|why| Refusal::field(format!("patterns[{at}]"), why))?;
            targets.push(target(
                TargetKind::Pattern,
                text,
                TargetNames::Walks(vec![found]),
            ));
        }
        // Where a URL has no host, these are the hosts it is looked for under.
        if !has_path_alone(request) {
            for (text, host) in request.hosts.iter().zip(hosts) {
                let walk = Pattern::Host(host.into());
                targets.push(target(
                    TargetKind::Host,
                    text,
                    TargetNames::Walks(vec![walk]),
                ));
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

/// Does one of the URLs, prefixes and patterns begin with its path?
fn has_path_alone(request: &PurgeRequest) -> bool {
    let mut texts = request
        .urls
        .iter()
        .chain(&request.prefixes)
        .chain(&request.patterns);
    texts.any(|text| text.starts_with('/') && !text.starts_with("//"))
}

fn target(kind: TargetKind, text: &str, named: TargetNames) -> Target {
    Target {
        kind,
        text: text.to_owned(),
        named,
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
