//! How far the pages on disk have seen the purges of other machines (`cache_nodes`). A node that comes back reads the
//! log from there on, and uses the pages it has kept.

use std::sync::Arc;

use bytes::Bytes;
use disk_tier::{LogPosition, Recovery};
use http_cache::Zone;

use super::DiskPages;
use crate::applied_log::AppliedLog;

/// The purges of other machines that the pages of earlier starts have seen.
pub(super) enum PurgesOfOthers {
    /// Earlier starts have left no pages.
    NoPages,
    Unknown,
    UpTo(AppliedLog),
}

impl PurgesOfOthers {
    pub(super) fn of(recovery: &Recovery) -> PurgesOfOthers {
        let position = recovery.position.as_ref().and_then(applied);
        match position {
            _ if !recovery.has_segments => PurgesOfOthers::NoPages,
            Some(applied) => PurgesOfOthers::UpTo(applied),
            None => PurgesOfOthers::Unknown,
        }
    }

    /// Whether the pages may be used by a node that has read the log from `begin` on.
    pub(super) fn reach(&self, begin: Option<&AppliedLog>) -> bool {
        match (self, begin) {
            (PurgesOfOthers::NoPages, _) => true,
            (PurgesOfOthers::UpTo(seen), Some(begin)) => {
                seen.epoch == begin.epoch && seen.position >= begin.position
            }
            _ => false,
        }
    }
}

/// The position at which this node has begun to read the log of the others: `Some(None)`, if all pages stored then
/// were void.
pub type NodeBegin = Option<Option<AppliedLog>>;

/// Writes down up to where the purges of other machines are applied in these zones.
pub fn note_position(zones: &[Arc<Zone>], applied: &AppliedLog) {
    for open in zones.iter().filter_map(|zone| DiskPages::of(zone)?.open()) {
        open.tier.note_position(LogPosition {
            log: Bytes::copy_from_slice(applied.epoch.as_bytes()),
            number: applied.position,
        });
    }
}

/// Returns the position up to which all stored pages have seen the purges of other machines: the pages on disk of
/// zones whose folder is open, and `others`, which came with their own position. `None`: this is not known of some of
/// them, or no page is stored.
pub fn applied_to_stored(zones: &[Arc<Zone>], others: Option<AppliedLog>) -> Option<AppliedLog> {
    let mut least = others;
    for open in zones.iter().filter_map(|zone| DiskPages::of(zone)?.open()) {
        match &open.seen {
            PurgesOfOthers::NoPages => {}
            PurgesOfOthers::Unknown => return None,
            PurgesOfOthers::UpTo(applied) => least = Some(earlier(least, applied)?),
        }
    }
    least
}

/// The earlier of two positions in the same log.
fn earlier(one: Option<AppliedLog>, other: &AppliedLog) -> Option<AppliedLog> {
    match one {
        Some(one) if one.epoch != other.epoch => None,
        Some(one) if one.position < other.position => Some(one),
        _ => Some(other.clone()),
    }
}

fn applied(position: &LogPosition) -> Option<AppliedLog> {
    Some(AppliedLog {
        epoch: std::str::from_utf8(&position.log).ok()?.into(),
        position: position.number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: &str, position: u64) -> AppliedLog {
        AppliedLog {
            epoch: epoch.into(),
            position,
        }
    }

    #[test]
    fn the_earlier_position_holds_for_both_and_two_logs_have_none() {
        let one = Some(at("a", 4));
        assert_eq!(earlier(None, &at("a", 7)), Some(at("a", 7)));
        assert_eq!(earlier(one.clone(), &at("a", 7)), one);
        assert_eq!(earlier(one.clone(), &at("a", 3)), Some(at("a", 3)));
        assert_eq!(earlier(one, &at("b", 3)), None);
    }

    #[test]
    fn pages_are_of_use_that_have_seen_all_before_the_node_began_to_read() {
        let begin = at("a", 4);
        let seen = PurgesOfOthers::UpTo;
        assert!(seen(at("a", 4)).reach(Some(&begin)));
        assert!(seen(at("a", 9)).reach(Some(&begin)));
        assert!(!seen(at("a", 3)).reach(Some(&begin)));
        assert!(!seen(at("b", 9)).reach(Some(&begin)));
        assert!(!seen(at("a", 9)).reach(None));
        assert!(!PurgesOfOthers::Unknown.reach(Some(&begin)));
        assert!(PurgesOfOthers::NoPages.reach(None));
    }
}
