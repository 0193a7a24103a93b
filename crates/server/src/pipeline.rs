//! A request's way, stage by stage, until there is a response.
//!
//! ```text
//!            ┌────────────────── internal redirect, error page ───────────────────┐
//!            ▼                                                                     │
//! server rewrite ─► locate ─► rewrite ─► limits ─► access ─► try_files ─► mirror ─► content ─► reply
//!                     ▲          │
//!                     └─ `last` ─┘
//! ```
//!
//! Each stage names the next. While no stage has to wait, one runs after the other without a future;
//! for a hit none waits. From the first that waits, they go on in one future.

use std::time::Duration;

use http_semantics::Fields;
use site::{Content, LocationId, LogLevel, Mirror, Server, Settings};
use transport::client::{ClientSide, unless_gone};
use transport::ready_or_pending::ReadyOrPending;
use transport::request_body::RequestBody;
use transport::service::ResponseOutcome;

use crate::access::body_length::BodyVerdict;
use crate::access::limits::LimitDecision;
use crate::access::{body_length, control, htaccess, limits, real_ip};
use crate::content::through_cache::guests;
use crate::content::{self, ContentStep, PendingContent, files, mirror, own_visit, request_body};
use crate::exchange::active_configuration::ActiveConfiguration;
use crate::exchange::compiled_location::BeforeContent;
use crate::exchange::handled::StageEnd;
use crate::exchange::own_visit::NotAsked;
use crate::exchange::reply::Reply;
use crate::exchange::request::Request;
use crate::exchange::request_route::{RequestKind, TargetOrigin};
use crate::log::{error_log, traces};
use crate::respond::error_pages::{self, Next, RedirectTarget, TriedPage};
use crate::respond::{self, Completion};
use crate::route::rewrite::Rewritten;
use crate::route::{self, FoundLocation, pattern, rewrite};

/// How often `rewrite ... last` may start the search for a location over.
const MAX_REWRITE_CYCLES: usize = 10;

/// The stage that a request has reached. Small, since a hit goes through several.
#[derive(Clone, Copy)]
enum Stage {
    ServerRewrite,
    Locate,
    /// In a location, which was named or found.
    Rewrite {
        location: LocationId,
        is_named: bool,
    },
    Limits,
    Access,
    TryFiles,
    Mirror,
    Content,
}

/// The result of a stage: the next stage, or the end of this round.
type Step<'a> = Result<Stage, End<'a>>;

/// How a round ends.
enum End<'a> {
    /// With a reply, an error or another path.
    Handled(StageEnd),
    /// With a stage that has to wait.
    Wait(Wait<'a>),
}

/// The cause of a wait.
enum Wait<'a> {
    Delay(Duration),
    Access,
    Mirror(&'a Mirror),
    Content(PendingContent<'a>),
}

/// How far the stages have come.
enum Outcome<'a> {
    Reply(Box<Reply>),
    Nothing,
    Pending(Wait<'a>),
}

impl From<StageEnd> for End<'_> {
    fn from(handled: StageEnd) -> Self {
        End::Handled(handled)
    }
}

/// Makes the response to `request`, whose configuration `configuration` is. One that is wrong in
/// itself (`refused`) goes straight to the page for this status.
#[inline]
pub fn serve<'a>(
    request: &'a mut Request,
    client: &'a mut ClientSide,
    configuration: &'a ActiveConfiguration,
    refused: Option<u16>,
) -> ReadyOrPending<'a, ResponseOutcome> {
    let first = match refused {
        None => Ok(Stage::ServerRewrite),
        Some(status) => Err(StageEnd::Status(status).into()),
    };
    guests::remove_own_cookies(&mut request.received);
    let mut way = Way::new(configuration);
    match way.advance(request, client, first) {
        Outcome::Nothing => ReadyOrPending::Ready(ResponseOutcome::Nothing),
        Outcome::Reply(reply) => match respond::complete(request, reply) {
            Completion::Ready => ReadyOrPending::Ready(ResponseOutcome::Response),
            Completion::Pending(form) => ReadyOrPending::pending(move || async move {
                form.end(&mut request.delivery).await;
                ResponseOutcome::Response
            }),
        },
        Outcome::Pending(wait) => ReadyOrPending::pending(move || async move {
            let Some(reply) = way.end(request, client, wait).await else {
                return ResponseOutcome::Nothing;
            };
            if let Completion::Pending(form) = respond::complete(request, reply) {
                form.end(&mut request.delivery).await;
            }
            ResponseOutcome::Response
        }),
    }
}

