//! One load: the order of its requests, and their results.
//!
//! ```text
//! found ─► queue, by priority ─► a connection is free: exchange ─► answer ─► what it names is found
//!            └─► the browser's cache has it ─────────────────────────┘
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use cookie_store::CookieStore;
use tls_client::Connector;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use url::{Position, Url};

use crate::browser_cache::{BrowserCache, CacheVerdict};
use crate::content::Content;
use crate::fetch::{Fetch, FetchState};
use crate::hosts::Hosts;
use crate::network::{self, Event, Origin, Teller, Way};
use crate::page::{LeftOut, PageLoad, Source, TrafficBytes};
use crate::request::{self, RequestFields};
use crate::resource::{NamedResource, Priority, ResourceKind};
use crate::settings::{LoadError, Settings, is_same_server};
use crate::style::NeededFiles;

/// The longest time of one load, however long each request may take.
const MAX_LOAD_TIME: Duration = Duration::from_secs(120);
/// Pages have some hundred.
const MAX_RESOURCES: usize = 1000;
/// Chromium's bound for redirects.
const MAX_REDIRECTS: usize = 20;
/// Style sheets that import style sheets.
const MAX_IMPORT_DEPTH: usize = 8;
/// Bytes of all bodies, without their codings.
const MAX_LOAD_BYTES: u64 = 512 << 20;
/// The bound of waiting events: a task that is this far ahead of us waits.
const MAX_EVENTS: usize = 64;

/// A browser of one visitor: its cache, and its cookies. The first load is cold, later ones are warm.
pub struct Browser {
    settings: Settings,
    tls: Connector,
    pub(crate) cache: BrowserCache,
    pub(crate) cookies: CookieStore,
    /// The page came from a public address, so that it may not reach private ones of other hosts.
    pub(crate) is_public: bool,
}

impl Browser {
    /// One that has seen nothing.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(settings: &Settings) -> Result<Browser, LoadError> {
        let tls = tls_client::Settings {
            send_name: true,
            // Each load shakes hands anew, so that loads can be compared.
            reuse_sessions: false,
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            ..tls_client::Settings::default()
        };
        Ok(Browser {
            settings: settings.clone(),
            tls: Connector::new(&tls).map_err(|error| LoadError(error.to_string()))?,
            cache: BrowserCache::default(),
            cookies: CookieStore::new(),
            is_public: false,
        })
    }

    /// Loads a page over new connections.
    ///
    /// # Errors
    /// There was no answer, or a redirect leads to a forbidden place.
    pub async fn load(&mut self, url: &Url) -> Result<PageLoad, LoadError> {
        let mut load = Load::new(self, url);
        load.run().await;
        load.into_page(url)
    }
}

pub(crate) struct Load<'a> {
    pub(crate) browser: &'a mut Browser,
    pub(crate) begun: Instant,
    begun_at: SystemTime,
    /// The page's address, after its redirections.
    pub(crate) page: Url,
    pub(crate) content: Content,
    pub(crate) fetches: Vec<Fetch>,
    /// Addresses that were found, with the number of the fetch of those that are asked for.
    known: HashMap<Url, Option<usize>>,
    /// Numbers of fetches that wait for a connection.
    queue: Vec<usize>,
    pub(crate) hosts: Hosts,
    tasks: JoinSet<()>,
    teller: mpsc::Sender<(usize, Event)>,
    events: mpsc::Receiver<(usize, Event)>,
    styling: Option<JoinHandle<NeededFiles>>,
    pub(crate) left_out: LeftOut,
    pub(crate) decoded_bytes: u64,
}

