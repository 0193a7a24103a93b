//! A request's way: server, location, rewriting, limits, access, content; and
//! round again for internal redirects and error pages.
//!
//! ```text
//!            ┌────────────── internal redirect, error page ──────────────┐
//!            ▼                                                            │
//! server rewrite ─► locate ─► rewrite ─► limits ─► access ─► content ─► Handled ─► Reply
//!                     ▲          │
//!                     └─ `last` ─┘
//! ```

use std::sync::Arc;

use bytes::Bytes;
use http1::Fields;
use site::{Content, ErrorAnswer, LogLevel, Pass, RewriteOp, Server, TryFallback, TryFiles};

use crate::access::{control, limit_conn, limit_req, real_ip};
use crate::base::ready_or_pending::ReadyOrPending;
use crate::content::mirror;
use crate::content::slice;
use crate::content::through_cache::policy;
use crate::content::{files, pass};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::captures::Failures;
use crate::exchange::error_page::ErrorPage;
use crate::exchange::handled::Handled;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::slicing::Slicing;
use crate::exchange::variable;
use crate::log::error_log;
use crate::respond;
use crate::route;
use crate::route::Located;
use crate::route::pattern;
use crate::route::rewrite;
use crate::route::rewrite::Rewritten;
use crate::transport::body::RequestBody;
use crate::transport::client::{ClientSide, unless_gone};

/// How often `rewrite ... last` may start the search for a location over.
const MAX_REWRITE_CYCLES: usize = 10;

/// Where a round begins.
enum Entry {
    /// With the server's own rewrite program.
    Server,
    /// In a location that was named.
    Location(site::LocationId),
}

/// Serves `request`, whose configuration `configuration` is; `None` when nothing is to be sent.
pub fn serve<'a>(
    request: &'a mut Request,
    client: &'a mut ClientSide,
    configuration: &'a ActiveConfiguration,
) -> ReadyOrPending<'a, Option<Box<Reply>>> {
    let settled = match begin(request, client, configuration, Entry::Server) {
        Round::Content(Begun::Handled(handled)) => settle(request, handled),
        round => {
            return ReadyOrPending::pending(async move {
                let handled = finish(request, round, client, configuration).await;
                let settled = settle(request, handled);
                walk(request, client, configuration, settled).await
            });
        }
    };
    match settled {
        Settled::Reply(reply) => ReadyOrPending::Ready(Some(reply)),
        Settled::Nothing => ReadyOrPending::Ready(None),
        again => ReadyOrPending::pending(walk(request, client, configuration, again)),
    }
}

/// As [`serve`] for a request that the server makes itself, for as long as it takes.
pub async fn serve_internal(request: &mut Request) -> Option<Box<Reply>> {
    let configuration = request.configuration.clone();
    let mut nobody = ClientSide::none();
    serve(request, &mut nobody, &configuration).end().await
}

/// As [`serve`] for a request that is wrong in itself: straight to its error page.
pub async fn refuse(
    request: &mut Request,
    client: &mut ClientSide,
    configuration: &ActiveConfiguration,
    status: u16,
) -> Option<Box<Reply>> {
    let settled = settle(request, Handled::Status(status));
    walk(request, client, configuration, settled).await
}

/// Round after round, until there is a reply or nobody to reply to.
async fn walk(
    request: &mut Request,
    client: &mut ClientSide,
    configuration: &ActiveConfiguration,
    mut settled: Settled,
) -> Option<Box<Reply>> {
    loop {
        match settled {
            Settled::Reply(reply) => return Some(reply),
            Settled::Nothing => return None,
            Settled::Again(entry) => {
                let round = begin(request, client, configuration, entry);
                let handled = finish(request, round, client, configuration).await;
                settled = settle(request, handled);
            }
        }
    }
}

enum Settled {
    Reply(Box<Reply>),
    Again(Entry),
    Nothing,
}

