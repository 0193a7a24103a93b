//! Notices to a service manager such as systemd: that the start is over, that a reload or the end has begun,
//! which process goes on after an upgrade, and that the server still serves. The protocol is `sd_notify(3)`:
//! lines of text in one datagram to the socket that `NOTIFY_SOCKET` names.
//!
//! Without such a socket nothing is sent, and nothing wakes up. A manager that does not read holds nothing up:
//! a few messages fill its socket, signs of life are left out from then on, and other messages wait for a moment.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::net::{SendFlags, SocketAddrUnix, sendto};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// The environment variable with the manager's socket.
const SOCKET: &str = "NOTIFY_SOCKET";
/// After how many microseconds without a sign of life the manager ends the server.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// How many signs of life fit into that time: two may be late before the server is ended.
const SIGNS: u32 = 3;
/// How long a message that must not be lost waits for a manager that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The service manager that started this program, if there is one.
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddrUnix)>,
    /// How often it wants a sign of life.
    interval: Option<Duration>,
    next_sign: Option<Instant>,
}

/// Whether this program was started by a service manager that wants notices.
pub fn is_there() -> bool {
    std::env::var_os(SOCKET).is_some_and(|name| !name.is_empty())
}

impl ServiceManager {
    /// Returns the service manager that the environment names.
    pub fn of_environment() -> ServiceManager {
        let socket = std::env::var(SOCKET).ok();
        let socket = socket.and_then(|name| {
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
                None => SocketAddrUnix::new(name.as_str()),
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_write_timeout(Some(SEND_TIMEOUT)).ok()?;
            Some((socket, address.ok()?))
        });
        let watchdog = std::env::var(WATCHDOG).ok();
        let interval = watchdog
            .and_then(|text| text.parse().ok())
            .filter(|micros| *micros > 0 && socket.is_some())
            .map(|micros| Duration::from_micros(micros) / SIGNS);
        ServiceManager {
            socket,
            interval,
            next_sign: interval.map(|_| Instant::now()),
        }
    }

    /// The start is over, or a reload is.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// A reload has begun.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.tell(&format!(
            "RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=Reloading the configuration"
        ));
    }

    /// Another process goes on with the service.
    pub fn main_pid(&self, pid: u32) {
        self.tell(&format!("MAINPID={pid}\nREADY=1\nSTATUS=Serving"));
    }

    /// The end has begun.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Finishing what is under way");
    }

    /// Workers serve.
    pub fn is_served(&self) {
        // If this message is lost, others wait to be read.
        self.send("WATCHDOG=1", SendFlags::DONTWAIT);
    }

    /// Resolves when the next sign of life is due; never without a watchdog.
    pub async fn sign_is_due(&mut self) {
        let (Some(interval), Some(due)) = (self.interval, self.next_sign) else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(due).await;
        self.next_sign = Some(Instant::now() + interval);
    }

    fn tell(&self, message: &str) {
        self.send(message, SendFlags::empty());
    }

    fn send(&self, message: &str, flags: SendFlags) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen any more has no use for it.
            let _ = sendto(
                socket,
                message.as_bytes(),
                flags | SendFlags::NOSIGNAL,
                address,
            );
        }
    }
}

/// A line end would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], "; ")
}
