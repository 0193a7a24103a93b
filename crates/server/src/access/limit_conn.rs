//! `limit_conn`: a bound on the requests under way for each key
//! (<https://nginx.org/en/docs/http/ngx_http_limit_conn_module.html>).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use site::Builtin as B;

use crate::access::limit_key::key_in_zone;
use crate::exchange::own_visit::{ForeseenLimit, LimitVerdict};
use crate::exchange::request::Request;
use crate::exchange::value::put_unless_empty;
use crate::exchange::variable;
use crate::exchange::variable_table::Value::Request as Of;
use crate::exchange::variable_table::Variables;
use crate::log::error_log;
use live_state::limit_conn::{ConnectionRefusal, Zone};

pub const VARIABLES: Variables = &[(
    B::LimitConnStatus,
    Of(|request, out| put_unless_empty(status(request), out)),
)];

/// Longest key that is counted; nginx's bound.
const MAX_KEY_BYTES: usize = 255;

/// Counts the request against the limits of its location, once in its life.
///
/// # Errors
/// The status to refuse it with.
pub fn check(request: &Request, zones: &[Arc<Zone>]) -> Result<(), u16> {
    if !status(request).is_empty() {
        return Ok(());
    }
    let settings = request.settings();
    let reaction = settings.limits.on_connections;
    for limit in &settings.limits.connections {
        let Some(zone) = zones.get(limit.zone.0) else {
            continue;
        };
        let Some(key) = key_in_zone(request, &zone.key, &zone.name, MAX_KEY_BYTES) else {
            continue;
        };
        match zone.enter(key, limit.connections) {
            Ok(guard) => request.values.write(|values| {
                values.limits.conn_status = "PASSED";
                values.limits.guards.push(guard);
            }),
            Err(refused) => {
                if refused == ConnectionRefusal::Limit {
                    let dry_run = if reaction.dry_run { ", dry run," } else { "" };
                    error_log::request(
                        request,
                        reaction.log_level,
                        format_args!("limiting connections{dry_run} by zone \"{}\"", zone.name),
                    );
                }
                request.values.write(|values| {
                    values.limits.guards.clear();
                    values.limits.conn_status = match reaction.dry_run {
                        true => "REJECTED_DRY_RUN",
                        false => "REJECTED",
                    };
                });
                if reaction.dry_run {
                    return Ok(());
                }
                request.configuration.live.stats.refused[1].fetch_add(1, Relaxed);
                return Err(reaction.status);
            }
        }
    }
    Ok(())
}

/// Returns the decision that was noted; empty without one.
fn status(request: &Request) -> &'static str {
    request.values.read(|values| values.limits.conn_status)
}

/// Foresees the limits' decisions about the request. Nothing is counted and nothing
/// logged.
pub fn foresee(request: &Request, zones: &[Arc<Zone>]) -> Vec<ForeseenLimit> {
    let settings = request.settings();
    let reaction = settings.limits.on_connections;
    let mut foreseen = Vec::new();
    for limit in &settings.limits.connections {
        let Some(zone) = zones.get(limit.zone.0) else {
            continue;
        };
        let key = variable::evaluate(request, &zone.key);
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            continue;
        }
        foreseen.push(ForeseenLimit {
            directive: "limit_conn",
            zone: zone.name.clone(),
            says: match zone.is_full_for(&key, limit.connections) {
                true => LimitVerdict::Refuse(reaction.status),
                false => LimitVerdict::Pass,
            },
            is_dry_run: reaction.dry_run,
        });
    }
    foreseen
}