/// Turns what came out of a round into a reply or the next round.
fn settle(request: &mut Request, handled: Handled) -> Settled {
    if pattern::has_failed(request) {
        return refuse_for_pattern(request);
    }
    match handled {
        Handled::Reply(reply) => Settled::Reply(reply),
        Handled::ClientGone => {
            request.status = 499;
            Settled::Nothing
        }
        Handled::Close => {
            request.status = 444;
            Settled::Nothing
        }
        Handled::Redirect { path, args } => {
            if !request.may_redirect() {
                error_log::request(
                    request,
                    LogLevel::Error,
                    format_args!("rewrite or internal redirection cycle"),
                );
                return broken(request);
            }
            request.path = path;
            request.args = args;
            begin_internal(request);
            Settled::Again(Entry::Server)
        }
        Handled::Named(name) => named(request, &name),
        Handled::Status(status) => error(request, status, Fields::new()),
        Handled::StatusWith(status, fields) => error(request, status, fields),
    }
}

/// A pattern gave up on the request, so what came out of the round may not be what the
/// configuration says. Once the error page is asked for, after that there is none.
#[cold]
fn refuse_for_pattern(request: &mut Request) -> Settled {
    let failures = std::mem::replace(&mut request.extras.failures, Failures::Refused);
    match failures {
        Failures::FoundAgain => broken(request),
        _ => error(request, 500, Fields::new()),
    }
}

fn begin_internal(request: &mut Request) {
    request.become_internal();
    request.extras.forget_path_info();
    request.path_changed = false;
    request.slicing = Slicing::None;
    request.target_changed = true;
    request.enter(Server::ROOT);
}

fn named(request: &mut Request, name: &[u8]) -> Settled {
    let location = request.server().top.named.get(name).copied();
    let Some(location) = location else {
        error_log::request(
            request,
            LogLevel::Error,
            format_args!(
                "could not find named location \"{}\"",
                String::from_utf8_lossy(name)
            ),
        );
        return broken(request);
    };
    if !request.may_redirect() {
        error_log::request(
            request,
            LogLevel::Error,
            format_args!(
                "rewrite or internal redirection cycle while redirecting to named location"
            ),
        );
        return broken(request);
    }
    request.become_internal();
    request.slicing = Slicing::None;
    Settled::Again(Entry::Location(location))
}

/// The configuration leads nowhere: no page of its own is looked for.
fn broken(request: &mut Request) -> Settled {
    request.error_page.stop_forcing();
    Settled::Reply(Box::new(respond::status_page(request, 500)))
}

/// An error's page: `error_page` where one is given, else the built-in text. An
/// error or a redirect in the place of a page counts instead of the first error.
fn error(request: &mut Request, status: u16, fields: Fields) -> Settled {
    request.error_page.stop_forcing();
    let settings = request.settings_held();
    let may_use_page = !request.error_page.is_tried() || settings.recursive_error_pages;
    let page = settings
        .error_pages
        .iter()
        .find(|page| page.statuses.contains(&status));
    let Some(page) = page.filter(|_| may_use_page) else {
        let mut reply = respond::status_page(request, status);
        for (name, value) in fields.as_slice() {
            reply.head.fields.append(name.clone(), value.clone());
        }
        return Settled::Reply(Box::new(reply));
    };
    for (name, value) in fields.as_slice() {
        match name.eq_ignore_ascii_case(b"location") {
            true => request
                .extras
                .carried_error
                .set(name.clone(), value.clone()),
            false => request
                .extras
                .carried_error
                .append(name.clone(), value.clone()),
        }
    }
    let target = variable::evaluate(request, &page.target);
    let forced = match page.answer {
        ErrorAnswer::Same => Some(status),
        ErrorAnswer::Status(status) => Some(status),
        ErrorAnswer::OfPage => None,
    };
    let is_here = matches!(target.first(), Some(b'@' | b'/'));
    request.error_page = ErrorPage::Tried {
        error: status,
        forced: forced.filter(|_| is_here),
    };
    if target.first() == Some(&b'@') {
        return named(request, &target);
    }
    if target.first() == Some(&b'/') {
        request.become_get();
        let (path, args) = http1::split_query(&target);
        let (path, args) = (path.to_vec(), args.unwrap_or_default().to_vec());
        return settle(request, Handled::Redirect { path, args });
    }
    // Elsewhere: an external redirect.
    let status = match page.answer {
        ErrorAnswer::Status(status @ (301 | 302 | 303 | 307 | 308)) => status,
        _ => 302,
    };
    let mut reply = respond::status_page(request, status);
    reply.head.fields.set("Location", Bytes::from(target));
    Settled::Reply(Box::new(reply))
}

