//! Another place where a zone keeps responses: slower than memory, larger, and still there after a restart.
//! Its implementation is not known here.
//!
//! A response that comes from there is a fetch that began at its stamp: it may be used if no purge that is
//! written down since then names it ([`Zone::promote`](crate::Zone::promote)). So a tier is never searched
//! for purged pages. It writes the purges down instead, and gives them back at its next start
//! ([`Zone::recall`](crate::Zone::recall)).
//!
//! ```text
//!   Zone::find ── nothing ──► Tier::look ── Here ───► Zone::promote ──► a hit
//!                                  │  └──── Coming ─► wait, then the same
//!                                  └─────── Nothing ► a fetch
//!   Zone::insert ─► Tier::note_stored        Zone::purge ─► Tier::write_down, then Tier::written_down
//! ```

use crate::fields::RequestFields;
use crate::key::KeyRef;
use crate::purge::{PurgeMode, PurgeTarget, Stamp};
use crate::record::PageRecord;
use crate::stored::StoredResponse;
use crate::time::Millis;
use bytes::Bytes;
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Something of a tier that takes waiting.
pub type TierFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A store of responses beside memory. No call waits for a disk: work that waits is a future.
pub trait Tier: fmt::Debug + Send + Sync {
    /// Begins to write a purge down. The purged responses are removed from memory afterwards.
    fn write_down(&self, target: PurgeTarget<'_>, mode: PurgeMode, stamp: Stamp, now: Millis);

    /// Resolves to `true` once all purges that were handed over so far hold, whatever happens to the server, and
    /// to `false` once it is known that they do not; `None`: they do.
    fn written_down(&self) -> Option<TierFuture<bool>>;

    /// Looks for a page that memory does not have.
    fn look(&self, key: &KeyRef<'_>, request: &dyn RequestFields, now: Millis) -> TierLook;

    /// Checks the page that [`TierLook::Coming`] has given for a request: it may be of another variant, or
    /// purged meanwhile.
    fn look_at(
        &self,
        page: Arc<TierPage>,
        key: &KeyRef<'_>,
        request: &dyn RequestFields,
        now: Millis,
    ) -> TierLook;

    /// A response was stored in memory: the page under its key is older.
    fn note_stored(&self, key: &KeyRef<'_>, response: &Arc<StoredResponse>, now: Millis);

    /// A response with a guard, which was stored before, is kept for that time with its inputs `made_of`.
    fn note_kept(
        &self,
        key: &KeyRef<'_>,
        response: &StoredResponse,
        made_of: (&[u8], Duration),
        now: Millis,
    ) {
        let _ = (key, response, made_of, now);
    }

    /// A stored response is asked for again and again, and has not left memory.
    fn note_wanted(&self, key: &[u8], response: &Arc<StoredResponse>, now: Millis);

    /// Returns itself, for its maker.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// The result of looking in a tier.
pub enum TierLook {
    /// Nothing.
    Nothing,
    /// It is here.
    Here(Arc<TierPage>),
    /// It has to be waited for, no longer than the tier's own bound; then [`Tier::look_at`] it. `None`:
    /// nothing came.
    Coming(TierFuture<Option<Arc<TierPage>>>),
}

/// A response as a tier has kept it.
#[derive(Debug)]
pub struct TierPage {
    /// All but the body.
    pub record: PageRecord,
    /// When its fetch began.
    pub stamp: Stamp,
    /// The body.
    pub body: TierBody,
}

/// The bytes of a body, or their place.
#[derive(Clone, Debug)]
pub enum TierBody {
    /// It was read.
    Bytes(Bytes),
    /// It can be sent from a file.
    File(FilePart),
}

/// A part of a file, whose content never changes.
#[derive(Clone, Debug)]
pub struct FilePart {
    /// The file.
    pub file: Arc<File>,
    /// The offset of the part in the file.
    pub offset: u64,
    /// How many bytes it has.
    pub len: u64,
}
