//! Keeps a certificate valid: waits until the certificate is due, gets another one, and starts
//! again. Errors go to the log with the time of the next attempt, and the current certificate stays
//! in use.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;

use crate::account::Authority;
use crate::certificate::Facts;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::host::{Host, Level};
use crate::issue::{Issuance, certificate_file};
use crate::machines::Machines;
use crate::schedule;
use crate::settings::CertificateRequest;

/// An attempt ends after this time at the latest.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20 * 60);
/// The time for which only one of several machines asks: an attempt, and a while to give the result to the
/// others.
const TURN: Duration = Duration::from_secs(25 * 60);
/// How often the others look for the result.
const LOOK_EACH: Duration = Duration::from_secs(10);
/// How many issuances run at the same time: issuers have limits.
const CONCURRENT: usize = 4;

static ATTEMPTS: Semaphore = Semaphore::const_new(CONCURRENT);

/// Keeps one certificate valid.
pub struct Renewal {
    pub authority: Arc<Authority>,
    pub request: CertificateRequest,
    pub host: Arc<dyn Host>,
    pub clock: Arc<dyn Clock>,
    /// Others that serve the same names.
    pub machines: Option<Arc<dyn Machines>>,
}

/// The next step for a certificate that is due.
enum RenewalStep {
    /// Another machine has got it.
    Use(Vec<u8>, Facts),
    /// Another machine asks the issuer.
    Wait,
    Issue,
}

/// When the certificate is renewed, as far as is known.
struct RenewalTimes {
    renewal: SystemTime,
    /// The time at which the issuer is asked again; `None` if it offers no renewal information.
    next_look: Option<SystemTime>,
}

impl Renewal {
    /// The certificate that is stored, if it is of use.
    fn stored(&self) -> Option<Facts> {
        Facts::of(&self.stored_pem()?, &self.request).ok()
    }

    fn stored_pem(&self) -> Option<Vec<u8>> {
        let file = certificate_file(&self.request);
        self.authority.store.read(&file)
    }

    /// Runs for ever.
    pub async fn run(self) {
        let mut current = self.stored();
        if let Some(facts) = &current {
            self.offer(facts).await;
        }
        loop {
            if let Some(facts) = &current {
                self.wait_until_due(facts).await;
            }
            current = Some(self.obtain(current).await);
        }
    }

    /// Gets a certificate, however long it takes.
    async fn obtain(&self, current: Option<Facts>) -> Facts {
        let mut failures = 0_u32;
        let mut is_logged = false;
        loop {
            match self.next_step(current.as_ref()).await {
                RenewalStep::Issue => {}
                RenewalStep::Use(pem, facts) => {
                    self.host.install(&self.request.file_stem, pem);
                    self.log(Level::Notice, "has come from another machine".to_owned());
                    return facts;
                }
                RenewalStep::Wait => {
                    if !std::mem::replace(&mut is_logged, true) {
                        let message = "is being issued for another machine, and is waited for";
                        self.log(Level::Notice, message.to_owned());
                    }
                    self.clock.sleep_until(self.clock.now() + LOOK_EACH).await;
                    continue;
                }
            }
            match self.attempt(&current).await {
                Ok((pem, facts)) => {
                    self.give(&pem, &facts).await;
                    self.host.install(&self.request.file_stem, pem);
                    let valid = facts.not_after.duration_since(self.clock.now());
                    self.log(
                        Level::Notice,
                        format!(
                            "has been issued, valid for {}",
                            schedule::words(valid.unwrap_or_default())
                        ),
                    );
                    return facts;
                }
                Err(failure) => {
                    failures = failures.saturating_add(1);
                    self.pause(&failure, failures, current.as_ref()).await;
                }
            }
        }
    }

    /// Without an answer of the other machines, this one does as if it were alone.
    async fn next_step(&self, current: Option<&Facts>) -> RenewalStep {
        let Some(machines) = &self.machines else {
            return RenewalStep::Issue;
        };
        let given = machines.certificate(&self.request).await;
        if let Ok(Some(pem)) = &given
            && let Ok(facts) = Facts::of(pem, &self.request)
            && current.is_none_or(|current| facts.not_after > current.not_after)
            && schedule::renewal(facts.not_before, facts.not_after) > self.clock.now()
        {
            let file = certificate_file(&self.request);
            if let Err(message) = self.authority.store.write(&file, pem) {
                self.log(Level::Warn, format!("is not stored: {message}"));
            }
            return RenewalStep::Use(pem.clone(), facts);
        }
        let turn = match given {
            Ok(_) => machines.turn(&self.request, TURN).await,
            Err(message) => Err(message),
        };
        match turn {
            Ok(true) => RenewalStep::Issue,
            Ok(false) => RenewalStep::Wait,
            Err(message) => {
                let message = format!("is asked for by this machine alone: {message}");
                self.log(Level::Warn, message);
                RenewalStep::Issue
            }
        }
    }

