//! Running the commands of a page.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::exchange::fragment_facts::{FragmentFacts, SharedSsiValues};
use crate::exchange::page_budget::PageBudget;
use crate::exchange::reply::{Body, Reply};
use crate::exchange::request::{Method, Request};
use crate::exchange::request_route::TargetOrigin;
use crate::exchange::variable;
use crate::log::error_log;
use crate::respond::composition;
use crate::respond::parts::{self, MAX_DEPTH, RequestedPart, Source};
use bytes::Bytes;
use http_semantics::escape::{self, Escape};
use page_commands::Ssi;
use page_commands::ssi::Command;
use pcre2::bytes::Regex;
use site::LogLevel;
use transport::outbound::{ArrivingBody, MaybeApart, NextBytes, SendError};
use transport::request_body::RequestBody;

/// Includes that are asked for at the same time: enough for a page's parts, and no
/// page may take all of an upstream.
const MAX_PARALLEL: usize = 16;
/// Conditions within conditions.
const MAX_NESTING: usize = 64;
/// Tokens of all blocks of a page.
const MAX_BLOCK_TOKENS: usize = 4096;

/// The maximal size of one parameter's expanded value; values may be long, and named often.
const MAX_EXPANDED_BYTES: usize = 64 * 1024;

const ERROR_TEXT: &[u8] = b"[an error occurred while processing the directive]";
/// A piece of a page with SSI.
type Token = page_commands::Token<Option<Command>>;

const TIME_FORMAT: &str = "%A, %d-%b-%Y %H:%M:%S %Z";

/// A page whose commands are run as it is pulled.
pub struct Page {
    budget: Arc<PageBudget>,
    source: Source<Ssi>,
    /// Read and not run yet.
    tokens: VecDeque<Token>,
    /// A part whose body is being sent.
    current: Option<Part>,
    state: SsiState,
}

/// The state of a page whose commands are being run.
struct SsiState {
    values: SharedSsiValues,
    conditions: Vec<Condition>,
    /// The block that is being gathered.
    block: Option<(Vec<u8>, Vec<Token>)>,
    blocks: HashMap<Vec<u8>, Arc<Vec<Token>>>,
    block_tokens: usize,
    error_text: Bytes,
    time_format: String,
    /// The pieces to send, in order.
    waiting: VecDeque<Piece>,
    /// No command is run before the waiting pieces are out.
    is_draining: bool,
}

struct Condition {
    /// A branch of it has been taken.
    is_settled: bool,
    /// The branch we are in is the one taken.
    is_open: bool,
}

enum Piece {
    Text(Bytes),
    Included(IncludedPart),
    /// Its body becomes the value of a variable.
    Set(Vec<u8>, IncludedPart),
}

/// A part that was asked for.
struct IncludedPart {
    asked: RequestedPart,
    stub: Option<Arc<Vec<Token>>>,
    /// The text in its place if the page has met a bound.
    error_text: Bytes,
}

/// The result of opening a part.
enum OpenedPart {
    Part(Part),
    Nothing,
    /// The page has met a bound: this text.
    Beyond(Bytes),
}

