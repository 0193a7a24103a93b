//! Access control: `allow` and `deny`, `auth_basic`, `auth_request`, in this order, combined by
//! `satisfy`.
//!
//! With `satisfy all` the first refusal counts; with `any` the first consent, and where no check
//! consents, 401 is preferred to 403: the client may still find a password. Each check may also
//! have no opinion.

use bytes::Bytes;
use http_semantics::Fields;
use site::{AuthRequest, LogLevel, Satisfy, SetTarget};
use transport::client::{ClientSide, unless_gone};

use crate::access::{allow_deny, auth_basic};
use crate::exchange::handled::StageEnd;
use crate::exchange::request::Request;
use crate::exchange::subrequest;
use crate::exchange::variable;
use crate::log::error_log;
use crate::route::rewrite;

/// The verdict of one check.
enum Verdict {
    NoOpinion,
    Agreed,
    /// 401 or 403, and the fields that go along.
    Refused(u16, Fields),
    /// The check itself failed: that ends the request whatever the other checks decide.
    Failed(StageEnd),
}

/// Asks the checks; `None`: the client may come in.
pub async fn check(request: &mut Request, client: &ClientSide) -> Option<StageEnd> {
    let settings = request.settings_held();
    let is_any = settings.satisfy == Satisfy::Any;
    let mut refusal: Option<(u16, Fields)> = None;
    for stage in 0..3 {
        let verdict = match stage {
            0 => by_address(request),
            1 => by_password(request),
            _ => match &settings.auth_request {
                Some(auth) if !request.is_dry() => {
                    let mut set = Vec::new();
                    let verdict = by_subrequest(request, auth, client, &mut set).await;
                    for (target, value) in set {
                        rewrite::assign(request, target, value);
                    }
                    verdict
                }
                _ => Verdict::NoOpinion,
            },
        };
        match verdict {
            Verdict::NoOpinion => {}
            Verdict::Agreed if is_any => return None,
            Verdict::Agreed => {}
            Verdict::Failed(handled) => return Some(handled),
            Verdict::Refused(status, fields) => {
                if refusal.as_ref().is_none_or(|(before, _)| *before != 401) {
                    refusal = Some((status, fields));
                }
                if !is_any {
                    break;
                }
            }
        }
    }
    let (status, fields) = refusal?;
    match status {
        401 if !settings.limits.auth_delay.is_zero() => {
            tokio::time::sleep(settings.limits.auth_delay).await;
        }
        403 if !allow_deny::is_allowed(request) => {
            let (separator, why) = match &*settings.deny_reason {
                "" => ("", ""),
                why => (": ", why),
            };
            let message = format_args!("access forbidden by rule{separator}{why}");
            error_log::refusal(request, LogLevel::Error, message);
        }
        _ => {}
    }
    Some(StageEnd::StatusWith(status, fields))
}

fn by_address(request: &Request) -> Verdict {
    match allow_deny::decision(request) {
        None => Verdict::NoOpinion,
        Some(true) => Verdict::Agreed,
        Some(false) => Verdict::Refused(403, Fields::new()),
    }
}

fn by_password(request: &Request) -> Verdict {
    if request.settings().auth.is_none() {
        return Verdict::NoOpinion;
    }
    match auth_basic::check(request) {
        auth_basic::Verdict::Pass => Verdict::Agreed,
        auth_basic::Verdict::Challenge { realm } => {
            let mut value = b"Basic realm=\"".to_vec();
            value.extend_from_slice(&realm);
            value.push(b'"');
            let mut fields = Fields::new();
            fields.append("WWW-Authenticate", Bytes::from(value));
            Verdict::Refused(401, fields)
        }
        auth_basic::Verdict::Forbidden => Verdict::Refused(403, Fields::new()),
        auth_basic::Verdict::Failed(status) => Verdict::Failed(StageEnd::Status(status)),
    }
}

/// Asks the path that `auth_request` names
/// (<https://nginx.org/en/docs/http/ngx_http_auth_request_module.html>). `set` gets the variables that are set by
/// its answer.
async fn by_subrequest<'a>(
    request: &Request,
    auth: &'a AuthRequest,
    client: &ClientSide,
    set: &mut Vec<(&'a SetTarget, Vec<u8>)>,
) -> Verdict {
    let mut asked = subrequest::to(request, &auth.target, b"");
    asked.route.make_get();
    let answer = subrequest::run(&mut asked);
    if unless_gone(client.gone(true), answer).await.is_none() {
        return Verdict::Failed(StageEnd::ClientGone);
    }
    // nginx's subrequests share their variables with the request, so that values that the asked
    // location `set` can be used here.
    let slots = asked.values.get_mut().slots.clone();
    request.values.write(|values| values.slots = slots);
    for (target, value) in &auth.set {
        let value = variable::evaluate(&asked, value);
        rewrite::assign(&mut asked, target, value.clone());
        set.push((target, value));
    }
    match asked.delivery.status {
        200..=299 => Verdict::Agreed,
        401 => {
            let mut fields = Fields::new();
            let (reply, carried) = (&asked.delivery.reply, &asked.delivery.carried);
            let head = reply.iter().flat_map(|it| it.head.fields.as_slice());
            let of_error = carried.iter().flat_map(|it| it.error_fields.as_slice());
            for (name, value) in head.chain(of_error) {
                if name.eq_ignore_ascii_case(b"www-authenticate") {
                    fields.append(name.clone(), value.clone());
                }
            }
            Verdict::Refused(401, fields)
        }
        403 => Verdict::Refused(403, Fields::new()),
        status => {
            error_log::request(
                request,
                LogLevel::Error,
                format_args!("auth request unexpected status: {status}"),
            );
            Verdict::Failed(StageEnd::Status(500))
        }
    }
}