impl<'a> Load<'a> {
    fn new(browser: &'a mut Browser, url: &Url) -> Load<'a> {
        let mut page = url.clone();
        page.set_fragment(None);
        let (teller, events) = mpsc::channel(MAX_EVENTS);
        let mut load = Load {
            begun: Instant::now(),
            begun_at: SystemTime::now(),
            content: Content::new(&page, browser.settings.viewport),
            fetches: Vec::new(),
            known: HashMap::new(),
            queue: Vec::new(),
            hosts: Hosts::new(browser.tls.clone()),
            tasks: JoinSet::new(),
            teller,
            events,
            styling: None,
            left_out: LeftOut::default(),
            decoded_bytes: 0,
            page: page.clone(),
            browser,
        };
        let wanted = NamedResource {
            url: page,
            kind: ResourceKind::Document,
            priority: Priority::Highest,
            blocks_rendering: true,
        };
        load.want(wanted, None);
        load
    }

    async fn run(&mut self) {
        let deadline = tokio::time::Instant::from_std(self.begun + MAX_LOAD_TIME);
        loop {
            self.ask();
            self.style();
            let is_under_way = self.fetches.iter().any(|it| !it.is_ended());
            if !is_under_way && self.styling.is_none() {
                return;
            }
            tokio::select! {
                Some((id, event)) = self.events.recv() => self.handle(id, event),
                needed = ended(&mut self.styling) => self.styled(needed),
                () = tokio::time::sleep_until(deadline) => {
                    self.stop(&format!("not there after {} s, which is the most a load may take", MAX_LOAD_TIME.as_secs()));
                    return;
                }
            }
        }
    }

    /// Ends the requests under way.
    pub(crate) fn stop(&mut self, why: &str) {
        self.tasks.abort_all();
        self.queue.clear();
        let now = self.now();
        for fetch in self.fetches.iter_mut().filter(|it| !it.is_ended()) {
            fetch.fail(why, now);
        }
    }

    /// Milliseconds since the beginning.
    pub(crate) fn now(&self) -> f64 {
        self.since(Instant::now())
    }

    pub(crate) fn since(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.begun).as_secs_f64() * 1000.0
    }

    /// A resource was found in another one.
    pub(crate) fn want(&mut self, wanted: NamedResource, by: Option<usize>) {
        if let Some(known) = self.known.get(&wanted.url).copied() {
            self.want_more(known, &wanted);
            return;
        }
        if !self.may_ask(&wanted.url, by) {
            return;
        }
        let namer = by.and_then(|it| self.fetches.get(it));
        let is_import = wanted.kind == ResourceKind::Style
            && namer.is_some_and(|it| it.wanted.kind == ResourceKind::Style);
        let depth = namer.map_or(0, |it| it.depth + usize::from(is_import));
        if depth > MAX_IMPORT_DEPTH {
            self.reached(format!("imports more than {MAX_IMPORT_DEPTH} deep"));
        } else if self.fetches.len() >= MAX_RESOURCES {
            self.reached(format!("more than {MAX_RESOURCES} resources"));
        } else {
            self.known
                .insert(wanted.url.clone(), Some(self.fetches.len()));
            let mut fetch = Fetch::new(wanted, by, self.now());
            fetch.depth = depth;
            self.begin(fetch);
        }
    }

    /// A resource is named again, perhaps for more: a preloaded resource is now used.
    fn want_more(&mut self, id: Option<usize>, wanted: &NamedResource) {
        let Some(fetch) = id.and_then(|it| self.fetches.get_mut(it)) else {
            return;
        };
        fetch.want_more(wanted);
        if wanted.kind == ResourceKind::Style && wanted.blocks_rendering {
            self.content.apply(&wanted.url);
        }
    }

    pub(crate) fn reached(&mut self, bound: String) {
        if !self.left_out.bounds.contains(&bound) {
            self.left_out.bounds.push(bound);
        }
    }

    /// Whether an address may be asked. Servers that are neither the page's nor one that the user named are
    /// counted where they may not be.
    pub(crate) fn may_ask(&mut self, url: &Url, by: Option<usize>) -> bool {
        let settings = &self.browser.settings;
        let mut own = settings.named.iter().chain([&self.page]);
        let may = by.is_none() || settings.third_party || own.any(|it| is_same_server(it, url));
        if !may {
            self.known.insert(url.clone(), None);
            let server = url[Position::BeforeHost..Position::AfterPort].to_owned();
            *self.left_out.third_party.entry(server).or_default() += 1;
        }
        may
    }