    /// Gives the other machines the certificate that is stored, if they have none that is valid for longer.
    async fn offer(&self, facts: &Facts) {
        let (Some(machines), Some(pem)) = (&self.machines, self.stored_pem()) else {
            return;
        };
        // If the machines cannot be asked, they are asked again when the certificate is due.
        let Ok(given) = machines.certificate(&self.request).await else {
            return;
        };
        let given = given.and_then(|pem| Facts::of(&pem, &self.request).ok());
        if given.is_none_or(|given| given.not_after < facts.not_after) {
            self.give(&pem, facts).await;
        }
    }

    async fn give(&self, pem: &[u8], facts: &Facts) {
        let Some(machines) = &self.machines else {
            return;
        };
        if let Err(message) = machines.give(&self.request, pem, facts.not_after).await {
            let message = format!("is not given to other machines: {message}");
            self.log(Level::Warn, message);
        }
    }

    async fn attempt(&self, current: &Option<Facts>) -> Result<(Vec<u8>, Facts), Failure> {
        let Ok(_permit) = ATTEMPTS.acquire().await else {
            return Err(Failure::new("the server stops"));
        };
        let issuance = Issuance {
            authority: &self.authority,
            request: &self.request,
            host: &self.host,
            replaces: current.as_ref().and_then(|facts| facts.identifier.clone()),
        };
        match tokio::time::timeout(ATTEMPT_TIMEOUT, issuance.run()).await {
            Ok(issued) => issued,
            Err(_) => Err(Failure::new("it took too long")),
        }
    }

    /// Logs the failure and waits.
    async fn pause(&self, failure: &Failure, failures: u32, current: Option<&Facts>) {
        let now = self.clock.now();
        let left = current.and_then(|facts| facts.not_after.duration_since(now).ok());
        let pause = schedule::pause(
            failures,
            left.unwrap_or_default(),
            failure.retry_after,
            chance(),
        );
        let state = match (current, left) {
            (None, _) => "there is none yet".to_owned(),
            (Some(_), None) => "the one in use is out of date".to_owned(),
            (Some(_), Some(left)) => {
                format!("the one in use is valid for {}", schedule::words(left))
            }
        };
        let is_late = |facts: &Facts| schedule::is_late(facts.not_before, facts.not_after, now);
        let level = match current {
            Some(facts) if !is_late(facts) => Level::Warn,
            _ => Level::Error,
        };
        self.log(
            level,
            format!(
                "could not be issued: {}; {state}; next attempt in {}",
                failure.message,
                schedule::words(pause)
            ),
        );
        self.clock.sleep_until(now + pause).await;
    }

    async fn wait_until_due(&self, facts: &Facts) {
        // One moment for each certificate, so that looking again does not move it.
        let chance = chance();
        loop {
            let due = self.due(facts, chance).await;
            let now = self.clock.now();
            if due.renewal <= now {
                return;
            }
            let next = due.next_look.unwrap_or(due.renewal);
            self.clock.sleep_until(next.min(due.renewal)).await;
        }
    }

    /// Returns the times that the issuer suggests, else the usual ones.
    async fn due(&self, facts: &Facts, chance: f64) -> RenewalTimes {
        let usual = RenewalTimes {
            renewal: schedule::renewal(facts.not_before, facts.not_after),
            next_look: None,
        };
        // An issuer that cannot be asked is no reason to wait longer than usual.
        let Some(identifier) = &facts.identifier else {
            return usual;
        };
        let now = self.clock.now();
        let again = Some(now + schedule::next_look(Duration::ZERO));
        let Ok(account) = self.authority.account().await else {
            return RenewalTimes {
                next_look: again,
                ..usual
            };
        };
        match account.renewal_info(identifier).await {
            Ok((info, look_again)) => {
                let window = info.suggested_window;
                let (start, end) = (SystemTime::from(window.start), SystemTime::from(window.end));
                RenewalTimes {
                    renewal: schedule::within(start, end, chance),
                    next_look: Some(now + schedule::next_look(look_again)),
                }
            }
            Err(instant_acme::Error::Unsupported(_)) => usual,
            Err(_) => RenewalTimes {
                next_look: again,
                ..usual
            },
        }
    }

    fn log(&self, level: Level, message: String) {
        let names = self.request.names.join(" ");
        let issuer = &self.authority.issuer.name;
        let message = format!("the certificate for {names} by issuer \"{issuer}\" {message}");
        self.host.log(level, message);
    }
}

/// At least nought and below one.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without random numbers there is no TLS either.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
