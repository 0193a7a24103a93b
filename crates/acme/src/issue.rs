//! One issuance (RFC 8555 §7.4):
//!
//! ```text
//! account ─► order ─► challenges ─► ready ─► finalize ─► certificate ─► stored
//!              ▲                               │
//!              └── STEM.order: URL and key ────┘
//! ```
//!
//! Before finalize, the URL of the order and the key are stored: after a restart the certificate is
//! fetched by that order, and no second one is ordered.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, Identifier, NewOrder, Order, OrderStatus,
    RetryPolicy,
};

use crate::account::Authority;
use crate::certificate::{Facts, joined, new_key, signing_request};
use crate::challenge::PresentedChallenge;
use crate::failure::{self, Failure};
use crate::host::{Host, Level};
use crate::settings::CertificateRequest;

/// How the issuer is asked whether it is done.
const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(400))
    .backoff(1.5)
    .timeout(Duration::from_secs(180));

/// One attempt to get a certificate.
pub struct Issuance<'a> {
    pub authority: &'a Authority,
    pub request: &'a CertificateRequest,
    pub host: &'a Arc<dyn Host>,
    /// The certificate that is replaced (RFC 9773 §5).
    pub replaces: Option<CertificateIdentifier<'static>>,
}

/// An order whose certificate may have been made.
struct PendingOrder {
    url: String,
    key_pem: String,
}