    /// Whether an address is of the server that the user named. A redirection does not change which that is.
    fn is_named(&self, url: &Url) -> bool {
        let named = self.fetches.first().map(|it| &it.wanted.url);
        named.is_none_or(|it| is_same_server(it, url))
    }

    /// A redirection is followed.
    pub(crate) fn redirect(&mut self, id: usize, to: Url) {
        let Some(fetch) = self.fetches.get(id) else {
            return;
        };
        let is_document = fetch.wanted.kind == ResourceKind::Document;
        let redirects = fetch.redirects + 1;
        let by = fetch.row_initiator();
        let wanted = NamedResource {
            url: to,
            ..fetch.wanted.clone()
        };
        if redirects > MAX_REDIRECTS {
            self.reached(format!(
                "more than {MAX_REDIRECTS} redirections, one after another"
            ));
            return;
        }
        if !self.may_ask(&wanted.url, Some(id)) {
            return;
        }
        if is_document {
            self.page = wanted.url.clone();
            self.content = Content::new(&wanted.url, self.browser.settings.viewport);
        }
        self.known
            .insert(wanted.url.clone(), Some(self.fetches.len()));
        let mut next = Fetch::new(wanted, by.or(Some(id)), self.now());
        next.redirects = redirects;
        self.begin(next);
    }

    /// From the browser's cache, or into the queue.
    fn begin(&mut self, mut fetch: Fetch) {
        let id = self.fetches.len();
        let is_page = fetch.wanted.kind == ResourceKind::Document;
        let cookies = cookies(&self.browser.cookies, &fetch.wanted.url);
        let is_own = self.is_named(&fetch.wanted.url);
        let settings = &self.browser.settings;
        let says = RequestFields {
            user_agent: &settings.user_agent,
            own: if is_own { &settings.fields } else { &[] },
            page: (!is_page).then_some(&self.page),
            cookies: &cookies,
        };
        let mut parts = match request::parts(&fetch.wanted, &says) {
            Ok(parts) => parts,
            Err(reason) => {
                fetch.fail(&reason, self.now());
                self.fetches.push(fetch);
                return;
            }
        };
        let cache = &self.browser.cache;
        let verdict = cache.verdict(&fetch.wanted.url, &parts, SystemTime::now());
        match verdict {
            CacheVerdict::Use(answer, body) => {
                fetch.set_request(parts);
                fetch.source = Source::BrowserCache;
                self.fetches.push(fetch);
                self.take_kept(id, answer, body);
            }
            CacheVerdict::Validate(fields) => {
                parts.headers = fields;
                fetch.set_request(parts);
                self.fetches.push(fetch);
                self.queue.push(id);
            }
            CacheVerdict::Ask => {
                fetch.set_request(parts);
                self.fetches.push(fetch);
                self.queue.push(id);
            }
        }
    }

    /// Sends the requests that can be sent now: the most wanted first, of equals the one found first.
    fn ask(&mut self) {
        let fetches = &self.fetches;
        self.queue
            .sort_by_key(|id| fetches.get(*id).map(|it| (it.wanted.priority, *id)));
        let mut waiting = Vec::new();
        for id in std::mem::take(&mut self.queue) {
            let Some(url) = self.fetches.get(id).map(|it| &it.wanted.url) else {
                continue;
            };
            let (origin, is_own) = (Origin::of(url), self.is_named(url));
            let Some(way) = self.hosts.way(&origin, self.browser.is_public && !is_own) else {
                waiting.push(id);
                continue;
            };
            let Some(fetch) = self.fetches.get_mut(id) else {
                continue;
            };
            let Some(request) = fetch.request() else {
                continue;
            };
            fetch.state = FetchState::Asked {
                over_kept: matches!(way, Way::Kept(_)),
            };
            let teller = Teller {
                id,
                events: self.teller.clone(),
            };
            let time = self.browser.settings.timeout;
            self.tasks
                .spawn(network::exchange(way, request, time, teller));
        }
        self.queue = waiting;
        while self.tasks.try_join_next().is_some() {}
    }

