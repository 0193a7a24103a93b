//! How long a connection waits for its client. Arming a timer for each request
//! would cost more than parsing it, so there is one per connection, and the
//! deadline beside it moves.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline that moves on with each request. The timer behind it is armed
/// once and looks at the deadline only when it fires: most never do.
#[derive(Default)]
pub struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    deadline: Option<Instant>,
    /// Whom the timer will wake.
    waker: Option<Waker>,
}

/// One that those share who wait one after the other.
pub type SharedDeadline = Arc<Mutex<Deadline>>;

impl Deadline {
    /// Waits until `deadline` from now on.
    pub fn until(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
        if let Some(timer) = &mut self.timer
            && timer.deadline() > deadline
        {
            timer.as_mut().reset(deadline);
        }
    }

    /// Ready when the deadline has passed.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        // A timer that knows its task already need not be polled again.
        if let (Some(timer), Some(waker)) = (&self.timer, &self.waker)
            && waker.will_wake(cx.waker())
            && !timer.is_elapsed()
        {
            return Poll::Pending;
        }
        loop {
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.as_mut().poll(cx).is_pending() {
                self.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_timer_follows_a_deadline_that_moves_either_way() {
        let begun = Instant::now();
        let mut deadline = Deadline::default();
        for (seconds, wanted) in [(10, 10), (25, 25), (24, 25), (30, 30)] {
            deadline.until(begun + Duration::from_secs(seconds));
            poll_fn(|cx| deadline.poll(cx)).await;
            assert_eq!(begun.elapsed().as_secs(), wanted, "{seconds}");
        }
        // Armed for later, then called earlier.
        deadline.until(begun + Duration::from_secs(100));
        let pending = poll_fn(|cx| Poll::Ready(deadline.poll(cx).is_pending())).await;
        assert!(pending);
        deadline.until(begun + Duration::from_secs(40));
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(begun.elapsed().as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_that_waits_last_is_the_one_that_is_woken() {
        let begun = Instant::now();
        let mut deadline = Deadline::default();
        deadline.until(begun + Duration::from_secs(10));
        let mut other = Context::from_waker(Waker::noop());
        assert!(deadline.poll(&mut other).is_pending());
        assert!(deadline.poll(&mut other).is_pending());
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(begun.elapsed().as_secs(), 10);
    }
}
