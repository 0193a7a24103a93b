//! Variables where there is no request: `require` of a `match` evaluates those of a request with
//! this answer from its upstream, and a certificate those of a client in its handshake.

use std::sync::Arc;

use site::{MatchRules, ServerId};
use transport::facts::{ConnectionFacts, LocalAddress, TlsFacts};
use transport::service::ReceivedHead;

use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::configuration_handle::ConfigurationHandle;
use crate::exchange::request::Request;
use crate::exchange::variable;
use upstream_fetch::Try;
use upstream_fetch::health::{FailedCheck, HealthAnswer};

/// `require`: variables as a request would see them that had this answer from
/// its upstream. There is no client, so most are empty.
pub fn require(
    configuration: &Arc<ActiveConfiguration>,
    rules: &MatchRules,
    answer: &HealthAnswer,
) -> Result<(), FailedCheck> {
    let Some(request) = stand_in(configuration, answer) else {
        return Err(FailedCheck::NotEvaluated);
    };
    for template in &rules.require {
        let value = variable::evaluate(&request, template);
        if value.is_empty() || value == b"0" {
            return Err(FailedCheck::EmptyVariable);
        }
    }
    Ok(())
}

/// A request in the place of one that was not received whole.
fn stand_in(
    configuration: &Arc<ActiveConfiguration>,
    answer: &HealthAnswer,
) -> Option<Box<Request>> {
    let handle = ConfigurationHandle::new(configuration.clone());
    let mut request = made(handle, ServerId(0), None)?;
    request.delivery.status = answer.status;
    let mut trace = request.trace().lock();
    trace.tries.push(Try::default());
    trace.head(answer.status);
    trace.keep_fields(&answer.fields);
    drop(trace);
    Some(request)
}

/// A request in the place of those of a client whose handshake has only begun, and which asks for
/// this name. Nothing else is known of the client.
pub fn in_handshake(
    configuration: &ConfigurationHandle,
    server: ServerId,
    name: Option<String>,
) -> Option<Box<Request>> {
    let tls = Box::new(TlsFacts::of_name(name));
    made(configuration.clone(), server, Some(tls))
}

fn made(
    configuration: ConfigurationHandle,
    server: ServerId,
    tls: Option<Box<TlsFacts>>,
) -> Option<Box<Request>> {
    let text = "GET / HTTP/1.0\r\n\r\n".to_owned();
    let head = http1::parse_head(text, &http1::HeadLimits::default()).ok()?;
    if configuration.site.http.servers.is_empty() {
        return None;
    }
    let facts = ConnectionFacts {
        serial: 0,
        peer: None,
        local: LocalAddress::Unix(std::path::PathBuf::new()),
        scheme: match tls {
            Some(_) => "https",
            None => "http",
        },
        accepted_at: 0,
        proxy: None,
        tls,
        lacks_tls: false,
    };
    let now = clock::now();
    let received = ReceivedHead::made(facts, head, now);
    Some(Request::new(configuration, received, None, server, now))
}