impl Issuance<'_> {
    /// Gets the certificate and stores it. Gives chain and key as PEM.
    ///
    /// # Errors
    /// The reason why the issuance failed.
    pub async fn run(&self) -> Result<(Vec<u8>, Facts), Failure> {
        // A `Retry-After` sent for an earlier attempt is over.
        let _ = self.authority.client.take_retry_after();
        let issued = self.issue().await;
        issued.map_err(|mut failure| {
            failure.retry_after = self.authority.client.take_retry_after();
            failure
        })
    }

    async fn issue(&self) -> Result<(Vec<u8>, Facts), Failure> {
        let account = self.authority.account().await?;
        if let Some(pending) = self.pending() {
            match self.resume(&account, &pending).await {
                Ok(issued) => return Ok(issued),
                Err(failure) => {
                    let message = format!(
                        "the unfinished order for {} is of no use: {}",
                        self.request.names.join(" "),
                        failure.message
                    );
                    self.host.log(Level::Notice, message);
                    self.authority.store.remove(&self.pending_file());
                }
            }
        }
        let mut order = self.new_order(&account).await?;
        self.authorize(&mut order).await?;
        let key_pem = new_key(self.request.key).map_err(Failure::new)?;
        let pending = PendingOrder {
            url: order.url().to_owned(),
            key_pem,
        };
        let text = format!("{}\n{}", pending.url, pending.key_pem);
        self.write(&self.pending_file(), text.as_bytes())?;
        self.complete(order, &pending).await
    }

    async fn resume(
        &self,
        account: &Account,
        pending: &PendingOrder,
    ) -> Result<(Vec<u8>, Facts), Failure> {
        let order = account.order(pending.url.clone()).await?;
        self.complete(order, pending).await
    }

    async fn new_order(&self, account: &Account) -> Result<Order, Failure> {
        let names = self.request.names.iter();
        let identifiers: Vec<Identifier> = names
            .map(|name| match name.parse() {
                Ok(address) => Identifier::Ip(address),
                Err(_) => Identifier::Dns(name.clone()),
            })
            .collect();
        let profile = match &self.authority.issuer.profile {
            Some(profile) if account.profiles().any(|known| known.name == profile.name) => {
                Some(&profile.name)
            }
            Some(profile) if profile.is_required => {
                let message = format!("the issuer has no profile \"{}\"", profile.name);
                return Err(Failure::new(message));
            }
            _ => None,
        };
        let wanted = || {
            let order = NewOrder::new(&identifiers);
            match profile {
                Some(name) => order.profile(name),
                None => order,
            }
        };
        if let Some(replaced) = &self.replaces {
            let replacing = wanted().replaces(replaced.clone());
            // It may have been replaced already, or be unknown there: that is no obstacle.
            if let Ok(order) = account.new_order(&replacing).await {
                return Ok(order);
            }
        }
        match account.new_order(&wanted()).await {
            Ok(order) => Ok(order),
            Err(error) => {
                // An account that was deactivated, or that the issuer has forgotten.
                if matches!(
                    failure::kind(&error),
                    Some("unauthorized" | "accountDoesNotExist")
                ) {
                    self.authority.forget_account().await;
                }
                Err(error.into())
            }
        }
    }

    /// Shows that all names are ours.
    async fn authorize(&self, order: &mut Order) -> Result<(), Failure> {
        let challenge = &self.authority.issuer.challenge;
        // They are there until the order is ready.
        let mut presented = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            match authorization.status {
                AuthorizationStatus::Pending => {}
                AuthorizationStatus::Valid => continue,
                other => {
                    let message = format!("an authorization has the status {other:?}");
                    return Err(Failure::new(message));
                }
            }
            let name = match authorization.identifier().identifier {
                Identifier::Dns(name) => name.clone(),
                Identifier::Ip(address) => address.to_string(),
                _ => return Err(Failure::new("an authorization is for something else")),
            };
            let Some(mut offered) = authorization.challenge(challenge.kind()) else {
                let message = format!("the issuer does not offer this challenge for {name}");
                return Err(Failure::new(message));
            };
            let token = offered.token.clone();
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            // The name becomes an argument, the token a path (RFC 8555 §8.3).
            if !self.is_asked_for(&name) || token.is_empty() || !token.bytes().all(is_token) {
                return Err(Failure::new("the issuer asks for something else"));
            }
            let proof = offered.key_authorization();
            let there = PresentedChallenge::new(self.host, challenge, &name, &token, &proof);
            presented.push(there.await?);
            offered.set_ready().await?;
        }
        if order.state().status == OrderStatus::Pending {
            let polled = order.poll_ready(&POLLING).await;
            let is_invalid = matches!(&polled, Ok(OrderStatus::Invalid));
            if is_invalid || failure::kind_of(&polled).is_some() {
                return Err(reason(order, polled.err()).await);
            }
            polled?;
        }
        Ok(())
    }

    fn is_asked_for(&self, name: &str) -> bool {
        let mut names = self.request.names.iter();
        names.any(|asked| asked.strip_prefix("*.").unwrap_or(asked) == name)
    }

    /// From an order that is ready, or further, to the certificate.
    async fn complete(
        &self,
        mut order: Order,
        pending: &PendingOrder,
    ) -> Result<(Vec<u8>, Facts), Failure> {
        if order.state().status == OrderStatus::Ready {
            let request = signing_request(&self.request.names, &pending.key_pem);
            let request = request.map_err(Failure::new)?;
            order.finalize_csr(&request).await?;
        }
        let chain = match order.state().status {
            OrderStatus::Valid => order.certificate().await?.unwrap_or_default(),
            OrderStatus::Processing => order.poll_certificate(&POLLING).await?,
            other => return Err(Failure::new(format!("the order has the status {other:?}"))),
        };
        let pem = joined(&pending.key_pem, &chain);
        let facts = Facts::of(&pem, self.request);
        let facts = facts.map_err(|error| {
            Failure::new(format!("the issuer sent a certificate of no use: {error}"))
        })?;
        self.write(&certificate_file(self.request), &pem)?;
        self.authority.store.remove(&self.pending_file());
        Ok((pem, facts))
    }

    fn pending(&self) -> Option<PendingOrder> {
        let bytes = self.authority.store.read(&self.pending_file())?;
        let text = String::from_utf8(bytes).ok()?;
        let (url, key_pem) = text.split_once('\n')?;
        Some(PendingOrder {
            url: url.to_owned(),
            key_pem: key_pem.to_owned(),
        })
    }

    fn pending_file(&self) -> String {
        format!("{}.order", self.request.file_stem)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.authority.store.write(name, bytes);
        written.map_err(Failure::new)
    }
}

/// Returns the name of the file in which a certificate is kept with its key.
pub fn certificate_file(request: &CertificateRequest) -> String {
    format!("{}.pem", request.file_stem)
}

/// Returns the issuer's reasons for challenges that failed.
async fn reason(order: &mut Order, error: Option<instant_acme::Error>) -> Failure {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let Ok(mut authorization) = authorization else {
            continue;
        };
        let name = authorization.identifier().to_string();
        let Ok(state) = authorization.refresh().await else {
            continue;
        };
        let failed = state.challenges.iter().find_map(|it| it.error.clone());
        if let Some(problem) = failed {
            let failure = Failure::from(instant_acme::Error::Api(problem));
            return Failure::new(format!("{name}: {}", failure.message));
        }
    }
    match error {
        Some(error) => error.into(),
        None => Failure::new("the order became invalid"),
    }
}