    /// A request that failed over a kept connection is sent once more.
    pub(crate) fn ask_again(&mut self, id: usize) {
        self.queue.push(id);
    }

    /// Looks for pictures and fonts of the style sheets, once nothing that blocks rendering is under way.
    fn style(&mut self) {
        let blocks = |it: &Fetch| {
            !it.is_ended()
                && (it.wanted.kind == ResourceKind::Document
                    || it.wanted.kind == ResourceKind::Style && it.wanted.blocks_rendering)
        };
        if self.styling.is_none()
            && !self.fetches.iter().any(blocks)
            && let Some(work) = self.content.style_work()
        {
            self.styling = Some(tokio::task::spawn_blocking(work));
        }
    }

    fn styled(&mut self, needed: Option<NeededFiles>) {
        self.styling = None;
        let Some(needed) = needed else {
            self.reached("the style sheets could not be looked at".to_owned());
            return;
        };
        if needed.is_cut {
            self.reached("style sheets that take longer than 2 s to look at".to_owned());
        }
        let page = self.page_fetch();
        let fonts = needed.fonts.into_iter();
        let fonts = fonts.map(|url| (url, ResourceKind::Font, Priority::Highest));
        let pictures = needed.pictures.into_iter();
        let pictures = pictures.map(|url| (url, ResourceKind::Image, Priority::Low));
        for (url, kind, priority) in fonts.chain(pictures) {
            let wanted = NamedResource {
                url,
                kind,
                priority,
                blocks_rendering: false,
            };
            self.want(wanted, page);
        }
    }

    /// The number of the page after its redirections.
    fn page_fetch(&self) -> Option<usize> {
        let is_page = |it: &Fetch| it.wanted.kind == ResourceKind::Document;
        self.fetches.iter().rposition(is_page)
    }

    /// Whether there is room for `more` bytes. Ends the load if there is not.
    pub(crate) fn has_room(&mut self, more: u64) -> bool {
        self.decoded_bytes += more;
        let has_room = self.decoded_bytes <= MAX_LOAD_BYTES;
        if !has_room {
            let bound = format!("more than {} MB", MAX_LOAD_BYTES >> 20);
            self.reached(bound.clone());
            self.stop(&format!("the page is {bound}"));
        }
        has_room
    }

    fn into_page(mut self, url: &Url) -> Result<PageLoad, LoadError> {
        let page = self.page_fetch().and_then(|it| self.fetches.get(it));
        let Some(page) = page else {
            return Err(LoadError(format!("{url}: nothing was asked for")));
        };
        let fault = match (&page.row.fault, self.left_out.third_party.keys().next()) {
            (Some(fault), _) if page.row.answer.is_none() => Some(fault.clone()),
            (_, Some(host)) if page.is_redirection() => Some(format!(
                "it leads to another server, {host}: ask for that one, or say --third-party"
            )),
            (_, None) if page.is_redirection() => Some(format!(
                "more than {MAX_REDIRECTS} redirections, one after another"
            )),
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(LoadError(format!("{}: {fault}", page.wanted.url)));
        }
        self.left_out.lazy = self.content.lazy;
        let load =
            |it: &std::sync::atomic::AtomicU64| it.load(std::sync::atomic::Ordering::Relaxed);
        Ok(PageLoad {
            url: url.to_string(),
            begun: self.begun_at,
            traffic: TrafficBytes {
                received: load(&self.hosts.traffic.received),
                sent: load(&self.hosts.traffic.sent),
            },
            connections: self.hosts.connections,
            scripts: self.content.scripts,
            resources: self.fetches.into_iter().map(Fetch::into_row).collect(),
            left_out: self.left_out,
        })
    }
}

fn cookies(jar: &CookieStore, url: &Url) -> String {
    let pairs = jar.get_request_values(url);
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("; ")
}

/// Waits for the end of the work, for ever where no work runs. `None` if the work panicked.
async fn ended(work: &mut Option<JoinHandle<NeededFiles>>) -> Option<NeededFiles> {
    match work {
        Some(work) => work.await.ok(),
        None => std::future::pending().await,
    }
}
