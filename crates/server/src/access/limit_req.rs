//! `limit_req`: a bound on the rate of requests
//! (<https://nginx.org/en/docs/http/ngx_http_limit_req_module.html>).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use site::{Builtin as B, LogLevel};

use crate::access::limit_key::key_in_zone;
use crate::exchange::own_visit::{ForeseenLimit, LimitVerdict};
use crate::exchange::request::Request;
use crate::exchange::value::put_unless_empty;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::log::error_log;
use live_state::limit_req::{AppliedLimit, Outcome, Zone, judge};

pub const VARIABLES: Variables = &[(
    B::LimitReqStatus,
    Of(|request, out| put_unless_empty(status(request), out)),
)];

/// Longest key that is counted; nginx's bound.
const MAX_KEY_BYTES: usize = 65_535;

/// The verdict of the limits about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Go on after this delay.
    Delay(Duration),
    Reject(u16),
}

/// Asks the limits of the request's location, once in a request's life.
pub fn check(request: &Request, zones: &[Arc<Zone>]) -> Verdict {
    if !status(request).is_empty() {
        return Verdict::Pass;
    }
    let settings = request.settings();
    let reaction = settings.limits.on_requests;
    let mut applied = Vec::with_capacity(settings.limits.requests.len());
    for limit in &settings.limits.requests {
        let Some(zone) = zones.get(limit.zone.0) else {
            continue;
        };
        if let Some(key) = key_in_zone(request, &zone.key, &zone.name, MAX_KEY_BYTES) {
            applied.push(AppliedLimit { limit, zone, key });
        }
    }
    if applied.is_empty() {
        return Verdict::Pass;
    }
    let dry_run = if reaction.dry_run { ", dry run" } else { "" };
    match judge(&applied, clock::now()) {
        Outcome::Rejected { by, excess } => {
            let name = applied.get(by).map_or("", |applied| &applied.zone.name);
            match excess {
                Some(excess) => error_log::request(
                    request,
                    reaction.log_level,
                    format_args!(
                        "limiting requests{dry_run}, excess: {}.{:03} by zone \"{name}\"",
                        excess / 1000,
                        excess % 1000
                    ),
                ),
                None => error_log::request(
                    request,
                    LogLevel::Alert,
                    format_args!("could not allocate node in limit_req zone \"{name}\""),
                ),
            }
            if reaction.dry_run {
                note(request, "REJECTED_DRY_RUN");
                return Verdict::Pass;
            }
            note(request, "REJECTED");
            request.configuration.live.stats.refused[0].fetch_add(1, Relaxed);
            Verdict::Reject(reaction.status)
        }
        Outcome::Passed { delay_ms: 0, .. } => {
            note(request, "PASSED");
            Verdict::Pass
        }
        Outcome::Passed {
            delay_ms,
            excess,
            by,
        } => {
            let name = applied.get(by).map_or("", |applied| &applied.zone.name);
            error_log::request(
                request,
                less_severe(reaction.log_level),
                format_args!(
                    "delaying request{dry_run}, excess: {}.{:03}, by zone \"{name}\"",
                    excess / 1000,
                    excess % 1000
                ),
            );
            if reaction.dry_run {
                note(request, "DELAYED_DRY_RUN");
                return Verdict::Pass;
            }
            note(request, "DELAYED");
            Verdict::Delay(Duration::from_millis(delay_ms))
        }
    }
}

/// Returns the decision that was noted; empty without one.
fn status(request: &Request) -> &'static str {
    request.values.read(|values| values.limits.req_status)
}

fn note(request: &Request, status: &'static str) {
    request
        .values
        .write(|values| values.limits.req_status = status);
}

/// Foresees each limit's decision about the request. Nothing is counted and nothing logged.
pub fn foresee(request: &Request, zones: &[Arc<Zone>]) -> Vec<ForeseenLimit> {
    let settings = request.settings();
    let reaction = settings.limits.on_requests;
    let mut foreseen = Vec::new();
    for limit in &settings.limits.requests {
        let Some(zone) = zones.get(limit.zone.0) else {
            continue;
        };
        let key = variable::evaluate(request, &zone.key);
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            continue;
        }
        foreseen.push(ForeseenLimit {
            directive: "limit_req",
            zone: zone.name.clone(),
            says: match zone.foresee(&key, clock::now(), limit) {
                None => LimitVerdict::Refuse(reaction.status),
                Some(0) => LimitVerdict::Pass,
                Some(delay_ms) => LimitVerdict::Delay(Duration::from_millis(delay_ms)),
            },
            is_dry_run: reaction.dry_run,
        });
    }
    foreseen
}

/// Delays are logged one level below rejections.
fn less_severe(level: LogLevel) -> LogLevel {
    match level {
        LogLevel::Emerg => LogLevel::Alert,
        LogLevel::Alert => LogLevel::Crit,
        LogLevel::Crit => LogLevel::Error,
        LogLevel::Error => LogLevel::Warn,
        LogLevel::Warn => LogLevel::Notice,
        LogLevel::Notice | LogLevel::Info => LogLevel::Info,
        LogLevel::Debug => LogLevel::Debug,
    }
}
