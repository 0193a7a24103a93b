//! Responses and purges in the terms of a folder, and back.

use std::time::Duration;

use bytes::Bytes;
use disk_tier::{
    NewRecord, RecordAge, RecordBody, RecordBytes, TierTime, WrittenPurge, stable_hash,
};
use http_cache::record::{self, KeptBytes};
use http_cache::{
    FilePart, Millis, PurgeMode, RequestFields, Stamp, StoredHead, StoredResponse, TierBody,
    TierPage, VarySpec,
};

/// The number of a response among those of its key.
pub fn variant_of(response: &StoredResponse) -> u64 {
    number_of(&response.head)
}

/// Returns the number of the variant with this head.
pub fn number_of(head: &StoredHead) -> u64 {
    head.vary
        .as_ref()
        .map_or(0, |vary| number(vary.spec(), vary.values()))
}

/// The number of the response that a request selects among those that vary on this.
pub fn variant_for(spec: &VarySpec, request: &dyn RequestFields) -> u64 {
    let mut values = Vec::new();
    spec.values(request, &mut values);
    number(spec, &values)
}

fn number(spec: &VarySpec, values: &[u8]) -> u64 {
    let names = spec.names().join(",");
    stable_hash(&[names.as_bytes(), b"\n", values].concat())
}

/// Returns the record of a response; `None`: it is never written. `made_of` belongs to a response with a guard: the
/// record of the parts that the page was made of, and how long the page may be kept by it.
pub fn new_record(
    key: &[u8],
    response: &StoredResponse,
    made_of: Option<(&[u8], Duration)>,
    (clocks, now): (TierTime, Millis),
) -> Option<NewRecord> {
    let (made_of, kept_for) = made_of.unzip();
    if !record::may_be_written(key, response, made_of) {
        return None;
    }
    let head = &response.head;
    let ago = clock::millis(now.since(head.stored_at));
    let stale = head.stale_windows();
    let lifetime = head.expires_at.since(head.stored_at).saturating_add(stale);
    Some(NewRecord {
        key: Bytes::copy_from_slice(key),
        variant: variant_of(response),
        stamp: response.stamp.number(),
        received: TierTime {
            wall_millis: clocks.wall_millis.saturating_sub(ago),
            boot_millis: clocks.boot_millis.saturating_sub(ago),
        },
        lifetime: kept_for.unwrap_or(lifetime),
        head: record::write(response, made_of).into(),
        body: response.body.chunks().concat().into(),
    })
}

/// A record as a page; `None`: it is of a form that is not read.
pub fn page_of(read: RecordBytes, now: Millis) -> Option<TierPage> {
    let (body, body_bytes) = match read.body {
        RecordBody::Inline(bytes) => {
            let len = bytes.len() as u64;
            (TierBody::Bytes(bytes), len)
        }
        RecordBody::File { file, offset, len } => {
            (TierBody::File(FilePart { file, offset, len }), len)
        }
    };
    let kept = KeptBytes {
        head: &read.head,
        body_bytes,
        age: match read.age {
            RecordAge::Millis(millis) => Some(Duration::from_millis(millis)),
            RecordAge::Unknown => None,
        },
    };
    Some(TierPage {
        record: record::read_any(kept, now)?,
        stamp: Stamp::from_number(read.stamp),
        body,
    })
}

/// A purge as the journal has it.
pub fn written_purge(
    target: Vec<u8>,
    mode: PurgeMode,
    stamp: Stamp,
    clocks: TierTime,
) -> WrittenPurge {
    WrittenPurge {
        stamp: stamp.number(),
        mode: match mode {
            PurgeMode::Soft => disk_tier::PurgeMode::Soft,
            PurgeMode::Hard => disk_tier::PurgeMode::Hard,
        },
        wall_millis: clocks.wall_millis,
        target: target.into(),
    }
}
