//! How far a fetch runs ahead of its readers, and what is kept of a response that outgrows the bound.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use super::*;

/// Whether its task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_fetch_that_waits_for_room_goes_on_when_its_slow_reader_leaves() {
    let zone = zone_with(1 << 20);
    let client = Client::new(&zone, &[]);
    let mut filling = publish(client.lead(), SECOND, &[], None);
    let slow = filling.reader();
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..4 {
        filling.push(chunk.clone(), T0);
    }
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut room = pin!(filling.room());
    let mut poll = || room.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending() && !woken.0.load(Ordering::Relaxed));
    drop(slow);
    assert!(woken.0.load(Ordering::Relaxed) && poll().is_ready());
}

#[test]
fn a_response_that_outgrows_the_bound_passes_through_in_a_window() {
    let zone = zone_with(3 << 20);
    let client = Client::new(&zone, &[]);
    let before = zone.stats().used_bytes;
    let mut filling = publish(client.lead(), SECOND, &[], None);
    let mut slow = filling.reader();
    let mut waiting = client.follow();
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..3 {
        assert_eq!(filling.push(chunk.clone(), T0), PushResult::Kept);
    }
    assert_eq!(
        zone.stats().used_bytes,
        before + (3 << 20),
        "bytes on their way are counted"
    );
    assert_eq!(filling.push(chunk.clone(), T0), PushResult::TooLarge);
    assert_eq!(zone.stats().used_bytes, before);
    assert!(
        now(filling.room()).is_none(),
        "the slow reader has four chunks to go"
    );
    assert!(matches!(
        client.join(),
        Join::Alone(AloneReason::NotShareable(Reason::TooLarge))
    ));
    for _ in 0..3 {
        assert!(matches!(now(slow.next_chunk()), Some(Ok(Some(_)))));
    }
    assert!(now(filling.room()).is_some());
    let late = client.wait(&mut waiting);
    assert!(
        matches!(late, Some(FollowerOutcome::NotShareable(Reason::TooLarge))),
        "its beginning is gone"
    );
    assert_eq!(filling.push(chunk.clone(), T0), PushResult::TooLarge);
    let mut rest = 0;
    while let Some(bytes) = slow.try_next_chunk() {
        rest += bytes.len();
    }
    assert_eq!(rest, 2 << 20);
    drop(slow);
    assert_eq!(filling.push(chunk, T0), PushResult::Unwanted);
    assert_eq!(filling.complete(T0).map(drop), Err(Reason::TooLarge));
    assert_eq!(zone.stats().used_bytes, before);
}

#[test]
fn only_a_reader_for_whom_others_wait_is_broken_off() {
    let zone = zone_with(3 << 20);
    let client = Client::new(&zone, &[]);
    let mut filling = publish(client.lead(), SECOND, &[], None);
    let (mut slow, mut quick) = (filling.reader(), filling.reader());
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..4 {
        filling.push(chunk.clone(), T0);
    }
    filling.break_off_slowest();
    assert!(now(filling.room()).is_none(), "both have much to read");
    while quick.try_next_chunk().is_some() {}
    assert!(now(filling.room()).is_none());
    filling.break_off_slowest();
    assert!(now(filling.room()).is_some());
    assert!(matches!(now(slow.next_chunk()), Some(Err(_))));
    drop(slow);
    filling.push(chunk, T0);
    assert!(matches!(now(quick.next_chunk()), Some(Ok(Some(_)))));
}
