//! Files that are sent compressed: their bytes are kept like a stored response, so that the forms
//! made of them (`stored`) are kept beside them. One store for the process, bounded; the least
//! recently requested file leaves first.
//!
//! A file is known by its device and inode, and its bytes hold while its length and times are the
//! same: a file that was written to takes the place of its kept form.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_cache::{
    FoundResponse, KeyRef, LifetimeSource, Millis, NoFields, ResponseHead, Storable, StoredHead,
    StoredResponse, Zone, ZoneConfig,
};
use rustix::fs::Stat;
use transport::open_file::{OpenFile, Stamp};

/// Files and their compressed forms, in the whole process.
const MAX_KEPT_BYTES: u64 = 32 << 20;
/// Larger files are compressed on their way. Style sheets and scripts are far smaller.
const MAX_FILE_BYTES: u64 = 4 << 20;

static FILES: LazyLock<Arc<Zone>> = LazyLock::new(|| {
    Zone::new(ZoneConfig {
        name: "files".to_owned(),
        memory_budget_bytes: MAX_KEPT_BYTES,
        max_response_bytes: MAX_FILE_BYTES,
        shards: 8,
        ..ZoneConfig::default()
    })
});

/// The whole `file`, of `length` bytes, as a stored response; `None` if it is too large, or was
/// written to a moment ago.
pub fn kept_file(file: &OpenFile, length: u64, now: u64) -> Option<Arc<StoredResponse>> {
    if length > MAX_FILE_BYTES {
        return None;
    }
    let stat = rustix::fs::fstat(file).ok()?;
    let is_same_length = u64::try_from(stat.st_size).is_ok_and(|size| size == length);
    is_same_length.then(|| look_up(file, &stat, Millis(now)))?
}

fn look_up(file: &OpenFile, stat: &Stat, now: Millis) -> Option<Arc<StoredResponse>> {
    let mut name = [0u8; 16];
    name[..8].copy_from_slice(&stat.st_dev.to_ne_bytes());
    name[8..].copy_from_slice(&stat.st_ino.to_ne_bytes());
    let key = KeyRef::new(&name);
    let state = state_of(stat);
    let kept = match FILES.find(&key, &NoFields, now) {
        FoundResponse::Fresh(kept) => Some(kept),
        FoundResponse::NotFresh(found) => found.stale().map(|(kept, _)| kept.clone()),
    };
    if let Some(kept) = kept.filter(|kept| kept.head.reason[..] == state[..]) {
        return Some(kept);
    }
    let response = read(file, stat, state, now)?;
    FILES.insert(&key, response, now).ok()
}

/// Returns the file's state as text: a changed file has another one.
fn state_of(stat: &Stat) -> Bytes {
    format!("{} {:?}", stat.st_size, Stamp::of(stat)).into()
}

fn read(file: &OpenFile, stat: &Stat, state: Bytes, now: Millis) -> Option<StoredResponse> {
    // The system's own clock, by which files are stamped.
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    if !Stamp::of(stat).is_settled(clock) {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(stat.st_size).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let after = rustix::fs::fstat(file).ok()?;
    if state_of(&after) != state {
        return None;
    }
    let storable = Storable {
        // It holds until the file changes.
        lifetime: Duration::from_secs(u64::from(u32::MAX)),
        said: None,
        source: LifetimeSource::Rule,
        age_at_receipt: Duration::ZERO,
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
        must_revalidate: false,
        vary: None,
        share_only: None,
    };
    // The head is never sent: it carries the state in the place of a reason.
    let head = ResponseHead {
        reason: &state,
        ..ResponseHead::OK
    };
    let head = StoredHead::new(&head, &storable, now);
    let body = http_cache::Body::pack(&[Bytes::from(bytes)]);
    Some(StoredResponse::new(head, body, FILES.stamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_a_moment_ago_is_not_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "text").unwrap();
        let open = OpenFile::new(std::fs::File::open(file.path()).unwrap());
        assert!(kept_file(&open, 4, 0).is_none());
    }
}
