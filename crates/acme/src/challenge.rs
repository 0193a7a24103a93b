//! Proves control of a name (RFC 8555 §8): presents the response to a challenge through the
//! [`Host`] or a command, and withdraws it afterwards.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use child_process::Child;
use instant_acme::{ChallengeType, KeyAuthorization};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};

use crate::certificate::{CertificateError, joined};
use crate::failure::Failure;
use crate::host::{ChallengeAnswer, Host, Level};
use crate::settings::Challenge;

/// The longest time of a command of DNS-01. It may wait until all servers of the domain know the
/// record.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

impl Challenge {
    pub(crate) fn kind(&self) -> ChallengeType {
        match self {
            Challenge::Http01 => ChallengeType::Http01,
            Challenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
            Challenge::Dns01 { .. } => ChallengeType::Dns01,
        }
    }
}

/// A challenge answer that is presented. Dropping this value withdraws the answer.
pub struct PresentedChallenge {
    host: Arc<dyn Host>,
    what: Presentation,
}

enum Presentation {
    Answer(ChallengeAnswer),
    Record(Record),
}

/// A TXT record that a command has set.
struct Record {
    command: std::path::PathBuf,
    name: String,
    value: String,
}

impl PresentedChallenge {
    /// Presents the answer to `challenge` for `name`, and waits until it is there.
    pub async fn new(
        host: &Arc<dyn Host>,
        challenge: &Challenge,
        name: &str,
        token: &str,
        authorization: &KeyAuthorization,
    ) -> Result<PresentedChallenge, Failure> {
        let what = match challenge {
            Challenge::Http01 => Presentation::Answer(ChallengeAnswer::Http {
                token: token.to_owned(),
                content: authorization.as_str().to_owned(),
            }),
            Challenge::TlsAlpn01 => Presentation::Answer(ChallengeAnswer::Tls {
                name: name.to_owned(),
                pem: validation_certificate(name, authorization).map_err(Failure::new)?,
            }),
            Challenge::Dns01 { command } => Presentation::Record(Record {
                command: command.clone(),
                name: format!("_acme-challenge.{name}"),
                value: authorization.dns_value(),
            }),
        };
        // First the value that goes with the record again, then the record itself.
        let presented = PresentedChallenge {
            host: host.clone(),
            what,
        };
        match &presented.what {
            Presentation::Answer(answer) => host.present(answer.clone()).await,
            Presentation::Record(record) => record.run("add").await?,
        }
        Ok(presented)
    }
}

impl Drop for PresentedChallenge {
    fn drop(&mut self) {
        match &self.what {
            Presentation::Answer(answer) => self.host.withdraw(answer),
            Presentation::Record(Record {
                command,
                name,
                value,
            }) => {
                let record = Record {
                    command: command.clone(),
                    name: name.clone(),
                    value: value.clone(),
                };
                let host = self.host.clone();
                let Ok(runtime) = tokio::runtime::Handle::try_current() else {
                    return;
                };
                runtime.spawn(async move {
                    if let Err(failure) = record.run("remove").await {
                        host.log(Level::Warn, failure.message);
                    }
                });
            }
        }
    }
}

impl Record {
    /// Runs the command: `COMMAND add|remove NAME VALUE`.
    async fn run(&self, verb: &str) -> Result<(), Failure> {
        let shown = self.command.display();
        let mut command = Command::new(Path::new(&self.command));
        command
            .args([verb, &self.name, &self.value])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Child::spawn(&mut command).map(RunningCommand);
        let not_run = |error| Failure::new(format!("{shown} cannot be run: {error}"));
        let mut child = started.map_err(not_run)?;
        let failed = match tokio::time::timeout(COMMAND_TIMEOUT, child.0.wait()).await {
            Ok(Ok(status)) if status.success() => return Ok(()),
            Ok(Ok(status)) => format!("{shown} {verb} {} failed: {status}", self.name),
            Ok(Err(error)) => return Err(not_run(error)),
            Err(_) => format!("{shown} {verb} {} took too long", self.name),
        };
        Err(Failure::new(failed))
    }
}

/// A command, which ends with the attempt that it belongs to.
struct RunningCommand(Child);

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.start_kill();
    }
}

/// The certificate that TLS-ALPN-01 wants to see (RFC 8737 §3).
fn validation_certificate(
    name: &str,
    authorization: &KeyAuthorization,
) -> Result<String, CertificateError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    let digest = authorization.digest();
    let extension = CustomExtension::new_acme_identifier(digest.as_ref());
    params.custom_extensions = vec![extension];
    let (key, chain) = (key.serialize_pem(), params.self_signed(&key)?.pem());
    Ok(String::from_utf8_lossy(&joined(&key, &chain)).into_owned())
}
