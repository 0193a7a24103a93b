//! Running the tags of a page.
//!
//! ```text
//! tokens ─► EsiState::take: shown text, fragments to ask for ─► pieces ─► pull: bytes, in order
//! ```
//!
//! Fragments are asked for when their tags are read and sent in the order of the page. The content
//! of `<esi:try>` is held until it is known which of its two parts is shown.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use esi::{Element, Escape, Include, Tag};
use page_commands::Esi;
use site::LogLevel;
use transport::outbound::{ArrivingBody, MaybeApart, NextBytes, SendError};

use super::fragment;
use super::values::Visitor;
use crate::exchange::page_budget::PageBudget;
use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::Request;
use crate::log::error_log;
use crate::respond::composition;
use crate::respond::parts::{self, Late, RequestedPart, Source};

/// Fragments that are asked for and not yet sent: enough for a page's parts, and no page may take
/// all of an upstream.
const MAX_PARALLEL: usize = 16;
/// Elements within elements.
const MAX_NESTING: usize = 64;
/// `<esi:try>` within `<esi:try>`: each is run by itself.
const MAX_TRIES: usize = 8;
/// The tokens and bytes that are held for one `<esi:try>`.
const MAX_HELD_TOKENS: usize = 4096;
const MAX_HELD_BYTES: usize = 1024 * 1024;

type Token = page_commands::Token<Tag>;

/// A page whose tags are run as it is pulled.
pub struct Page {
    budget: Arc<PageBudget>,
    source: Source<Esi>,
    /// Read and not run yet.
    tokens: VecDeque<Token>,
    /// A fragment whose body is being sent.
    current: Option<Fragment>,
    state: EsiState,
    has_ended: bool,
}

/// A fragment that has been answered.
struct Fragment {
    request: Box<Request>,
    body: Box<dyn ArrivingBody<Request>>,
    is_optional: bool,
}

/// The pieces to send, in order.
enum Piece {
    Text(Bytes),
    Include(RequestedFragment),
    /// It is there, but those before it are sent first.
    Fragment(Fragment),
    Try(Try),
}

/// A fragment that was asked for.
struct RequestedFragment {
    url: Vec<u8>,
    asked: Result<RequestedPart, Failure>,
    alternative: Option<Vec<u8>>,
    is_optional: bool,
}

/// Why there is no fragment.
enum Failure {
    /// Said here.
    Because(String),
    /// The page has met a bound, which is logged once for all its fragments.
    Beyond,
}

struct Try {
    attempt: VecDeque<Piece>,
    except: Vec<Token>,
}

/// The state of a page whose tags are being run.
struct EsiState {
    open: Vec<Open>,
    /// An `<esi:try>` whose content is being gathered.
    held: Option<TryContent>,
    pieces: VecDeque<Piece>,
    /// Fragments among the pieces.
    waiting: usize,
    /// How many `<esi:try>` this is in.
    tries: usize,
}

/// An element that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Its content is shown.
    Shown(Element),
    /// Its content is not shown.
    Hidden(Element),
    /// `<esi:choose>`: only its branches are shown, and at most one.
    Choose { is_settled: bool },
    /// `<esi:vars>`
    Vars,
}

/// The content of `<esi:try>`.
#[derive(Default)]
struct TryContent {
    attempt: Vec<Token>,
    except: Vec<Token>,
    into: Option<Element>,
    /// Other `<esi:try>` in it that are open.
    inner: usize,
    tokens: usize,
    bytes: usize,
}

impl ArrivingBody<Request> for Page {
    fn apart(self: Box<Self>) -> MaybeApart<Request> {
        Err(self)
    }

    fn next<'a>(&'a mut self, request: &'a Request) -> NextBytes<'a> {
        Box::pin(self.pull(request))
    }
}

impl Page {
    /// The page that `body` is, run in the name of `request`.
    pub fn new(request: &Request, body: Body) -> Page {
        let includes = (request.settings().esi.max_includes, "esi_max_includes");
        Page {
            budget: parts::page(request, includes).budget.clone(),
            source: Source::of(body),
            tokens: VecDeque::new(),
            current: None,
            state: EsiState::new(0),
            has_ended: false,
        }
    }

