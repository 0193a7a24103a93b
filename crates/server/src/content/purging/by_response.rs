//! Purges requested by a response: the application names what it has just changed, in a field of the response to
//! the client that changed it. They are done before that response goes on, so that editors see their own changes.
//! Only upstreams that `cache_purge_fields` trusts are listened to.
//!
//! ```text
//! X-Cache-Purge-Tags: news:5 list             tags, between spaces or commas
//! X-LiteSpeed-Purge: stale,tag=news5,/list    https://docs.litespeedtech.com/lscache/devguide/
//! X-LiteSpeed-Purge: private,*                the copies of this visitor (content/litespeed)
//! Cache-Group-Invalidation: "news"            groups of the same origin, after an unsafe method (RFC 9875 §3)
//! X-Cache-Repeat: /cron.php 60                no purge: a path of the same origin is asked for each 60 seconds
//! ```
//!
//! With `cache_repeat` each response of a location counts as if it had that last field.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cache_decision::litespeed;
use cache_decision::litespeed::VisitorId;
use cache_decision::tags::{group_tag, groups};
use control::TargetKind;
use http_cache::{OwnedPurgeTarget, Pattern};
use http_semantics::{has_member, list_members};
use site::{Exchange, Pass, RepeatedRequest, ServerId};
use transport::facts::LocalAddress;

use super::address_rules;
use super::{PurgeCall, Scope, on_nodes, purge};
use crate::content::through_cache::tags;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::origin::is_server_name;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use crate::log::purge_log::{PurgeInterface, Source};
use live_state::repeats::RepeatSite;
use purge_order::{Order, Target, order};

/// When a purge that had to stand back is tried again.
const RETRY: Duration = Duration::from_millis(10);

const TAGS: &str = "x-cache-purge-tags";
const LITESPEED: &str = "x-litespeed-purge";
/// The second field of LiteSpeed plug-ins, for two purges in one response.
const LITESPEED_TOO: &str = "x-litespeed-purge2";
const GROUPS: &str = "cache-group-invalidation";
const REPEAT: &str = "x-cache-repeat";

/// A response names no more requests, and none with a longer path.
const MAX_REPEATS_NAMED: usize = 8;
const MAX_REPEAT_BYTES: usize = 1024;

/// The facts of the request that a purge by its response needs.
pub struct ByResponse {
    configuration: Arc<ActiveConfiguration>,
    host: Vec<u8>,
    origin: Vec<u8>,
    server: ServerId,
    scheme: &'static str,
    /// The port that the client has named, if the listener has it: a visitor may name any.
    port: Option<u16>,
    is_unsafe: bool,
    /// The identities of the visitor whose private copies may be purged.
    visitor: Vec<VisitorId>,
    /// `cache_repeat`
    repeat: Option<RepeatedRequest>,
    /// The upstream is trusted, so its purge fields count.
    is_trusted: bool,
    source: Source,
}

/// Does a response, or the location, ask for a purge or for requests?
pub fn is_asked(fields: &[(Bytes, Bytes)], exchange: &Exchange) -> bool {
    let is_one = |(name, _): &(Bytes, Bytes)| {
        let is = |field: &str| http_semantics::same_name(name, field.as_bytes());
        match name.len() {
            14 => is(REPEAT),
            17 => is(LITESPEED),
            18 => is(TAGS) || is(LITESPEED_TOO),
            24 => is(GROUPS),
            _ => false,
        }
    };
    exchange.repeat.is_some() || fields.iter().any(is_one)
}

impl ByResponse {
    /// Creates the purge by the response to `request`; `None` if the upstream is not trusted to purge.
    pub fn of(request: &Request, pass: &Pass, is_own_pool: bool) -> Option<ByResponse> {
        let is_trusted = pass.exchange.purge_fields.unwrap_or(is_own_pool);
        let has_zones = !request.configuration.site.http.cache_zones.is_empty();
        let repeat = pass.exchange.repeat.clone();
        (has_zones && (is_trusted || repeat.is_some())).then(|| ByResponse {
            repeat,
            is_trusted,
            configuration: request.configuration.shared().clone(),
            host: request.received.host().to_vec(),
            origin: tags::origin(&request.received),
            server: request.route.server(),
            scheme: request.received.scheme(),
            port: listened_port(&request.received),
            is_unsafe: request.route.method.is_write(),
            visitor: match pass.exchange.litespeed {
                true => litespeed::visitor_ids(request.received.head().view()),
                false => Vec::new(),
            },
            source: Source {
                door: PurgeInterface::Response,
                who: request
                    .received
                    .client_ip()
                    .map_or_else(|| "unix".to_owned(), |ip| ip.to_string()),
                is_own_visit: request.is_own_visit(),
            },
        })
    }

    /// Purges the targets of the fields. When it returns, no answer that is begun afterwards shows an older page.
    pub async fn carry_out(&self, fields: &[(Bytes, Bytes)]) {
        if let Some(repeat) = &self.repeat {
            self.name_repeat(&repeat.target, repeat.every);
        }
        if !self.is_trusted {
            return;
        }
        self.note_repeats(fields);
        let orders = self.orders(fields);
        let purges = !orders.is_empty();
        for order in orders {
            loop {
                let asked = PurgeCall::Order(order.clone());
                let configuration = self.configuration.clone();
                match purge(configuration, asked, Scope::All, self.source.clone()).await {
                    // Too many others are walking through the addresses: it waits for its turn.
                    Err(refusal) if refusal.retry_after.is_some() => {
                        tokio::time::sleep(RETRY).await;
                    }
                    Ok(_) | Err(_) => break,
                }
            }
        }
        if purges {
            // Said in the log where it is not.
            let door = PurgeInterface::Response;
            let _ = on_nodes::confirmed(&self.configuration, door).await;
        }
    }