/// How far a round comes without waiting.
enum Round<'a> {
    /// To what stands before the content, which may have to wait.
    Guarded,
    Content(Begun<'a>),
}

/// How far the making of a response comes without waiting.
enum Begun<'a> {
    Handled(Handled),
    /// The key may be made of the request's body, which is to be taken first.
    Body(&'a Arc<Pass>),
    /// Somebody has to be asked.
    Must(&'a Arc<Pass>, pass::UpstreamPlan<'a>),
}

/// A round, as far as nobody has to be waited for: all of it for a hit or a file.
fn begin<'a>(
    request: &mut Request,
    client: &mut ClientSide,
    configuration: &'a ActiveConfiguration,
    entry: Entry,
) -> Round<'a> {
    let handled = |handled| Round::Content(Begun::Handled(handled));
    let server = &configuration.site.http.servers[request.server_id().0];
    let location = match entry {
        Entry::Location(location) => Some(location),
        Entry::Server => match rewritten(request, &server.rewrite) {
            Ok(_) => None,
            Err(ended) => return handled(ended),
        },
    };
    if let Err(ended) = settle_location(request, server, location, client) {
        return handled(ended);
    }
    if pattern::has_failed(request) {
        return handled(Handled::Status(500));
    }
    match request.compiled_location().is_open {
        true => Round::Content(begin_content(request, configuration)),
        false => Round::Guarded,
    }
}

/// The rest of it.
async fn finish(
    request: &mut Request,
    round: Round<'_>,
    client: &mut ClientSide,
    configuration: &ActiveConfiguration,
) -> Handled {
    let begun = match round {
        Round::Content(begun) => begun,
        Round::Guarded => match precede_content(request, client).await {
            Some(handled) => return handled,
            None if pattern::has_failed(request) => return Handled::Status(500),
            None => begin_content(request, configuration),
        },
    };
    finish_content(request, begun, client, configuration).await
}

/// Runs a rewrite program; what ends the way is the error.
fn rewritten(request: &mut Request, program: &[RewriteOp]) -> Result<Rewritten, Handled> {
    if program.is_empty() {
        return Ok(Rewritten::Continue);
    }
    match rewrite::run(request, program) {
        Rewritten::Return { status, value } => Err(returned(request, status, value)),
        Rewritten::Redirect {
            permanent,
            location,
        } => {
            let status = if permanent { 301 } else { 302 };
            Err(respond::redirect(request, status, location))
        }
        goes_on => Ok(goes_on),
    }
}

/// `return CODE [TEXT | URL]`.
fn returned(request: &mut Request, status: u16, value: Option<Vec<u8>>) -> Handled {
    match (status, value) {
        (444, _) => Handled::Close,
        (301 | 302 | 303 | 307 | 308, Some(location)) => {
            respond::redirect(request, status, location)
        }
        (_, Some(text)) => {
            let content_type = files::media_type(request, &request.path).to_vec();
            Handled::Reply(Box::new(Reply::new(status, &content_type, text)))
        }
        (200 | 204, None) => Handled::Reply(Box::new(Reply::new(status, b"", Bytes::new()))),
        (status, None) => Handled::Status(status),
    }
}

