//! One resource on its way: the events of its exchange, until it is whole.

use std::time::{Instant, SystemTime};

use bytes::Bytes;
use command_line::CacheWord;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LINK, LOCATION, SET_COOKIE};
use http::{HeaderMap, Version, request, response};
use http_body_util::Empty;
use url::Url;

use crate::browser_cache::KeptBody;
use crate::decode::Decoder;
use crate::link;
use crate::load::Load;
use crate::network::{Connection, Event, Origin};
use crate::page::{
    AnswerFacts, ConnectMoments, FieldList, Fields, LoadedResource, Sizes, Source, Times,
};
use crate::resource::{NamedResource, ResourceKind, address};

/// Bytes of one body without its coding.
const MAX_BODY_BYTES: usize = 128 << 20;
/// Bytes of a style sheet that is read; the largest have some hundred kilobytes.
const MAX_SHEET_BYTES: usize = 4 << 20;

pub(crate) struct Fetch {
    pub wanted: NamedResource,
    /// Imports on the way to it.
    pub depth: usize,
    pub redirects: usize,
    pub state: FetchState,
    pub source: Source,
    pub row: LoadedResource,
    /// The connection's number, and the server's address.
    connection: Option<(usize, std::net::IpAddr)>,
    was_asked_again: bool,
    request: Option<request::Parts>,
    answer: Option<Box<response::Parts>>,
    decoder: Option<Decoder>,
    /// A body that is read when it is whole, and kept for later loads.
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchState {
    Waiting,
    Asked {
        /// The connection had been used before: the server may have closed it at the same moment.
        over_kept: bool,
    },
    Ended,
}

impl Fetch {
    pub fn new(wanted: NamedResource, by: Option<usize>, now: f64) -> Fetch {
        Fetch {
            depth: 0,
            redirects: 0,
            state: FetchState::Waiting,
            source: Source::Network,
            connection: None,
            was_asked_again: false,
            request: None,
            answer: None,
            decoder: None,
            body: Vec::new(),
            row: LoadedResource {
                url: wanted.url.to_string(),
                kind: wanted.kind,
                priority: wanted.priority,
                blocks_rendering: wanted.blocks_rendering,
                initiator: by,
                fault: None,
                answer: None,
                source: Source::Network,
                times: Times {
                    found: now,
                    end: now,
                    ..Times::default()
                },
                sizes: Sizes::default(),
                fields: Fields::default(),
            },
            wanted,
        }
    }

    /// It is named again: the more urgent of both counts.
    pub fn want_more(&mut self, wanted: &NamedResource) {
        self.wanted.priority = self.wanted.priority.min(wanted.priority);
        self.wanted.blocks_rendering |= wanted.blocks_rendering;
        self.row.priority = self.wanted.priority;
        self.row.blocks_rendering = self.wanted.blocks_rendering;
    }

    pub fn is_ended(&self) -> bool {
        self.state == FetchState::Ended
    }

    pub fn row_initiator(&self) -> Option<usize> {
        self.row.initiator
    }

    pub fn set_request(&mut self, parts: request::Parts) {
        self.row.fields.request = field_list(&parts.headers);
        self.request = Some(parts);
    }

    pub fn request(&self) -> Option<http::Request<Empty<Bytes>>> {
        let parts = self.request.clone()?;
        Some(http::Request::from_parts(parts, Empty::new()))
    }

    pub fn fail(&mut self, why: &str, now: f64) {
        self.row.fault = Some(why.to_owned());
        self.row.times.end = now;
        self.state = FetchState::Ended;
    }

    pub fn is_redirection(&self) -> bool {
        self.location().is_some()
    }

    /// Returns the target of a redirect, by a browser's rules.
    fn location(&self) -> Option<Url> {
        let answer = self.answer.as_ref()?;
        if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = answer.headers.get(LOCATION)?;
        address(
            &self.wanted.url,
            &String::from_utf8_lossy(location.as_bytes()),
        )
    }

    pub fn into_row(mut self) -> LoadedResource {
        self.row.source = self.source;
        self.row
    }

    /// Whether the body is needed when it is whole.
    fn is_read(&self) -> bool {
        matches!(
            self.wanted.kind,
            ResourceKind::Document | ResourceKind::Style
        )
    }