    /// Notes the requests that the application wants made again and again: a path and seconds, between commas.
    fn note_repeats(&self, fields: &[(Bytes, Bytes)]) {
        let is_repeat = |name: &[u8]| http_semantics::same_name(name, REPEAT.as_bytes());
        let values = fields.iter().filter(|(name, _)| is_repeat(name));
        let items = values.flat_map(|(_, value)| list_members(value));
        for item in items.take(MAX_REPEATS_NAMED) {
            let Some((target, every)) = repeat(item) else {
                continue;
            };
            self.name_repeat(target, every);
        }
    }

    fn name_repeat(&self, target: &str, every: Duration) {
        let repeats = &self.configuration.live.repeats;
        repeats.name(&self.repeat_site(), target, every, Instant::now());
    }

    /// Returns the site that repeated requests go to.
    fn repeat_site(&self) -> RepeatSite {
        let port = self
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        let host = String::from_utf8_lossy(&self.host);
        RepeatSite {
            server: self.server.0,
            origin: format!("{}://{host}{port}", self.scheme),
            is_named: is_server_name(&self.configuration, self.server, &self.host),
        }
    }

    /// Hard purges first, then those that only mark stale.
    fn orders(&self, fields: &[(Bytes, Bytes)]) -> Vec<Order> {
        let mut hard = Vec::new();
        let mut soft = Vec::new();
        for (name, value) in fields {
            let is = |field: &str| http_semantics::same_name(name, field.as_bytes());
            if is(TAGS) {
                let separates = |byte: &u8| matches!(byte, b' ' | b'\t' | b',');
                let named = value.split(separates).filter(|tag| !tag.is_empty());
                hard.extend(named.map(Target::tag));
            } else if is(GROUPS) && self.is_unsafe {
                let groups = groups(value).into_iter().flatten();
                let group = |group: Vec<u8>| Target::tag(&group_tag(&self.origin, &group));
                hard.extend(groups.map(group));
            } else if is(LITESPEED) || is(LITESPEED_TOO) {
                for part in value.split(|&byte| byte == b';') {
                    let (targets, is_stale) = self.of_litespeed(part);
                    match is_stale {
                        true => soft.extend(targets),
                        false => hard.extend(targets),
                    }
                }
            }
        }
        let order = |targets, soft| Order {
            targets,
            soft,
            dry_run: false,
        };
        let orders = [order(hard, false), order(soft, true)];
        let mut orders = Vec::from(orders);
        orders.retain(|order| !order.targets.is_empty());
        orders
    }

    /// Parses one part of `X-LiteSpeed-Purge`; the flag is whether it contains `stale`. A private part applies
    /// to this visitor only.
    fn of_litespeed(&self, part: &[u8]) -> (Vec<Target>, bool) {
        let items = || list_members(part);
        let has = |word: &str| has_member([part], word.as_bytes());
        if has("private") {
            let targets = items().flat_map(|item| self.of_private_item(item));
            return (targets.collect(), has("stale"));
        }
        let targets = items().filter_map(|item| self.of_litespeed_item(item));
        (targets.collect(), has("stale"))
    }

    /// The visitor's private copies that an item names. A URL stands for all of them: they have no
    /// labels for it.
    fn of_private_item(&self, item: &[u8]) -> Vec<Target> {
        let tag = item.strip_prefix(b"tag=").unwrap_or(item);
        let tag = match tag {
            b"" => return Vec::new(),
            _ if is_word(item) => return Vec::new(),
            [b'/', ..] => b"*",
            tag => tag,
        };
        let text = [b"private:", tag].concat();
        let target = |id: &VisitorId| {
            let names = [OwnedPurgeTarget::Tag(id.label(tag).into())];
            order::target(TargetKind::Tag, &text, names)
        };
        self.visitor.iter().map(target).collect()
    }

    fn of_litespeed_item(&self, item: &[u8]) -> Option<Target> {
        match item {
            b"" => None,
            _ if is_word(item) => None,
            b"*" | b"tag=*" => {
                let walk = Pattern::Host(self.host.clone().into());
                Some(Target::walk(TargetKind::Host, &self.host, [walk]))
            }
            [b'/', ..] => {
                let rules = address_rules::of(&self.configuration);
                Some(Target::url(item, rules.of_target(&self.host, item)))
            }
            _ => {
                let tag = item.strip_prefix(b"tag=").unwrap_or(item);
                (!tag.is_empty()).then(|| Target::tag(tag))
            }
        }
    }
}

fn listened_port(received: &ReceivedRequest) -> Option<u16> {
    let listened = match &received.connection().local {
        LocalAddress::Ip(local) => Some(local.port()),
        LocalAddress::Unix(_) => None,
    };
    received.host_port().filter(|port| Some(*port) == listened)
}

/// A path with its arguments, and how often it is asked for.
fn repeat(item: &[u8]) -> Option<(&str, Duration)> {
    let (target, seconds) = std::str::from_utf8(item).ok()?.trim().split_once(' ')?;
    let seconds = seconds.trim().parse().ok()?;
    let is_target = target.starts_with('/') && target.len() <= MAX_REPEAT_BYTES;
    is_target.then_some((target, Duration::from_secs(seconds)))
}

/// Does an item say how the others are meant?
fn is_word(item: &[u8]) -> bool {
    ["public", "private", "stale"]
        .iter()
        .any(|word| item.eq_ignore_ascii_case(word.as_bytes()))
}