/// Finds the location, as often as rewriting asks for it.
fn settle_location(
    request: &mut Request,
    server: &Server,
    mut given: Option<site::LocationId>,
    client: &mut ClientSide,
) -> Result<(), Handled> {
    for _ in 0..=MAX_REWRITE_CYCLES {
        let is_named = given.is_some();
        let location = match given.take() {
            Some(location) => location,
            None => match route::locate(request, server) {
                Located::Location(location) => {
                    request.path_changed = false;
                    location
                }
                Located::AddSlash => return Err(respond::add_slash(request)),
            },
        };
        let location = for_method(request, server, location);
        request.enter(location);
        let place = server.location(location);
        if place.internal && !request.is_internal() {
            return Err(Handled::Status(404));
        }
        check_body_length(request, server, is_named, client)?;
        if location == Server::ROOT || place.rewrite.is_empty() {
            return Ok(());
        }
        match rewritten(request, &place.rewrite)? {
            Rewritten::Relocate => {
                if request.path.is_empty() {
                    error_log::request(
                        request,
                        LogLevel::Error,
                        format_args!("the rewritten URI has a zero length"),
                    );
                    return Err(Handled::Status(500));
                }
            }
            _ => return Ok(()),
        }
    }
    error_log::request(
        request,
        LogLevel::Error,
        format_args!(
            "rewrite or internal redirection cycle while processing \"{}\"",
            String::from_utf8_lossy(&request.path)
        ),
    );
    Err(Handled::Status(500))
}

/// What `limit_except` puts in the place of a location.
fn for_method(request: &Request, server: &Server, location: site::LocationId) -> site::LocationId {
    match &server.location(location).limit_except {
        Some(limit)
            if !limit
                .methods
                .iter()
                .any(|method| method.as_bytes() == request.method_name()) =>
        {
            limit.location
        }
        _ => location,
    }
}

/// `client_max_body_size` of the location that the request has come to, by whatever way: for
/// a body that was read on the way as for one that is still to come. One whose length is not
/// known is measured while it is read. What is refused is nobody's from then on, so that
/// the page that tells of the limit is shown.
fn check_body_length(
    request: &mut Request,
    server: &Server,
    is_named: bool,
    client: &mut ClientSide,
) -> Result<(), Handled> {
    let length = match &request.body {
        RequestBody::None => return Ok(()),
        RequestBody::Unread => client.input().and_then(|input| input.remaining()),
        body => body.length(),
    };
    let max = request.settings().body.max_bytes;
    // A named location without a limit of its own goes by the one that let the body in.
    let has_own = !is_named || max != server.settings(Server::ROOT).body.max_bytes;
    let is_asked = has_own || !request.is_body_let_in;
    let Some(length) = length.filter(|&length| is_asked && max > 0 && length > max) else {
        request.is_body_let_in = true;
        return Ok(());
    };
    error_log::request(
        request,
        LogLevel::Error,
        format_args!("client intended to send too large body: {length} bytes"),
    );
    request.body = RequestBody::None;
    Err(Handled::Status(413))
}

/// Limits, access, `try_files` and `mirror`: whatever may end the way before content.
async fn precede_content(request: &mut Request, client: &mut ClientSide) -> Option<Handled> {
    if !request.is_subrequest() {
        real_ip::apply_real_ip(request);
    }
    let settings = request.settings_held();
    if !request.is_subrequest() {
        if !settings.limits.connections.is_empty() {
            let configuration = request.configuration.clone();
            if let Err(status) = limit_conn::check(request, &configuration.live.limit_conn) {
                return Some(Handled::Status(status));
            }
        }
        if !settings.limits.requests.is_empty() {
            let configuration = request.configuration.clone();
            match limit_req::check(request, &configuration.live.limit_req) {
                limit_req::Verdict::Pass => {}
                limit_req::Verdict::Reject(status) => return Some(Handled::Status(status)),
                limit_req::Verdict::Delay(pause) => {
                    if !pause_for(pause, client).await {
                        return Some(Handled::ClientGone);
                    }
                    request.now = crate::base::clock::now();
                }
            }
        }
        // Whoever waits for an answer pays for a future of its own.
        if request.compiled_location().is_guarded
            && let Some(handled) = Box::pin(control::check(request, client)).await
        {
            return Some(handled);
        }
    }
    if let Some(try_files) = &settings.files.try_files
        && let Some(handled) = tried(request, try_files)
    {
        return Some(handled);
    }
    if let Some(mirror) = &settings.mirror
        && !request.is_subrequest()
        && let Err(status) = Box::pin(mirror::begin(request, mirror, client)).await
    {
        return Some(Handled::Status(status));
    }
    None
}