/// The reply to a request that the server makes itself, which may be a part of one that is traced; `None` if the
/// request ends without a reply. Where it is only explained, no content is made but files.
pub async fn serve_internal(request: &mut Request) -> Option<Box<Reply>> {
    let configuration = request.configuration.clone();
    let mut nobody = ClientSide::none();
    let mut way = Way::new(&configuration);
    let reply = match way.advance(request, &mut nobody, Ok(Stage::ServerRewrite)) {
        Outcome::Nothing => None,
        Outcome::Reply(reply) => Some(reply),
        Outcome::Pending(wait) => Box::pin(way.end(request, &mut nobody, wait)).await,
    };
    traces::end_part(request);
    reply
}

/// One request's way.
struct Way<'a> {
    configuration: &'a ActiveConfiguration,
    rewrite_cycles: usize,
}

impl<'a> Way<'a> {
    fn new(configuration: &'a ActiveConfiguration) -> Way<'a> {
        Way {
            configuration,
            rewrite_cycles: 0,
        }
    }

    /// Runs one stage after the other, and round after round, until there is a reply or
    /// something has to be waited for.
    #[inline]
    fn advance(
        &mut self,
        request: &mut Request,
        client: &mut ClientSide,
        mut step: Step<'a>,
    ) -> Outcome<'a> {
        loop {
            let end = match step {
                Ok(stage) => self.run(request, client, stage),
                Err(end) => end,
            };
            let handled = match end {
                End::Handled(handled) => handled,
                End::Wait(wait) => return Outcome::Pending(wait),
            };
            step = match error_pages::after(request, handled) {
                Next::Reply(reply) => return Outcome::Reply(reply),
                Next::ErrorReply(reply, tried) => {
                    request.delivery.error_page.stop_forcing();
                    if let Some(tried) = tried {
                        tried.begin(&mut request.delivery);
                    }
                    return Outcome::Reply(reply);
                }
                Next::Nothing(status) => {
                    request.delivery.status = status;
                    return Outcome::Nothing;
                }
                Next::Redirect(to, tried) => Ok(redirect(request, to, tried)),
                Next::Divert(diversion) => {
                    request.route.become_get();
                    request.route.become_diverted();
                    if let Some(carried) = &mut request.delivery.carried {
                        carried.fields = Fields::new();
                    }
                    respond::carry(diversion.facts, &mut request.delivery);
                    Err(diversion.then.into())
                }
            };
        }
    }

