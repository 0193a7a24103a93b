//! Pages on their way to the process that takes the place of this one. They go in memory files of a bounded size, one
//! after the other, most wanted first.
//!
//! ```text
//!  the process before                       the process that takes its place
//! sends each purge from now on             notes the clocks of its zones
//!   Applied: the log of other machines ────► joins them where the one before was, and reads on
//!   parcel of pages, a memory file ────────► a fetch that began then: stored if no purge names it
//!                    ◄─────────────── Taken
//!   ...
//!   End ───────────────────────────────────► serves
//! ```
//!
//! A page purged there before is not sent, and later purges there are. Purges of other machines are not sent, for both
//! processes read them. The process before may be behind, and its pages old: so it first sends the position up to which
//! it has applied their log, and the other one uses nothing before it has read on from there. If that position is not
//! known, zones that have purges in common with other machines begin without pages.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use disk_tier::{NewRecord, Storage, SystemStorage};
use http_cache::record::{self, KeptBytes};
use http_cache::{KeyRef, Millis, Stamp, Zone};
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Link, send_with};
use crate::applied_log::AppliedLog;
use crate::cache_zones::AliveZones;
use crate::disk_pages::new_record;

/// A parcel is sent when it has this number of bytes. Both processes hold it meanwhile.
const PARCEL_BYTES: u64 = 8 << 20;
/// A larger page is made anew.
const MAX_PAGE_BYTES: u64 = 8 << 20;
/// All pages go over within this time, or are left.
pub(super) const WITHIN: Duration = Duration::from_secs(10);
/// The pages of a zone that are looked at.
const MAX_PAGES: usize = 4_000_000;
/// The frame before each page of a parcel: the lengths of key, head and body, and when it was received.
const FRAME_BYTES: usize = 4 * 8;

/// A message with a parcel: this letter and the name of the zone.
pub(super) const PARCEL: u8 = b'S';
/// The other process has taken a parcel.
pub(super) const TAKEN: u8 = b'T';
/// The position up to which the purges of other machines are applied to all pages: this letter, the number of the
/// entry, the epoch.
pub(super) const APPLIED: u8 = b'N';
/// There are no more parcels.
pub(super) const END: u8 = b'E';

/// The zones that have got all purges since the connection began, and the values of their clocks then.
pub(super) type ListeningZones = Vec<(Arc<Zone>, Stamp)>;

/// Notes where the clocks of all zones stand.
pub(super) fn listening(zones: &AliveZones) -> ListeningZones {
    let stamped = |zone: Arc<Zone>| {
        let stamp = zone.stamp();
        (zone, stamp)
    };
    zones.zones().into_iter().map(stamped).collect()
}

/// Sends the pages in memory, most wanted first, as far as time allows. `applied` is from before the first page is
/// chosen.
pub(super) fn send_all(link: &Link, zones: &AliveZones, applied: Option<&AppliedLog>) {
    let (until, mut sent) = (Instant::now() + WITHIN, 0);
    if let Some(applied) = applied {
        link.queue(written_applied(applied));
    }
    for zone in zones_sent(zones, applied) {
        if send_zone(link, &zone, &mut sent, until).is_none() {
            break;
        }
    }
    link.queue(vec![END]);
}

/// The zones whose pages are of use there: those that other machines purge as well, if it is known up to where.
fn zones_sent(zones: &AliveZones, applied: Option<&AppliedLog>) -> Vec<Arc<Zone>> {
    let mut zones = zones.zones();
    zones.retain(|zone| applied.is_some() || !zone.is_published());
    zones
}

fn written_applied(applied: &AppliedLog) -> Vec<u8> {
    let number = applied.position.to_le_bytes();
    [&[APPLIED][..], &number, applied.epoch.as_bytes()].concat()
}

/// Returns the position in a message [`APPLIED`]; `None`: it makes no sense.
pub(super) fn read_applied(message: &[u8]) -> Option<AppliedLog> {
    let (number, epoch) = message.get(1..)?.split_first_chunk()?;
    Some(AppliedLog {
        epoch: std::str::from_utf8(epoch).ok()?.into(),
        position: u64::from_le_bytes(*number),
    })
}

/// `None`: the time is over, or the other process has ended.
fn send_zone(link: &Link, zone: &Zone, sent: &mut u64, until: Instant) -> Option<()> {
    let (now, clocks) = (Millis(clock::now()), SystemStorage::new().now());
    let wanted = zone.most_wanted_stored(now, MAX_PAGES);
    let mut records = wanted
        .iter()
        .filter(|(_, response)| response.body.len() <= MAX_PAGE_BYTES)
        .filter_map(|(key, response)| new_record(key, response, None, (clocks, now)))
        .peekable();
    let name = zone.config().name.as_bytes();
    while records.peek().is_some() {
        let parcel = pack(&mut records).ok()?;
        let message = [&[PARCEL][..], name].concat();
        send_with(&link.socket, &message, &[parcel.as_fd()]).ok()?;
        *sent += 1;
        link.wait_until_taken(*sent, until)?;
    }
    Some(())
}