    /// The next bytes that come of it. Tags of one stretch are run first, so that all its
    /// fragments are asked for.
    async fn pull(&mut self, request: &Request) -> Result<Option<Bytes>, SendError> {
        loop {
            if let Some(fragment) = &mut self.current {
                match parts::next_bytes(&fragment.request, &mut fragment.body).await {
                    Ok(Some(bytes)) => return Ok(Some(bytes)),
                    // The error is in the log already. The page does without the rest.
                    Err(SendError::Truncated) if fragment.is_optional => self.current = None,
                    Ok(None) => self.current = None,
                    Err(error) => return Err(error),
                }
            } else if self.state.waiting < MAX_PARALLEL
                && let Some(token) = self.tokens.pop_front()
            {
                self.budget.before_token().await;
                self.state.take(request, token).await;
            } else if let Some(piece) = self.state.next_piece() {
                match piece {
                    Piece::Text(text) => return Ok(Some(text)),
                    Piece::Fragment(fragment) => self.current = Some(fragment),
                    Piece::Include(wanted) => self.current = wanted.open(request).await,
                    Piece::Try(tried) => {
                        let tries = self.state.tries + 1;
                        let pieces = tried.settle(request, tries).await;
                        self.state.put_first(pieces);
                    }
                }
            } else if !self.source.read(request, &mut self.tokens).await? {
                if std::mem::replace(&mut self.has_ended, true) {
                    return Ok(None);
                }
                self.state.end(request);
            }
        }
    }
}

impl RequestedFragment {
    /// The fragment, or the one that stands in for it; `None` if the page goes on without.
    async fn open(self, page: &Request) -> Option<Fragment> {
        let is_optional = self.is_optional;
        let level = match is_optional {
            true => LogLevel::Info,
            false => LogLevel::Error,
        };
        let mut url = self.url;
        let mut asked = self.asked;
        let mut alternative = self.alternative;
        loop {
            let failure = match asked {
                Ok(asked) => match answered(page, asked).await {
                    Ok(fragment) => {
                        return Some(Fragment {
                            is_optional,
                            ..fragment
                        });
                    }
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            if let Failure::Because(why) = failure {
                let name = String::from_utf8_lossy(&url).into_owned();
                let then = match alternative.is_some() {
                    true => "its alternative is asked for",
                    false => "the page goes on without it",
                };
                error_log::request(
                    page,
                    level,
                    format_args!("ESI fragment \"{name}\" failed: {why}; {then}"),
                );
            }
            url = alternative.take()?;
            asked = ask(page, &url).await;
        }
    }
}

/// Asks for the fragment of a URL.
async fn ask(page: &Request, url: &[u8]) -> Result<RequestedPart, Failure> {
    let request = fragment::request(page, url).map_err(|why| Failure::Because(why.to_owned()))?;
    RequestedPart::ask(request)
        .await
        .map_err(|_| Failure::Beyond)
}

/// A fragment whose answer can be shown.
async fn answered(page: &Request, asked: RequestedPart) -> Result<Fragment, Failure> {
    let limit = page.settings().esi.timeout;
    let answer = parts::answer(page, asked, Some(limit)).await;
    let answer = answer.map_err(|late| match late {
        Late::Part => Failure::Because(format!("there was no answer within {limit:?}")),
        Late::Page => Failure::Beyond,
    })?;
    let Some((request, Some(reply))) = answer else {
        return Err(Failure::Because("there was no answer".to_owned()));
    };
    let status = reply.head.status;
    if !(200..300).contains(&status) {
        discard(*reply);
        return Err(match parts::is_refused(page, status) {
            true => Failure::Beyond,
            false => Failure::Because(format!("it was answered {status}")),
        });
    }
    let body = composition::part(&request, reply).map_err(|_| Failure::Beyond)?;
    Ok(Fragment {
        request,
        body,
        is_optional: false,
    })
}

fn discard(reply: Reply) {
    if let Body::Arriving(body) = reply.body {
        body.discard();
    }
}

impl Try {
    /// Returns the pieces to show: the attempt if all its fragments are there.
    async fn settle(self, page: &Request, tries: usize) -> VecDeque<Piece> {
        match settle_attempt(page, self.attempt, tries).await {
            Some(pieces) => pieces,
            None => run_held(page, self.except, tries).await,
        }
    }
}

/// The pieces of an attempt with all its fragments; `None` if one has failed.
async fn settle_attempt(
    page: &Request,
    pieces: VecDeque<Piece>,
    tries: usize,
) -> Option<VecDeque<Piece>> {
    let mut settled = VecDeque::with_capacity(pieces.len());
    for piece in pieces {
        match piece {
            Piece::Include(wanted) => {
                let is_optional = wanted.is_optional;
                match wanted.open(page).await {
                    Some(fragment) => settled.push_back(Piece::Fragment(fragment)),
                    None if is_optional => {}
                    None => return None,
                }
            }
            Piece::Try(inner) => {
                let inner = Box::pin(inner.settle(page, tries + 1));
                settled.extend(inner.await);
            }
            piece => settled.push_back(piece),
        }
    }
    Some(settled)
}

/// Runs the held content, which may hold more of its kind.
fn run_held<'a>(
    page: &'a Request,
    tokens: Vec<Token>,
    tries: usize,
) -> Pin<Box<dyn Future<Output = VecDeque<Piece>> + Send + 'a>> {
    Box::pin(async move {
        let mut state = EsiState::new(tries);
        let budget = page.page_budget();
        for token in tokens {
            if let Some(budget) = budget {
                budget.before_token().await;
            }
            state.take(page, token).await;
        }
        state.end(page);
        state.pieces
    })
}

