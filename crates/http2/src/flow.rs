//! Flow-control windows (RFC 9113 §5.2, §6.9): how much we may send, and how much the
//! peer may. One of each for the connection and for every stream.

/// The largest window (§6.9.1).
pub const MAX_WINDOW_BYTES: u32 = 0x7fff_ffff;
/// Every window before any setting or WINDOW_UPDATE (§6.9.2).
pub const DEFAULT_WINDOW_BYTES: u32 = 65_535;

/// A window came above 2^31-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// More came than a window allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowControlError;

/// How much we may send. A change of SETTINGS_INITIAL_WINDOW_SIZE can make it negative
/// (§6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendWindow(i32);

impl SendWindow {
    pub(crate) fn new(bytes: u32) -> Self {
        SendWindow(bytes.min(MAX_WINDOW_BYTES) as i32)
    }

    /// Returns the number of bytes that may be sent now.
    #[inline]
    pub(crate) fn available(self) -> usize {
        self.0.max(0) as usize
    }

    /// Takes the bytes to send, no more than are available.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.available());
        self.0 -= bytes as i32;
    }

    /// A WINDOW_UPDATE.
    pub(crate) fn grow(&mut self, increment: u32) -> Result<(), Overflow> {
        self.shift(i64::from(increment))
    }

    /// A change of the initial size, by the difference.
    pub(crate) fn shift(&mut self, difference: i64) -> Result<(), Overflow> {
        let bytes = i64::from(self.0) + difference;
        self.0 = i32::try_from(bytes).map_err(|_| Overflow)?;
        Ok(())
    }
}

/// How much the peer may send. Consumed bytes are given back in large steps, so that
/// WINDOW_UPDATE frames are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    /// The bytes that the peer may still send; negative while it has not seen a smaller
    /// setting.
    available: i64,
    /// Received and not consumed yet.
    held: u32,
    /// Consumed and not given back yet.
    consumed: u32,
    /// The whole window.
    size: u32,
}

impl ReceiveWindow {
    /// A window of `size`, of which the peer may use `available` so far.
    pub(crate) fn new(available: u32, size: u32) -> Self {
        ReceiveWindow {
            available: i64::from(available),
            held: 0,
            consumed: 0,
            size,
        }
    }

    /// Takes received bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), FlowControlError> {
        let left = self.available - bytes as i64;
        if left < 0 {
            return Err(FlowControlError);
        }
        self.available = left;
        self.held += bytes as u32;
        Ok(())
    }

    /// Notes that this number of received bytes was consumed. Returns the increment for a
    /// WINDOW_UPDATE, if one is worth sending.
    pub(crate) fn release(&mut self, bytes: usize) -> Option<u32> {
        let bytes = self.held.min(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.held -= bytes;
        self.consumed += bytes;
        if self.consumed == 0 || self.consumed < self.size / 2 {
            return None;
        }
        self.available += i64::from(self.consumed);
        Some(std::mem::take(&mut self.consumed))
    }

    /// All that came and was not consumed: it will not be any more.
    pub(crate) fn held(&self) -> usize {
        self.held as usize
    }

    /// The peer has seen that the window is smaller than it believed.
    pub(crate) fn shrink(&mut self, difference: u32) {
        self.available -= i64::from(difference);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_send_window_can_be_negative_and_never_overflows() {
        let mut window = SendWindow::new(100);
        window.take(100);
        assert_eq!(window.shift(-60), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(60), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(1), Ok(()));
        assert_eq!(window.available(), 1);
        assert_eq!(window.grow(MAX_WINDOW_BYTES - 1), Ok(()));
        assert_eq!(window.grow(1), Err(Overflow));
        assert_eq!(window.available(), MAX_WINDOW_BYTES as usize);
    }

    #[test]
    fn a_receive_window_is_given_back_in_halves() {
        let mut window = ReceiveWindow::new(1000, 1000);
        assert_eq!(window.take(600), Ok(()));
        assert_eq!(window.release(499), None);
        assert_eq!(window.release(1), Some(500));
        assert_eq!(window.held(), 100);
        assert_eq!(window.take(901), Err(FlowControlError));
        assert_eq!(window.take(900), Ok(()));
        assert_eq!(window.release(5000), Some(1000), "no more than came");
        assert_eq!(window.take(1000), Ok(()));
    }

    #[test]
    fn a_window_of_no_bytes_gives_nothing_back() {
        let mut window = ReceiveWindow::new(0, 0);
        assert_eq!(window.take(1), Err(FlowControlError));
        assert_eq!(window.take(0), Ok(()));
        assert_eq!(window.release(0), None);
    }

    proptest! {
        #[test]
        fn the_peer_never_has_more_than_the_window(
            size in 0..5000u32,
            steps in proptest::collection::vec((0..3000usize, 0..3000usize), 0..50),
        ) {
            let mut window = ReceiveWindow::new(size, size);
            let (mut peer, mut held) = (u64::from(size), 0);
            for (sent, consumed) in steps {
                let is_allowed = sent as u64 <= peer;
                prop_assert_eq!(window.take(sent).is_ok(), is_allowed);
                if is_allowed {
                    peer -= sent as u64;
                    held += sent as u64;
                }
                held -= held.min(consumed as u64);
                peer += window.release(consumed).map_or(0, u64::from);
                prop_assert!(peer + held <= u64::from(size));
            }
        }
    }
}
