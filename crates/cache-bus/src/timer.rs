//! A timer of microseconds: the runtime's own ends up to a millisecond late, which is long beside a purge.

use std::io;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// A timer of the kernel, whose descriptor is read as a pipe is: eight bytes once it has ended.
pub struct FineTimer(Receiver);

impl FineTimer {
    /// Fails without a free descriptor.
    pub fn new() -> io::Result<FineTimer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Receiver::from_owned_fd_unchecked(timer).map(FineTimer)
    }

    /// Comes back after this time. One that is given up does not end the next one.
    pub async fn sleep(&mut self, pause: Duration) -> io::Result<()> {
        if pause.is_zero() {
            return Ok(());
        }
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: pause.as_secs().cast_signed(),
                tv_nsec: pause.subsec_nanos().into(),
            },
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        self.0.read_exact(&mut [0; 8]).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Instant;

    #[tokio::test]
    async fn a_pause_is_as_long_as_asked_each_time() -> io::Result<()> {
        let mut timer = FineTimer::new()?;
        for micros in [300, 1700, 0] {
            let (pause, began) = (Duration::from_micros(micros), Instant::now());
            timer.sleep(pause).await?;
            assert!(began.elapsed() >= pause);
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_pause_that_was_given_up_does_not_end_the_next_one() -> io::Result<()> {
        let mut timer = FineTimer::new()?;
        let given_up = timer.sleep(Duration::from_micros(10));
        let _ = tokio::time::timeout(Duration::ZERO, given_up).await;
        std::thread::sleep(Duration::from_micros(20));
        let (pause, began) = (Duration::from_millis(3), Instant::now());
        timer.sleep(pause).await?;
        assert!(began.elapsed() >= pause);
        Ok(())
    }
}