    /// One round: the stages, in their order.
    #[inline]
    fn run(&mut self, request: &mut Request, client: &mut ClientSide, mut stage: Stage) -> End<'a> {
        loop {
            let step = match stage {
                Stage::ServerRewrite => {
                    self.rewrite_cycles = 0;
                    let done = rewrite::run(request, &self.server(request).rewrite);
                    rewritten(request, done).map(|_| Stage::Locate)
                }
                Stage::Locate if htaccess::may_apply(request) => match htaccess::obey(request) {
                    Some(handled) => Err(handled.into()),
                    None => self.locate(request),
                },
                Stage::Locate => self.locate(request),
                Stage::Rewrite { location, is_named } => {
                    self.rewrite(request, client, location, is_named)
                }
                Stage::Limits if request.route.is_subrequest() => Ok(Stage::TryFiles),
                Stage::Limits => {
                    if let Some(client) = real_ip::client_address(request) {
                        request.received.believe_client(client);
                    }
                    limit(request)
                }
                Stage::Access => access(request),
                Stage::TryFiles => match files::tried(request) {
                    Ok(path) => {
                        path.become_path_of(&mut request.route);
                        Ok(Stage::Mirror)
                    }
                    Err(handled) => Err(handled.into()),
                },
                Stage::Mirror => self.mirror(request),
                Stage::Content if request.is_dry() && !self.is_of_files(request) => {
                    own_visit::note(request, NotAsked::Dry);
                    Err(own_visit::NOT_ASKED.into())
                }
                Stage::Content => match content::begin(request, self.configuration) {
                    ContentStep::Handled(handled) => Err(handled.into()),
                    ContentStep::Pending(wait) => Err(End::Wait(Wait::Content(wait))),
                },
            };
            match step {
                Ok(next) => stage = next,
                Err(end) => return end,
            }
        }
    }

    /// The rest of the way, from the first stage that waits.
    async fn end(
        &mut self,
        request: &mut Request,
        client: &mut ClientSide,
        mut wait: Wait<'a>,
    ) -> Option<Box<Reply>> {
        loop {
            let next = self.wait(request, client, wait).await;
            wait = match self.advance(request, client, next) {
                Outcome::Reply(reply) => return Some(reply),
                Outcome::Nothing => return None,
                Outcome::Pending(wait) => wait,
            }
        }
    }

    /// Waits for a delay, an access check, a mirror or the content, and returns the next stage.
    async fn wait(
        &self,
        request: &mut Request,
        client: &mut ClientSide,
        wait: Wait<'a>,
    ) -> Step<'a> {
        match wait {
            Wait::Delay(pause) => {
                let pause = tokio::time::sleep(pause);
                if unless_gone(client.gone(true), pause).await.is_none() {
                    return Err(StageEnd::ClientGone.into());
                }
                request.note_time(clock::now());
                Ok(Stage::Access)
            }
            Wait::Access => match Box::pin(control::check(request, client)).await {
                Some(handled) => Err(handled.into()),
                None => Ok(Stage::TryFiles),
            },
            Wait::Mirror(mirror) => {
                if mirror::wants_body(request, mirror) {
                    let read = Box::pin(request_body::read(request, client)).await;
                    request.set_body(read).map_err(StageEnd::Status)?;
                }
                mirror::begin(request, mirror);
                before_content(request)
            }
            Wait::Content(wait) => {
                let handled = wait.end(request, client, self.configuration).await;
                Err(handled.into())
            }
        }
    }

    fn settings(&self, request: &Request) -> &'a Settings {
        let locations = &self.configuration.locations;
        &locations.get(request.compiled_location_id()).settings
    }

    fn is_of_files(&self, request: &Request) -> bool {
        matches!(self.settings(request).content, Content::Files)
    }

    fn server(&self, request: &Request) -> &'a Server {
        &self.configuration.site.http.servers[request.route.server().0]
    }

    #[inline]
    fn locate(&self, request: &Request) -> Step<'a> {
        match route::locate(request, self.server(request)) {
            FoundLocation::Location(location) => Ok(Stage::Rewrite {
                location,
                is_named: false,
            }),
            FoundLocation::AddSlash => Err(respond::add_slash(request).into()),
        }
    }

    /// Enters the location, and runs its rewrite program.
    #[inline]
    fn rewrite(
        &mut self,
        request: &mut Request,
        client: &mut ClientSide,
        location: LocationId,
        is_named: bool,
    ) -> Step<'a> {
        match is_named {
            true => self.rewrite_cycles = 0,
            false => request.route.note_location_chosen(),
        }
        let server = self.server(request);
        let location = route::for_method(request, server, location);
        request.enter(location);
        let found = server.location(location);
        if found.internal && !request.route.is_internal() {
            return Err(StageEnd::Status(404).into());
        }
        match body_length::verdict(request, is_named, client) {
            BodyVerdict::NoBody => {}
            BodyVerdict::LetIn => request.is_body_let_in = true,
            BodyVerdict::Refused => {
                // So that the page about the limit can be shown.
                request.body = RequestBody::None;
                return Err(StageEnd::Status(413).into());
            }
        }
        if location == Server::ROOT || found.rewrite.is_empty() {
            return before_limits(request);
        }
        // A request that the rewrite program ends is traced as well.
        traces::begin(request);
        let done = rewrite::run(request, &found.rewrite);
        match rewritten(request, done)? {
            Rewritten::Relocate => self.relocate(request),
            _ => before_limits(request),
        }
    }

    /// `rewrite ... last`: another location is looked for.
    fn relocate(&mut self, request: &Request) -> Step<'a> {
        self.rewrite_cycles += 1;
        if request.route.path.is_empty() {
            let message = format_args!("the rewritten URI has a zero length");
            error_log::request(request, LogLevel::Error, message);
        } else if self.rewrite_cycles > MAX_REWRITE_CYCLES {
            let message = format_args!(
                "rewrite or internal redirection cycle while processing \"{}\"",
                String::from_utf8_lossy(&request.route.path)
            );
            error_log::request(request, LogLevel::Error, message);
        } else {
            return Ok(Stage::Locate);
        }
        Err(StageEnd::Status(500).into())
    }

    fn mirror(&self, request: &Request) -> Step<'a> {
        let settings = self.settings(request);
        match &settings.mirror {
            Some(mirror) if !request.route.is_subrequest() && !request.is_own_visit() => {
                Err(End::Wait(Wait::Mirror(mirror)))
            }
            _ => before_content(request),
        }
    }
}