    fn take_head(&mut self, parts: Box<response::Parts>) -> Result<(), String> {
        let value = |name: &str| {
            let value = parts.headers.get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        self.row.fields.response = field_list(&parts.headers);
        let fields = self.row.fields.response.iter();
        let server_cache = CacheWord::of_fields(fields.map(|(name, value)| (&**name, &**value)));
        self.row.answer = Some(AnswerFacts {
            status: parts.status.as_u16(),
            version: match parts.version {
                Version::HTTP_2 => "HTTP/2",
                Version::HTTP_10 => "HTTP/1.0",
                _ => "HTTP/1.1",
            },
            location: value("location"),
            server_cache,
            age: value("age").and_then(|it| it.trim().parse().ok()),
            connection: self.connection.map(|it| it.0),
            server: self.connection.map(|it| it.1.to_string()),
        });
        let coding = parts.headers.get(CONTENT_ENCODING);
        let coding = coding.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let has_body = parts.status != http::StatusCode::NOT_MODIFIED;
        let decoder = Decoder::new(if has_body { coding } else { "" }, MAX_BODY_BYTES);
        self.answer = Some(parts);
        self.decoder = Some(decoder?);
        Ok(())
    }

    fn is_html(&self) -> bool {
        let kind = self
            .answer
            .as_ref()
            .and_then(|it| it.headers.get(CONTENT_TYPE));
        kind.is_none_or(|kind| {
            let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
            kind.contains("html")
        })
    }
}

fn field_list(fields: &HeaderMap) -> FieldList {
    let each = fields.iter();
    each.map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_string(), value)
    })
    .collect()
}

/// Returns the size of the head as HTTP/1.1 would send it.
fn head_bytes(fields: &FieldList) -> u64 {
    let lines = fields
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    "HTTP/1.1 200 OK\r\n\r\n".len() as u64 + lines.sum::<usize>() as u64
}