/// A memory file with the next pages.
fn pack(records: &mut impl Iterator<Item = NewRecord>) -> io::Result<File> {
    let mut out = BufWriter::new(File::from(memfd_create("pages", MemfdFlags::CLOEXEC)?));
    let mut written = 0;
    while written < PARCEL_BYTES
        && let Some(record) = records.next()
    {
        let parts = [&record.key, &record.head, &record.body];
        for part in parts {
            out.write_all(&(part.len() as u64).to_le_bytes())?;
            written += part.len() as u64;
        }
        out.write_all(&record.received.boot_millis.to_le_bytes())?;
        for part in parts {
            out.write_all(part)?;
        }
        written += FRAME_BYTES as u64;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Stores the pages of a parcel; pages that make no sense are left out.
pub(super) fn take(message: &[u8], parcel: OwnedFd, zones: &ListeningZones) {
    let name = message.get(1..).unwrap_or_default();
    let mut zones = zones.iter();
    let Some((zone, begin)) = zones.find(|(zone, _)| zone.config().name.as_bytes() == name) else {
        return;
    };
    let Ok(bytes) = unpack(&File::from(parcel)) else {
        return;
    };
    let mut rest = Bytes::from(bytes);
    while let Some(page) = next_page(&mut rest) {
        store(zone, &page, *begin);
    }
}

fn unpack(parcel: &File) -> io::Result<Vec<u8>> {
    let len = parcel.metadata()?.len();
    // The last page may pass the bound, with a key and a head of their own.
    if len > PARCEL_BYTES + 2 * MAX_PAGE_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    parcel.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// A page as it was received.
struct SentPage {
    key: Bytes,
    head: Bytes,
    body: Bytes,
    received_boot_millis: u64,
}

fn next_page(rest: &mut Bytes) -> Option<SentPage> {
    if rest.len() < FRAME_BYTES {
        return None;
    }
    let mut length = || usize::try_from(rest.get_u64_le()).ok();
    let (key, head, body) = (length()?, length()?, length()?);
    let received_boot_millis = rest.get_u64_le();
    let all = key.checked_add(head)?.checked_add(body)?;
    (all <= rest.len()).then(|| SentPage {
        key: rest.split_to(key),
        head: rest.split_to(head),
        body: rest.split_to(body),
        received_boot_millis,
    })
}

/// Stores the page as the result of a fetch that began at this stamp.
fn store(zone: &Zone, page: &SentPage, begin: Stamp) {
    let now = Millis(clock::now());
    let boot_millis = SystemStorage::new().now().boot_millis;
    let age = boot_millis.saturating_sub(page.received_boot_millis);
    let kept = KeptBytes {
        head: &page.head,
        body_bytes: page.body.len() as u64,
        age: Some(Duration::from_millis(age)),
    };
    let Some(record) = record::read(kept, now) else {
        return;
    };
    let response = record.with_body(page.body.clone(), begin);
    zone.promote(&KeyRef::new(&page.key), response, &record.names(), now);
}

#[cfg(test)]
mod tests {
    use http_cache::{PurgeListener, PurgeMode, PurgeTarget, ZoneConfig};

    use super::*;

    struct OtherMachines;

    impl PurgeListener for OtherMachines {
        fn purged(&self, _: &str, _: PurgeTarget<'_>, _: PurgeMode) {}
    }

    #[test]
    fn zones_that_other_machines_purge_are_sent_if_it_is_known_up_to_where() {
        let zone = Zone::new(ZoneConfig::default());
        let zones = AliveZones::default();
        zones.add(std::slice::from_ref(&zone));
        let applied = AppliedLog {
            epoch: "one".into(),
            position: 7,
        };
        assert_eq!(zones_sent(&zones, None).len(), 1);
        zone.set_publisher(Some(Arc::new(OtherMachines)));
        assert_eq!(zones_sent(&zones, None).len(), 0);
        assert_eq!(zones_sent(&zones, Some(&applied)).len(), 1);
        zone.set_publisher(None);
        assert_eq!(zones_sent(&zones, None).len(), 1);
    }

    #[test]
    fn what_is_said_of_other_machines_is_read_as_it_was_written() {
        let applied = AppliedLog {
            epoch: "run:history:7".into(),
            position: 1 << 40,
        };
        assert_eq!(read_applied(&written_applied(&applied)), Some(applied));
        assert_eq!(read_applied(b"N1234567"), None);
        assert_eq!(read_applied(b"N12345678\xff"), None);
    }
}