/// A part that has been answered, and the rest of its body.
struct Part {
    request: Box<Request>,
    body: Box<dyn ArrivingBody<Request>>,
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
        let includes = (request.settings().ssi.max_includes, "ssi_max_includes");
        let page = parts::page(request, includes);
        Page {
            budget: page.budget.clone(),
            source: Source::of(body),
            tokens: VecDeque::new(),
            current: None,
            state: SsiState::new(request, page),
        }
    }

    /// A block's content in the place of a part, run as that part.
    fn of_block(request: &Request, tokens: &[Token]) -> Page {
        Page {
            source: Source::Ended,
            tokens: tokens.iter().cloned().collect(),
            ..Page::new(request, Body::Empty)
        }
    }

    /// The next bytes that come of it. Commands of one stretch are run first, so that all its
    /// parts are asked for.
    async fn pull(&mut self, request: &Request) -> Result<Option<Bytes>, SendError> {
        loop {
            if let Some(part) = &mut self.current {
                match parts::next_bytes(&part.request, &mut part.body).await? {
                    Some(bytes) => return Ok(Some(bytes)),
                    None => self.current = None,
                }
            } else if let Some(token) = self.next_token() {
                self.budget.before_token().await;
                self.state.token(request, token).await;
            } else if let Some(piece) = self.state.waiting.pop_front() {
                match piece {
                    Piece::Text(text) if text.is_empty() => {}
                    Piece::Text(text) => return Ok(Some(text)),
                    Piece::Included(included) => match included.open(request).await? {
                        OpenedPart::Part(part) => self.current = Some(part),
                        OpenedPart::Nothing => {}
                        OpenedPart::Beyond(text) => {
                            self.state.waiting.push_front(Piece::Text(text));
                        }
                    },
                    Piece::Set(name, included) => {
                        let value = included.into_value(request).await?;
                        self.state.set(request, &name, value);
                    }
                }
            } else if self.state.is_draining {
                self.state.is_draining = false;
            } else if !self.source.read(request, &mut self.tokens).await? {
                return Ok(None);
            }
        }
    }

    fn next_token(&mut self) -> Option<Token> {
        match self.state.is_draining {
            true => None,
            false => self.tokens.pop_front(),
        }
    }
}

impl IncludedPart {
    /// The part once it is answered.
    async fn open(self, page: &Request) -> Result<OpenedPart, SendError> {
        let IncludedPart {
            asked,
            stub,
            error_text,
        } = self;
        let Ok(answer) = parts::answer(page, asked, None).await else {
            return Ok(OpenedPart::Beyond(error_text));
        };
        let Some((request, reply)) = answer else {
            return Err(SendError::Truncated);
        };
        let is_refused =
            |reply: &Reply| stub.is_none() && parts::is_refused(page, reply.head.status);
        if reply.as_deref().is_some_and(is_refused) {
            return Ok(OpenedPart::Beyond(error_text));
        }
        let is_shown =
            |reply: &Reply| stub.is_none() || (reply.head.status < 400 && !is_empty(reply));
        let reply = reply.filter(|reply| is_shown(reply));
        let body: Box<dyn ArrivingBody<Request>> = match (reply, &stub) {
            (Some(reply), _) => match composition::part(&request, reply) {
                Ok(body) => body,
                Err(_) => return Ok(OpenedPart::Beyond(error_text)),
            },
            (None, Some(tokens)) => Box::new(Page::of_block(&request, tokens)),
            (None, None) => return Ok(OpenedPart::Nothing),
        };
        Ok(OpenedPart::Part(Part { request, body }))
    }

    /// The whole body, up to `subrequest_output_buffer_size`.
    async fn into_value(self, page: &Request) -> Result<Vec<u8>, SendError> {
        let mut part = match self.open(page).await? {
            OpenedPart::Part(part) => part,
            OpenedPart::Nothing => return Ok(Vec::new()),
            OpenedPart::Beyond(text) => return Ok(text.to_vec()),
        };
        let mut value = Vec::new();
        let limit = part.request.settings().ssi.output_buffer_bytes;
        while let Some(bytes) = parts::next_bytes(&part.request, &mut part.body).await? {
            if value.len() + bytes.len() > limit {
                return Err(SendError::Truncated);
            }
            value.extend_from_slice(&bytes);
        }
        Ok(value)
    }
}

impl SsiState {
    fn new(request: &Request, page: &FragmentFacts) -> SsiState {
        request.values.name_request();
        let errors_are_silent = request.settings().ssi.silent_errors;
        SsiState {
            values: page.ssi.get_or_init(Arc::default).clone(),
            conditions: Vec::new(),
            block: None,
            blocks: HashMap::new(),
            block_tokens: 0,
            error_text: match errors_are_silent {
                true => Bytes::new(),
                false => Bytes::from_static(ERROR_TEXT),
            },
            time_format: TIME_FORMAT.to_owned(),
            waiting: VecDeque::new(),
            is_draining: false,
        }
    }