/// `try_files`; `None` where the request goes on here.
fn tried(request: &mut Request, try_files: &TryFiles) -> Option<Handled> {
    match files::try_files(request, try_files) {
        files::TryOutcome::Found => None,
        files::TryOutcome::Fallback => match &try_files.fallback {
            TryFallback::Status(status) => Some(Handled::Status(*status)),
            TryFallback::Uri(target) => {
                let target = variable::evaluate(request, target);
                Some(match target.first() {
                    Some(b'@') => Handled::Named(target),
                    _ => {
                        let (path, args) = http1::split_query(&target);
                        let args = args.map_or_else(|| request.args.clone(), <[u8]>::to_vec);
                        Handled::Redirect {
                            path: path.to_vec(),
                            args,
                        }
                    }
                })
            }
        },
    }
}

/// Waits unless the client leaves meanwhile.
async fn pause_for(pause: std::time::Duration, client: &ClientSide) -> bool {
    let pause = tokio::time::sleep(pause);
    unless_gone(client.gone(true), pause).await.is_some()
}

/// Makes the response of the location that the request is in.
pub async fn content(request: &mut Request, client: &mut ClientSide) -> Handled {
    let configuration = request.configuration.clone();
    let begun = begin_content(request, &configuration);
    finish_content(request, begun, client, &configuration).await
}

/// The same, as far as nobody has to be waited for.
fn begin_content<'a>(request: &mut Request, configuration: &'a ActiveConfiguration) -> Begun<'a> {
    let location = configuration.locations.get(request.compiled_location_id());
    let handled = match &location.settings.content {
        Content::Files => files::serve(request),
        Content::Pass(pass) if policy::asks_by_body(request, pass) => return Begun::Body(pass),
        Content::Pass(pass) => match pass::decide(request, configuration, pass) {
            pass::PassDecision::Handled(handled) => handled,
            pass::PassDecision::UpstreamNeeded(plan) => return Begun::Must(pass, plan),
        },
        Content::Handler(_) => match location.content_handler {
            Some(handle) => handle(request),
            None => Handled::Status(500),
        },
    };
    Begun::Handled(in_slices(request, handled))
}

/// The rest. UpstreamRequest somebody is a large future, which only those who do pay for.
async fn finish_content(
    request: &mut Request,
    begun: Begun<'_>,
    client: &mut ClientSide,
    configuration: &ActiveConfiguration,
) -> Handled {
    let handled = match begun {
        Begun::Handled(handled) => return handled,
        Begun::Body(pass) => {
            if let Err(status) = Box::pin(pass::take_body(request, pass, client)).await {
                return Handled::Status(status);
            }
            match pass::decide(request, configuration, pass) {
                pass::PassDecision::Handled(handled) => handled,
                pass::PassDecision::UpstreamNeeded(plan) => {
                    Box::pin(pass::serve(request, pass, plan, client)).await
                }
            }
        }
        Begun::Must(pass, plan) => Box::pin(pass::serve(request, pass, plan, client)).await,
    };
    in_slices(request, handled)
}

fn in_slices(request: &mut Request, handled: Handled) -> Handled {
    match request.settings().slice_bytes {
        0 => handled,
        _ => slice::gather(request, handled),
    }
}