impl EsiState {
    fn new(tries: usize) -> EsiState {
        EsiState {
            open: Vec::new(),
            held: None,
            pieces: VecDeque::new(),
            waiting: 0,
            tries,
        }
    }

    fn put(&mut self, piece: Piece) {
        self.waiting += usize::from(!matches!(piece, Piece::Text(_)));
        self.pieces.push_back(piece);
    }

    fn next_piece(&mut self) -> Option<Piece> {
        let piece = self.pieces.pop_front()?;
        self.waiting -= usize::from(!matches!(piece, Piece::Text(_)));
        Some(piece)
    }

    /// Puts pieces before all others.
    fn put_first(&mut self, pieces: VecDeque<Piece>) {
        for piece in pieces.into_iter().rev() {
            self.waiting += usize::from(!matches!(piece, Piece::Text(_)));
            self.pieces.push_front(piece);
        }
    }

    /// Runs a tag, or lets text through.
    async fn take(&mut self, page: &Request, token: Token) {
        if let Some(held) = self.held.take() {
            return self.hold(page, held, token).await;
        }
        match token {
            Token::Text(text) => self.text(page, text),
            Token::Command(Tag::Include(include)) if self.is_shown() => {
                self.include(page, &include).await;
            }
            Token::Command(tag) => self.tag(page, tag),
        }
    }

    fn text(&mut self, page: &Request, text: Bytes) {
        if text.is_empty() || !self.is_shown() {
            return;
        }
        let text = match self.open.contains(&Open::Vars) {
            true => {
                let mut out = Vec::with_capacity(text.len());
                esi::expand(&text, &Visitor(page), Escape::Html, &mut out);
                // Values may be many times as long as the text that names them.
                match parts::take_bytes(page, out.len() as u64) {
                    Ok(()) => out.into(),
                    Err(_) => return,
                }
            }
            false => text,
        };
        if !text.is_empty() {
            self.put(Piece::Text(text));
        }
    }

    /// Is the content at this place shown?
    fn is_shown(&self) -> bool {
        let is_hidden = |open: &Open| matches!(open, Open::Hidden(_));
        // Between the branches of a choice stands nothing but space.
        !self.open.iter().any(is_hidden) && !matches!(self.open.last(), Some(Open::Choose { .. }))
    }

    fn error(&self, page: &Request, message: &str) {
        error_log::request(page, LogLevel::Error, format_args!("ESI: {message}"));
    }

    fn tag(&mut self, page: &Request, tag: Tag) {
        match tag {
            Tag::Include(_) | Tag::Comment => {}
            Tag::Invalid(message) if self.is_shown() => self.error(page, &message),
            Tag::Invalid(_) => {}
            Tag::When(test) => self.branch(page, Element::When, Some(&test)),
            Tag::Open(Element::Otherwise) => self.branch(page, Element::Otherwise, None),
            Tag::Open(element) => self.open(page, element),
            Tag::Close(element) => self.close(page, element),
        }
    }

    fn open(&mut self, page: &Request, element: Element) {
        let is_shown = self.is_shown();
        let open = match element {
            Element::Choose => Open::Choose {
                // A choice that is not shown takes no branch.
                is_settled: !is_shown,
            },
            Element::Vars => Open::Vars,
            Element::Markup => Open::Shown(element),
            Element::Try if is_shown => {
                self.held = Some(TryContent::default());
                return;
            }
            Element::Attempt | Element::Except if is_shown => {
                let name = element.name();
                self.error(page, &format!("<esi:{name}> stands outside of <esi:try>"));
                Open::Hidden(element)
            }
            element => Open::Hidden(element),
        };
        self.enter(page, open);
    }

    fn enter(&mut self, page: &Request, open: Open) {
        if self.open.len() >= MAX_NESTING {
            self.error(page, "elements are nested too deep");
            return;
        }
        self.open.push(open);
    }