    /// Runs a command, or lets text through.
    async fn token(&mut self, request: &Request, token: Token) {
        if let Some((name, mut tokens)) = self.block.take() {
            if matches!(&token, Token::Command(Some(command)) if command.name == b"endblock") {
                if self.is_open() {
                    self.blocks.insert(name, Arc::new(tokens));
                }
                return;
            }
            self.block_tokens += 1;
            if self.block_tokens <= MAX_BLOCK_TOKENS {
                tokens.push(token);
            }
            self.block = Some((name, tokens));
            return;
        }
        match token {
            Token::Text(text) if self.is_open() => self.waiting.push_back(Piece::Text(text)),
            Token::Text(_) => {}
            Token::Command(None) => self.error(request, "invalid SSI command"),
            Token::Command(Some(command)) => self.command(request, &command).await,
        }
    }

    fn is_open(&self) -> bool {
        self.conditions.iter().all(|condition| condition.is_open)
    }

    fn error(&mut self, request: &Request, message: &str) {
        if !self.is_open() {
            return;
        }
        error_log::request(request, LogLevel::Error, format_args!("{message}"));
        self.waiting.push_back(Piece::Text(self.error_text.clone()));
    }

    async fn command(&mut self, request: &Request, command: &Command) {
        if self.is_of_conditions(request, command) || !self.is_open() {
            return;
        }
        match command.name.as_slice() {
            b"include" => self.include(request, command).await,
            b"echo" => self.echo(request, command),
            b"set" => {
                let (Some(name), Some(value)) =
                    (command.parameter("var"), command.parameter("value"))
                else {
                    self.error(request, "no \"var\" and \"value\" in \"set\" SSI command");
                    return;
                };
                let value = self.expand(request, value);
                self.set(request, name, value);
            }
            b"config" => {
                if let Some(text) = command.parameter("errmsg") {
                    self.error_text = Bytes::copy_from_slice(text);
                }
                if let Some(format) = command.parameter("timefmt") {
                    self.time_format = String::from_utf8_lossy(format).into_owned();
                }
            }
            b"block" => {
                let name = command.parameter("name").unwrap_or_default().to_vec();
                self.block = Some((name, Vec::new()));
            }
            b"endblock" => {}
            name => {
                let message = format!("invalid SSI command: \"{}\"", String::from_utf8_lossy(name));
                self.error(request, &message);
            }
        }
    }

    /// Sets a variable.
    fn set(&mut self, request: &Request, name: &[u8], value: Vec<u8>) {
        if !self.values.lock().set(name, value) {
            self.error(request, "the variables of the page are too long together");
        }
    }

    /// `if`, `elif`, `else`, `endif`.
    fn is_of_conditions(&mut self, request: &Request, command: &Command) -> bool {
        match command.name.as_slice() {
            b"if" => {
                let holds = match self.is_open() {
                    true => self.holds(request, command),
                    false => Some(false),
                };
                if self.conditions.len() < MAX_NESTING {
                    self.conditions.push(Condition {
                        is_settled: holds != Some(false),
                        is_open: holds == Some(true),
                    });
                }
            }
            b"elif" => {
                let around = self.conditions.len().saturating_sub(1);
                let is_reached = self.conditions[..around].iter().all(|it| it.is_open)
                    && self.conditions.last().is_some_and(|it| !it.is_settled);
                let holds = match is_reached {
                    true => self.holds(request, command),
                    false => Some(false),
                };
                if let Some(condition) = self.conditions.last_mut() {
                    condition.is_open = holds == Some(true);
                    condition.is_settled |= holds != Some(false);
                }
            }
            b"else" => {
                if let Some(condition) = self.conditions.last_mut() {
                    condition.is_open = !condition.is_settled;
                    condition.is_settled = true;
                }
            }
            b"endif" => {
                self.conditions.pop();
            }
            _ => return false,
        }
        true
    }

