//! Looking inside the zones: stored responses with a text or a tag, and single stored responses.
//!
//! A search looks at a few hundred stored responses at a time and lets others be served in between. It
//! ends when it has found or looked at enough, and returns the position for the next one.

use std::sync::Arc;

use control::entries::{MAX_FOUND, MAX_SEARCH_BYTES, USUAL_FOUND};
use control::{Entry, EntryRequest, FoundEntries, Refusal, SearchRequest};
use http_cache::{InspectedResponse, Millis, StoredId, StoredResponse, Walk, Zone};

use super::lifetime;
use super::shown::ShownZone;
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::functions::StoredIdentity;

/// How many pieces of zones one search looks at: some 2.5 million stored responses.
const MAX_STEPS: usize = 40_000;

/// Searches for stored responses with a text or a tag.
///
/// # Errors
/// The request cannot be understood.
pub async fn search(
    configuration: Arc<ActiveConfiguration>,
    request: &SearchRequest,
) -> Result<FoundEntries, Refusal> {
    let is_long =
        |text: &Option<String>| text.as_ref().is_some_and(|it| it.len() > MAX_SEARCH_BYTES);
    if is_long(&request.text) || is_long(&request.tag) {
        let message = format!("expected at most {MAX_SEARCH_BYTES} bytes");
        return Err(Refusal::field("text", message));
    }
    let zones = zones(&configuration, request.zone.as_deref())?;
    let zones = zones.into_iter();
    let zones: Vec<ShownZone<'_>> = zones
        .map(|zone| ShownZone::new(&configuration, zone))
        .collect();
    let limit = request.limit.unwrap_or(USUAL_FOUND).clamp(1, MAX_FOUND);
    let mut cursor = match &request.after {
        None => Cursor::default(),
        Some(text) => Cursor::parse(text)
            .ok_or_else(|| Refusal::field("after", "expected what \"next\" said"))?,
    };
    let mut found = FoundEntries::default();
    for _ in 0..MAX_STEPS {
        let Some(zone) = zones.get(cursor.zone) else {
            return Ok(found);
        };
        if !step(zone, &mut cursor.walk, request, (limit, &mut found)) {
            cursor = Cursor {
                zone: cursor.zone + 1,
                walk: Walk::default(),
            };
        }
        if found.entries.len() >= limit {
            break;
        }
        tokio::task::yield_now().await;
    }
    found.next = (cursor.zone < zones.len()).then(|| cursor.text());
    Ok(found)
}

/// Looks at one piece of a zone; returns whether there is more of it.
fn step(
    shown: &ShownZone<'_>,
    walk: &mut Walk,
    request: &SearchRequest,
    (limit, found): (usize, &mut FoundEntries),
) -> bool {
    let now = Millis(clock::now());
    let looked_at = std::cell::Cell::new(0);
    let is_wanted = |_: &[u8], response: &StoredResponse| {
        looked_at.set(looked_at.get() + 1);
        let tag = request.tag.as_ref();
        let text = request.text.as_ref();
        tag.is_none_or(|wanted| response.tags().any(|tag| tag == wanted.as_bytes()))
            && text.is_none_or(|wanted| shown.address(response).contains(wanted.as_str()))
    };
    let entries = &mut found.entries;
    let mut take = |one: InspectedResponse| {
        if !one.is_gone {
            entries.push(shown.short(&one, now));
        }
        entries.len() < limit
    };
    let has_more = shown.zone().walk(walk, now, &is_wanted, &mut take);
    found.looked_at += looked_at.get();
    has_more
}

/// One stored response.
///
/// # Errors
/// It is not stored, or not any more.
pub fn entry(
    configuration: &ActiveConfiguration,
    request: &EntryRequest,
) -> Result<Entry, Refusal> {
    let now = Millis(clock::now());
    let (zone, found) = inspect(configuration, request, now)?;
    let mut entry = ShownZone::new(configuration, zone).whole(&found, now);
    entry.lifetime_by = lifetime::probably_given_by(&found.response, configuration, zone);
    Ok(entry)
}

/// Returns the identity by which one stored response is purged: its address and key unmasked.
///
/// # Errors
/// It is not stored, or not any more.
pub fn stored(
    configuration: &ActiveConfiguration,
    request: &EntryRequest,
) -> Result<StoredIdentity, Refusal> {
    let (zone, found) = inspect(configuration, request, Millis(clock::now()))?;
    let address = found.response.address().map(<[u8]>::to_vec);
    Ok(StoredIdentity {
        zone: zone.config().name.clone(),
        shown: ShownZone::new(configuration, zone).address(&found.response),
        key: found.key,
        address,
    })
}

fn inspect<'a>(
    configuration: &'a ActiveConfiguration,
    request: &EntryRequest,
    now: Millis,
) -> Result<(&'a Arc<Zone>, InspectedResponse), Refusal> {
    let gone = || Refusal::new(404, "nothing with this id is stored, or not any more");
    let (name, id) = parse_id(&request.id)
        .ok_or_else(|| Refusal::field("id", "expected the id of a stored response"))?;
    let zone = zones(configuration, Some(name))?.into_iter().next();
    let zone = zone.ok_or_else(gone)?;
    let found = zone.inspect(id, now).ok_or_else(gone)?;
    Ok((zone, found))
}

/// All zones, or the one of this name.
fn zones<'a>(
    configuration: &'a ActiveConfiguration,
    name: Option<&str>,
) -> Result<Vec<&'a Arc<Zone>>, Refusal> {
    let zones = configuration.live.zones.iter();
    let wanted = |zone: &&Arc<Zone>| name.is_none_or(|name| zone.config().name == name);
    let found: Vec<_> = zones.filter(wanted).collect();
    match (name, found.is_empty()) {
        (Some(name), true) => {
            let shown: String = name.chars().take(64).collect();
            Err(Refusal::field("zone", format!("there is no zone {shown}")))
        }
        _ => Ok(found),
    }
}

/// How far a search has come.
#[derive(Default)]
struct Cursor {
    zone: usize,
    walk: Walk,
}

impl Cursor {
    fn text(&self) -> String {
        format!("{}.{}.{}", self.zone, self.walk.shard, self.walk.slot)
    }

    fn parse(text: &str) -> Option<Cursor> {
        let mut numbers = text.split('.').map(str::parse);
        let mut number = || numbers.next()?.ok();
        let cursor = Cursor {
            zone: number()?,
            walk: Walk {
                shard: number()?,
                slot: number()?,
            },
        };
        numbers.next().is_none().then_some(cursor)
    }
}

/// The id of a stored response: `HASH-SERIAL-ZONE`.
pub fn id_text(zone: &Zone, id: StoredId) -> String {
    format!("{:016x}-{:x}-{}", id.hash, id.serial, zone.config().name)
}

fn parse_id(text: &str) -> Option<(&str, StoredId)> {
    let (hash, rest) = text.split_once('-')?;
    let (serial, zone) = rest.split_once('-')?;
    let id = StoredId {
        hash: u64::from_str_radix(hash, 16).ok()?,
        serial: u64::from_str_radix(serial, 16).ok()?,
    };
    Some((zone, id))
}
