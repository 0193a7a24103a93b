//! The time of day, which tests can set.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

/// A clock that gives the time, and waits.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> SystemTime;
    fn sleep_until(&self, moment: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The system's.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

/// The time of day is looked at again after this time: it may have been set, and the machine may
/// have been asleep.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, moment: SystemTime) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            while let Ok(left) = moment.duration_since(self.now()) {
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LOOK_AGAIN)).await;
            }
        })
    }
}