    /// `$name`, `TEXT = TEXT`, `TEXT != /PATTERN/`; `None` if the pattern gave up: then
    /// neither this part of the page is shown nor its alternative.
    fn holds(&mut self, request: &Request, command: &Command) -> Option<bool> {
        let expression = command.parameter("expr").unwrap_or_default().trim_ascii();
        let Some(equals) = expression.iter().position(|&byte| byte == b'=') else {
            return Some(!self.expand(request, expression).is_empty());
        };
        let (left, right) = (&expression[..equals], &expression[equals + 1..]);
        let (left, wanted) = match left.strip_suffix(b"!") {
            Some(left) => (left, false),
            None => (left, true),
        };
        let left = self.expand(request, left.trim_ascii());
        let right = right.trim_ascii();
        let pattern = right
            .strip_prefix(b"/")
            .and_then(|right| right.strip_suffix(b"/"));
        let found = match pattern {
            Some(pattern) => self.matches(request, pattern, &left)?,
            None => left == self.expand(request, right),
        };
        Some(found == wanted)
    }

    fn matches(&mut self, request: &Request, pattern: &[u8], subject: &[u8]) -> Option<bool> {
        let pattern = String::from_utf8_lossy(pattern);
        let regex = match Regex::new(&pattern) {
            Ok(regex) => regex,
            Err(error) => {
                error_log::request(request, LogLevel::Error, format_args!("{error}"));
                return Some(false);
            }
        };
        let found = match regex.captures(subject) {
            Ok(Some(found)) => found,
            Ok(None) => return Some(false),
            Err(error) => {
                self.error(request, &format!("pattern \"{pattern}\" failed: {error}"));
                return None;
            }
        };
        let mut values = self.values.lock();
        values.groups = (0..found.len())
            .map(|group| found.get(group).map(|found| found.as_bytes().to_vec()))
            .collect();
        for (group, name) in regex.capture_names().iter().enumerate() {
            if let (Some(name), Some(value)) = (name, found.get(group)) {
                values.set(name.as_bytes(), value.as_bytes().to_vec());
            }
        }
        Some(true)
    }

    fn echo(&mut self, request: &Request, command: &Command) {
        let Some(name) = command.parameter("var") else {
            self.error(request, "no \"var\" in \"echo\" SSI command");
            return;
        };
        let value = match self.value(request, name) {
            Some(value) => value,
            None => match command.parameter("default") {
                Some(default) => default.to_vec(),
                None => b"(none)".to_vec(),
            },
        };
        let value = match command.parameter("encoding") {
            Some(b"none") => value,
            Some(b"url") => escape::escape(&value, Escape::Html).into_owned(),
            _ => escape::escape_html(&value).into_owned(),
        };
        // A value may be many times as long as the command that names it.
        if parts::take_bytes(request, value.len() as u64).is_ok() {
            self.waiting.push_back(Piece::Text(value.into()));
        }
    }

    fn value(&self, request: &Request, name: &[u8]) -> Option<Vec<u8>> {
        {
            let values = self.values.lock();
            if let [digit @ b'0'..=b'9'] = name {
                return values.groups.get(usize::from(digit - b'0')).cloned()?;
            }
            if let Some(value) = values.variable(name) {
                return Some(value.clone());
            }
        }
        let seconds = i64::try_from(clock::wall_now() / 1000).unwrap_or(0);
        let local = clock::local(seconds);
        let time = match name {
            b"date_local" => local,
            b"date_gmt" => local.with_time_zone(jiff::tz::TimeZone::UTC),
            _ => return variable::named(request, &String::from_utf8_lossy(name)),
        };
        if self.time_format == "%s" {
            return Some(seconds.to_string().into_bytes());
        }
        let format = jiff::fmt::strtime::format(&self.time_format, &time);
        Some(format.unwrap_or_default().into_bytes())
    }

