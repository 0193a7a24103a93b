//! Bodies that lie in a file of a zone's disk, read into memory: on the spot where the kernel has all of it, else by a
//! thread.

use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_cache::{FilePart, TierBody, TierFuture, TierPage};
use rustix::io::{ReadWriteFlags, preadv2};

/// More is read by a thread in any case: to copy it would keep the worker for longer than a tenth of a millisecond
/// or two.
const MAX_ON_THE_SPOT: u64 = 1 << 20;
/// A read by a thread is waited for no longer: the head of the page was read already.
const WITHIN: Duration = Duration::from_millis(200);

/// The bytes, if no disk has to be waited for.
pub fn read_now(part: &FilePart) -> Option<Bytes> {
    if part.len > MAX_ON_THE_SPOT {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(part.len).ok()?];
    let mut read = 0;
    while read < bytes.len() {
        let rest = bytes.get_mut(read..)?;
        let mut slices = [IoSliceMut::new(rest)];
        let offset = part.offset + read as u64;
        // A file system without support for NOWAIT returns an error too: then a thread reads.
        match preadv2(&*part.file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            Ok(0) | Err(_) => return None,
            Ok(count) => read += count,
        }
    }
    Some(bytes.into())
}

/// The page with its bytes, read by a thread; `None`: it takes too long, or fails.
pub fn read_soon(page: Arc<TierPage>) -> TierFuture<Option<Arc<TierPage>>> {
    Box::pin(async move {
        let read = tokio::task::spawn_blocking(move || with_bytes(&page));
        tokio::time::timeout(WITHIN, read).await.ok()?.ok()?
    })
}

fn with_bytes(page: &TierPage) -> Option<Arc<TierPage>> {
    let TierBody::File(part) = &page.body else {
        return None;
    };
    let mut bytes = vec![0; usize::try_from(part.len).ok()?];
    part.file.read_exact_at(&mut bytes, part.offset).ok()?;
    Some(Arc::new(TierPage {
        record: page.record.clone(),
        stamp: page.stamp,
        body: TierBody::Bytes(bytes.into()),
    }))
}