    /// A branch of `<esi:choose>`: the first whose test holds is shown.
    fn branch(&mut self, page: &Request, element: Element, test: Option<&[u8]>) {
        let Some(Open::Choose { is_settled }) = self.open.last().copied() else {
            if self.is_shown() {
                let name = element.name();
                self.error(
                    page,
                    &format!("<esi:{name}> stands outside of <esi:choose>"),
                );
            }
            return self.enter(page, Open::Hidden(element));
        };
        let is_taken = !is_settled && test.is_none_or(|test| self.holds(page, test));
        if is_taken && let Some(choice) = self.open.last_mut() {
            *choice = Open::Choose { is_settled: true };
        }
        self.enter(
            page,
            match is_taken {
                true => Open::Shown(element),
                false => Open::Hidden(element),
            },
        );
    }

    fn holds(&self, page: &Request, test: &[u8]) -> bool {
        match esi::evaluate(test, &Visitor(page)) {
            Ok(holds) => holds,
            Err(error) => {
                let test = String::from_utf8_lossy(test);
                self.error(page, &format!("test \"{test}\" is not valid: {error}"));
                false
            }
        }
    }

    fn close(&mut self, page: &Request, element: Element) {
        let is_it = |open: &Open| open.element() == element;
        let Some(at) = self.open.iter().rposition(is_it) else {
            if element != Element::Markup {
                let name = element.name();
                self.error(page, &format!("</esi:{name}> closes nothing that is open"));
            }
            return;
        };
        for inner in self.open.drain(at + 1..).rev().collect::<Vec<_>>() {
            self.not_closed(page, inner.element());
        }
        self.open.pop();
    }

    fn not_closed(&self, page: &Request, element: Element) {
        if element != Element::Markup {
            self.error(page, &format!("<esi:{}> is not closed", element.name()));
        }
    }

    /// The page has ended.
    fn end(&mut self, page: &Request) {
        if self.held.take().is_some() {
            self.not_closed(page, Element::Try);
        }
        for open in std::mem::take(&mut self.open) {
            self.not_closed(page, open.element());
        }
    }

    /// Gathers the content of `<esi:try>`; at its end the attempt is run.
    async fn hold(&mut self, page: &Request, mut held: TryContent, token: Token) {
        if let Token::Command(Tag::Close(Element::Try)) = &token
            && held.inner == 0
        {
            return self.attempt(page, held).await;
        }
        held.take(token);
        self.held = Some(held);
    }

    async fn attempt(&mut self, page: &Request, held: TryContent) {
        if held.tokens > MAX_HELD_TOKENS || held.bytes > MAX_HELD_BYTES || self.tries >= MAX_TRIES {
            self.error(
                page,
                "the content of <esi:try> is too large or nested too deep",
            );
            return;
        }
        let tries = self.tries + 1;
        let attempt = run_held(page, held.attempt, tries).await;
        self.put(Piece::Try(Try {
            attempt,
            except: held.except,
        }));
    }

    async fn include(&mut self, page: &Request, include: &Include) {
        let expanded = |url: &[u8]| {
            let mut out = Vec::with_capacity(url.len());
            esi::expand(url, &Visitor(page), Escape::Url, &mut out);
            out
        };
        let url = expanded(&include.src);
        let alternative = include.alt.as_deref().map(expanded);
        self.put(Piece::Include(RequestedFragment {
            asked: ask(page, &url).await,
            url,
            alternative,
            is_optional: include.is_optional,
        }));
    }
}

impl Open {
    fn element(self) -> Element {
        match self {
            Open::Shown(element) | Open::Hidden(element) => element,
            Open::Choose { .. } => Element::Choose,
            Open::Vars => Element::Vars,
        }
    }
}

impl TryContent {
    fn take(&mut self, token: Token) {
        match &token {
            Token::Command(Tag::Open(Element::Try)) => self.inner += 1,
            Token::Command(Tag::Close(Element::Try)) => self.inner -= 1,
            Token::Command(Tag::Open(element @ (Element::Attempt | Element::Except)))
                if self.inner == 0 =>
            {
                self.into = Some(*element);
                return;
            }
            Token::Command(Tag::Close(Element::Attempt | Element::Except)) if self.inner == 0 => {
                self.into = None;
                return;
            }
            _ => {}
        }
        let into = match self.into {
            Some(Element::Attempt) => &mut self.attempt,
            Some(_) => &mut self.except,
            // Space between the two.
            None => return,
        };
        self.tokens += 1;
        if let Token::Text(text) = &token {
            self.bytes += text.len();
        }
        if self.tokens <= MAX_HELD_TOKENS && self.bytes <= MAX_HELD_BYTES {
            into.push(token);
        }
    }
}