    /// `text` with the values of the variables in it; none beyond [`MAX_EXPANDED_BYTES`].
    fn expand(&self, request: &Request, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = text;
        while let Some(dollar) = memchr::memchr(b'$', rest) {
            out.extend_from_slice(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            let is_braced = rest.first() == Some(&b'{');
            let start = usize::from(is_braced);
            let length = rest[start..]
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
                .count();
            let name = rest[start..start + length].to_ascii_lowercase();
            if out.len() < MAX_EXPANDED_BYTES {
                out.extend_from_slice(&self.value(request, &name).unwrap_or_default());
            }
            rest = &rest[start + length..];
            if is_braced {
                rest = rest.strip_prefix(b"}").unwrap_or(rest);
            }
        }
        out.extend_from_slice(rest);
        out
    }

    async fn include(&mut self, request: &Request, command: &Command) {
        let target = command
            .parameter("virtual")
            .or_else(|| command.parameter("file"));
        let Some(target) = target else {
            let message = "no \"virtual\" or \"file\" in \"include\" SSI command";
            return self.error(request, message);
        };
        let target = self.expand(request, target);
        let Some(part) = part(request, &target) else {
            let message = format!(
                "unsafe URI or cycle in SSI: \"{}\"",
                String::from_utf8_lossy(&target)
            );
            return self.error(request, &message);
        };
        let stub = command.parameter("stub");
        let stub = stub.and_then(|name| self.blocks.get(name).cloned());
        let error_text = self.error_text.clone();
        let Ok(asked) = RequestedPart::ask(part).await else {
            return self.waiting.push_back(Piece::Text(error_text));
        };
        let included = IncludedPart {
            asked,
            stub,
            error_text,
        };
        if let Some(name) = command.parameter("set") {
            self.waiting.push_back(Piece::Set(name.to_vec(), included));
            self.is_draining = true;
            return;
        }
        self.waiting.push_back(Piece::Included(included));
        let waits = command.parameter("wait") == Some(b"yes");
        self.is_draining = waits || self.waiting.len() >= MAX_PARALLEL;
    }
}

fn is_empty(reply: &Reply) -> bool {
    reply.head.content_length == Some(0) || matches!(reply.body, Body::Empty)
}

/// The request for a part; `None` for a path that leaves its folder, or a cycle.
fn part(request: &Request, target: &[u8]) -> Option<Box<Request>> {
    if request.route.depth >= MAX_DEPTH {
        return None;
    }
    let (path, args) = http_semantics::split_query(target);
    let mut whole = Vec::new();
    if path.first() != Some(&b'/') {
        let folder = memchr::memrchr(b'/', &request.route.path).map_or(0, |at| at + 1);
        whole.extend_from_slice(&escape::escape_uri(&request.route.path[..folder]));
    }
    whole.extend_from_slice(path);
    let leaves_folder = escape::unescape(&whole)
        .split(|&byte| byte == b'/')
        .any(|segment| segment == b"..");
    let target = http_semantics::Target::parse(&whole, true).ok()?;
    if leaves_folder {
        return None;
    }
    let mut part = request.internal();
    part.route.depth = request.route.depth + 1;
    part.values.get_mut().request_id = request.values.read(|values| values.request_id);
    if let (Some(part), Some(page)) = (part.fragments.get_mut(), request.fragments.get()) {
        part.ssi.clone_from(&page.ssi);
    }
    part.route.origin = TargetOrigin::Changed;
    part.route.path = target.path.into_owned();
    part.route.args = args.unwrap_or_default().to_vec();
    part.body = match &request.body {
        RequestBody::Memory(bytes) => RequestBody::Memory(bytes.clone()),
        RequestBody::Spooled(spooled) => RequestBody::Spooled(spooled.clone()),
        _ => RequestBody::None,
    };
    if part.route.method != Method::Get {
        part.route.make_get();
    }
    Some(part)
}