/// Goes on at another path, or in a named location.
fn redirect(request: &mut Request, to: RedirectTarget, tried: Option<TriedPage>) -> Stage {
    request.route.count_redirect();
    request.values.forget_slicing();
    let is_for_error = tried.is_some();
    if let Some(tried) = tried {
        tried.begin(&mut request.delivery);
    }
    let route = &mut request.route;
    let (path, args, is_visitors) = match to {
        RedirectTarget::Path {
            path,
            args,
            is_visitors,
        } => (path, args, is_visitors),
        RedirectTarget::Location(location) => {
            route.become_internal();
            return Stage::Rewrite {
                location,
                is_named: true,
            };
        }
    };
    if is_for_error {
        route.become_get();
    }
    match (is_visitors, is_for_error) {
        (true, _) => route.kind = RequestKind::Received,
        (false, true) => route.become_diverted(),
        (false, false) => route.become_internal(),
    }
    (route.path, route.args) = (path, args);
    route.origin = TargetOrigin::Changed;
    request.values.forget_path_info();
    request.enter(Server::ROOT);
    Stage::ServerRewrite
}

/// A rewrite program may end the round.
#[inline]
fn rewritten<'a>(request: &Request, done: Rewritten) -> Result<Rewritten, End<'a>> {
    match done {
        Rewritten::Return { status, value } => {
            Err(content::returned::handle(request, status, value).into())
        }
        Rewritten::Redirect {
            permanent,
            location,
        } => {
            let status = if permanent { 301 } else { 302 };
            Err(respond::redirect(request, status, location).into())
        }
        goes_on => Ok(goes_on),
    }
}

/// Most locations have nothing between rewriting and content.
#[inline]
fn before_limits<'a>(request: &Request) -> Step<'a> {
    if pattern::has_failed(request) {
        return Err(StageEnd::Status(500).into());
    }
    match request.compiled_location().before_content {
        BeforeContent::Nothing => Ok(Stage::Content),
        BeforeContent::Stages | BeforeContent::AccessRules => Ok(Stage::Limits),
    }
}

fn limit<'a>(request: &Request) -> Step<'a> {
    traces::begin(request);
    if request.is_own_visit() {
        // A dry run does not use up visitors' limits.
        if request.is_dry() {
            limits::foresee(request);
        }
        return Ok(Stage::Access);
    }
    match limits::check(request) {
        LimitDecision::Pass => Ok(Stage::Access),
        LimitDecision::Reject(status) => Err(StageEnd::Status(status).into()),
        LimitDecision::Delay(pause) => Err(End::Wait(Wait::Delay(pause))),
    }
}

fn access<'a>(request: &Request) -> Step<'a> {
    match request.compiled_location().before_content {
        BeforeContent::AccessRules => Err(End::Wait(Wait::Access)),
        BeforeContent::Nothing | BeforeContent::Stages => Ok(Stage::TryFiles),
    }
}

fn before_content<'a>(request: &Request) -> Step<'a> {
    match pattern::has_failed(request) {
        true => Err(StageEnd::Status(500).into()),
        false => Ok(Stage::Content),
    }
}
