//! `mirror` and `post_action`: copies of a request for other paths, made in the background
//! (<https://nginx.org/en/docs/http/ngx_http_mirror_module.html>). No client
//! waits for a copy or sees its response; how many are under way is bounded.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicUsize, Ordering};

use site::{LogLevel, Mirror};
use transport::request_body::RequestBody;
use upstream::Class;

use crate::exchange::request::Request;
use crate::exchange::subrequest;
use crate::log::error_log;

/// Copies under way in the whole process. With bodies of
/// `client_body_buffer_size` each this is some 16 MB; a target slower than that
/// could not follow anyway.
const MAX_IN_FLIGHT: usize = 1024;

static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// Copies that have not ended.
pub fn in_flight() -> usize {
    IN_FLIGHT.load(Ordering::Acquire)
}

/// Must the body be read before copies are made?
pub fn wants_body(request: &Request, mirror: &Mirror) -> bool {
    mirror.with_body && matches!(request.body, RequestBody::Unread)
}

/// Starts the copies of `request`.
pub fn begin(request: &Request, mirror: &Mirror) {
    for target in &mirror.targets {
        let Some(slot) = take_slot(request) else {
            return;
        };
        let args = request.route.args.clone();
        let mut copy = subrequest::to(request, target, &args);
        copy.class = Class::Mirror;
        if mirror.with_body {
            copy.body = request.body.share();
        }
        launch(copy, slot);
    }
}

/// `post_action`: a request that is made when the response of `request` has been sent.
pub fn begin_post_action(request: &Request) {
    let settings = request.settings();
    let Some(target) = &settings.post_action else {
        return;
    };
    if request.is_own_visit() {
        return;
    }
    let Some(slot) = take_slot(request) else {
        return;
    };
    let args = request.route.args.clone();
    let mut copy = subrequest::to(request, target, &args);
    copy.class = Class::Mirror;
    copy.delivery.status = request.delivery.status;
    let (to, from) = (&mut copy.delivery, &request.delivery);
    to.bytes_sent = from.bytes_sent.load(Relaxed).into();
    to.head_bytes_sent = from.head_bytes_sent.load(Relaxed).into();
    launch(copy, slot);
}

fn take_slot(request: &Request) -> Option<MirrorSlot> {
    let slot = MirrorSlot::take();
    if slot.is_none() {
        error_log::request(
            request,
            LogLevel::Warn,
            format_args!(
                "request not mirrored: {MAX_IN_FLIGHT} mirrored requests have not ended yet"
            ),
        );
    }
    slot
}

fn launch(mut copy: Box<Request>, slot: MirrorSlot) {
    tokio::spawn(async move {
        subrequest::run(&mut copy).await;
        drop(slot);
    });
}

/// One of the copies that may be under way; given back when dropped.
struct MirrorSlot(());

impl MirrorSlot {
    fn take() -> Option<MirrorSlot> {
        let more = |taken: usize| (taken < MAX_IN_FLIGHT).then_some(taken + 1);
        IN_FLIGHT
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()
            .map(|_| MirrorSlot(()))
    }
}

impl Drop for MirrorSlot {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_under_way_are_bounded() {
        let slots: Vec<MirrorSlot> = std::iter::from_fn(MirrorSlot::take)
            .take(MAX_IN_FLIGHT + 1)
            .collect();
        assert_eq!(slots.len(), MAX_IN_FLIGHT);
        assert!(MirrorSlot::take().is_none());
        drop(slots);
        assert_eq!(in_flight(), 0);
    }
}