impl Load<'_> {
    pub(crate) fn handle(&mut self, id: usize, event: Event) {
        let Some(fetch) = self.fetches.get(id) else {
            return;
        };
        if fetch.is_ended() {
            // A fetch that has ended still reports on its connection, or others would wait for that
            // for ever.
            let origin = Origin::of(&fetch.wanted.url);
            match event {
                Event::Connected(_, shared) => self.hosts.connected(&origin, shared),
                Event::End(_, connection) => self.hosts.ended(&origin, connection),
                Event::Failed(_) => self.hosts.ended(&origin, None),
                _ => {}
            }
            return;
        }
        match event {
            Event::Connected(times, shared) => {
                let moments = ConnectMoments {
                    begun: self.since(times.begun),
                    resolved: self.since(times.resolved),
                    connected: self.since(times.connected),
                    encrypted: times.encrypted.map(|at| self.since(at)),
                };
                let origin = Origin::of(&fetch.wanted.url);
                self.hosts.connected(&origin, shared);
                if let Some(fetch) = self.fetches.get_mut(id) {
                    fetch.row.times.connect = Some(moments);
                }
            }
            Event::Sending(at, connection) => self.sending(id, at, connection),
            Event::Head(at, parts) => self.head(id, at, parts),
            Event::Data(bytes) => self.data(id, &bytes),
            Event::End(at, connection) => self.ended(id, at, connection),
            Event::Failed(reason) => self.failed(id, &reason),
        }
    }

    fn sending(&mut self, id: usize, at: Instant, over: (usize, std::net::IpAddr)) {
        let now = self.since(at);
        let (connection, address) = over;
        if id == 0 {
            self.browser.is_public = !crate::network::is_private(address);
        }
        if let Some(fetch) = self.fetches.get_mut(id) {
            fetch.row.times.sent = Some(now);
            fetch.connection = Some((connection, address));
        }
    }

    fn head(&mut self, id: usize, at: Instant, parts: Box<response::Parts>) {
        let now = self.since(at);
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        fetch.row.times.first_byte = Some(now);
        let url = fetch.wanted.url.clone();
        let cookies: Vec<String> = parts
            .headers
            .get_all(SET_COOKIE)
            .iter()
            .map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned())
            .collect();
        let taken = fetch.take_head(parts);
        fetch.row.sizes.head = head_bytes(&fetch.row.fields.response);
        for cookie in cookies {
            // One that cannot be kept is not kept, as in a browser.
            let _ = self.browser.cookies.parse(&cookie, &url);
        }
        if let Err(why) = taken {
            self.give_up(id, &why);
            return;
        }
        self.links(id);
    }

    /// `Link: <...>; rel=preload` of the page's own head.
    fn links(&mut self, id: usize) {
        let Some(fetch) = self.fetches.get(id) else {
            return;
        };
        if fetch.wanted.kind != ResourceKind::Document || fetch.is_redirection() {
            return;
        }
        let values = fetch.answer.iter().flat_map(|it| it.headers.get_all(LINK));
        let values: Vec<String> = values
            .map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned())
            .collect();
        let url = fetch.wanted.url.clone();
        for value in values {
            for wanted in link::preloads(&url, &value) {
                self.want(wanted, Some(id));
            }
        }
    }

    fn data(&mut self, id: usize, bytes: &[u8]) {
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        fetch.row.sizes.body += bytes.len() as u64;
        let decoded = match &mut fetch.decoder {
            Some(decoder) => decoder.take(bytes),
            None => return,
        };
        match decoded {
            Ok(decoded) => self.decoded(id, &decoded),
            Err(why) => self.give_up(id, &why),
        }
    }

    /// Some bytes of a body as they are meant.
    fn decoded(&mut self, id: usize, bytes: &[u8]) {
        if !self.has_room(bytes.len() as u64) {
            return;
        }
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        fetch.row.sizes.decoded += bytes.len() as u64;
        if fetch.is_read() && fetch.body.len() < MAX_SHEET_BYTES {
            fetch.body.extend_from_slice(bytes);
        }
        let is_page = fetch.wanted.kind == ResourceKind::Document;
        if is_page && fetch.is_html() && !fetch.is_redirection() {
            for wanted in self.content.feed(bytes) {
                self.want(wanted, Some(id));
            }
        }
    }

    fn ended(&mut self, id: usize, at: Instant, connection: Option<Connection>) {
        let now = self.since(at);
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        let origin = Origin::of(&fetch.wanted.url);
        fetch.row.times.end = now;
        let rest = match &mut fetch.decoder {
            Some(decoder) if fetch.row.sizes.body > 0 => decoder.end(),
            _ => Ok(Vec::new()),
        };
        self.hosts.ended(&origin, connection);
        match rest {
            Ok(rest) => self.decoded(id, &rest),
            Err(why) => {
                self.give_up(id, &why);
                return;
            }
        }
        self.keep(id);
    }

    /// A whole answer goes into the browser's cache; after a 304, the kept response is used.
    fn keep(&mut self, id: usize) {
        let now = SystemTime::now();
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        let (Some(request), Some(answer)) = (fetch.request.clone(), fetch.answer.clone()) else {
            return;
        };
        let url = fetch.wanted.url.clone();
        let cache = &mut self.browser.cache;
        if answer.status == http::StatusCode::NOT_MODIFIED {
            if let Some((answer, body)) = cache.freshened(&url, &request, &answer, now) {
                fetch.source = Source::Revalidated;
                self.take_kept(id, answer, body);
                return;
            }
        } else {
            let body = KeptBody {
                text: fetch.body.clone(),
                decoded_bytes: fetch.row.sizes.decoded,
            };
            cache.keep(&url, &request, &answer, body, now);
        }
        self.whole(id);
    }

    /// An answer that the browser has kept.
    pub(crate) fn take_kept(&mut self, id: usize, answer: Box<response::Parts>, body: KeptBody) {
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        // The sent bytes of the 304 have been counted; the status is the kept response's.
        let status = fetch.row.answer.as_ref().map(|it| it.status);
        let _ = fetch.take_head(answer);
        if let (Some(status), Some(answer)) = (status, &mut fetch.row.answer) {
            answer.status = status;
        }
        fetch.row.sizes.decoded = 0;
        self.decoded(id, &body.text);
        if let Some(fetch) = self.fetches.get_mut(id) {
            fetch.row.sizes.decoded = body.decoded_bytes;
        }
        self.whole(id);
    }

    /// A resource is there: finds the resources that it names.
    fn whole(&mut self, id: usize) {
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        fetch.state = FetchState::Ended;
        fetch.decoder = None;
        let body = std::mem::take(&mut fetch.body);
        if let Some(to) = fetch.location() {
            self.redirect(id, to);
            return;
        }
        let is_good = fetch
            .answer
            .as_ref()
            .is_some_and(|it| !it.status.is_client_error() && !it.status.is_server_error());
        let found = match fetch.wanted.kind {
            ResourceKind::Document if fetch.is_html() => self.content.end(),
            ResourceKind::Style if is_good => {
                let (url, blocks) = (fetch.wanted.url.clone(), fetch.wanted.blocks_rendering);
                self.content.sheet(&url, &body, blocks)
            }
            _ => Vec::new(),
        };
        for wanted in found {
            self.want(wanted, Some(id));
        }
    }

    fn failed(&mut self, id: usize, reason: &str) {
        let Some(fetch) = self.fetches.get_mut(id) else {
            return;
        };
        let origin = Origin::of(&fetch.wanted.url);
        let over_kept = matches!(fetch.state, FetchState::Asked { over_kept: true });
        let again = over_kept && fetch.answer.is_none() && !fetch.was_asked_again;
        if again {
            fetch.was_asked_again = true;
            fetch.state = FetchState::Waiting;
        }
        self.hosts.ended(&origin, None);
        match again {
            true => self.ask_again(id),
            false => self.give_up(id, reason),
        }
    }

    /// Gives up a fetch; bytes that still arrive for it are not looked at.
    fn give_up(&mut self, id: usize, why: &str) {
        let now = self.now();
        if let Some(fetch) = self.fetches.get_mut(id) {
            fetch.fail(why, now);
        }
    }
}
