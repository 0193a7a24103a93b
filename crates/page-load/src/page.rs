//! A page that was loaded: each resource with its times, and the resources left out.

use std::collections::BTreeMap;
use std::time::SystemTime;

use command_line::CacheWord;
use serde::Serialize;

use crate::resource::{Priority, ResourceKind};

#[derive(Clone, Debug, Serialize)]
pub struct PageLoad {
    /// The URL as the user gave it.
    pub url: String,
    #[serde(skip)]
    pub begun: SystemTime,
    /// In the order of being found; the page itself is the first.
    pub resources: Vec<LoadedResource>,
    pub left_out: LeftOut,
    pub traffic: TrafficBytes,
    pub connections: usize,
    /// Scripts in the page: the resources they would have loaded are not known.
    pub scripts: usize,
}

/// Over all connections, with TLS and the framing of HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficBytes {
    pub received: u64,
    pub sent: u64,
}

/// Resources that a browser might have loaded, and this load did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Resources by host, where other hosts than the page's are not allowed.
    pub third_party: BTreeMap<String, usize>,
    /// Images and frames that load when they come into view.
    pub lazy: usize,
    /// Bounds that were reached, each as a sentence.
    pub bounds: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LoadedResource {
    pub url: String,
    pub kind: ResourceKind,
    pub priority: Priority,
    pub blocks_rendering: bool,
    /// The number of the resource that named it.
    pub initiator: Option<usize>,
    /// The reason why there is no whole answer.
    pub fault: Option<String>,
    /// The facts of the answer; `None` if there was none.
    pub answer: Option<AnswerFacts>,
    pub source: Source,
    pub times: Times,
    pub sizes: Sizes,
    #[serde(skip)]
    pub fields: Fields,
}

/// The source of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Network,
    /// The browser's cache, without a request.
    BrowserCache,
    /// The browser's cache, after a 304 of the server.
    Revalidated,
}

/// The facts about an answer in its head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerFacts {
    pub status: u16,
    /// `HTTP/1.1`, `HTTP/2`.
    pub version: &'static str,
    /// The target of a redirection.
    pub location: Option<String>,
    /// The verdict of the server's cache.
    #[serde(serialize_with = "word")]
    pub server_cache: Option<CacheWord>,
    /// Seconds in caches on its way, from `Age`.
    pub age: Option<u64>,
    /// The number of the connection, and the server's address.
    pub connection: Option<usize>,
    pub server: Option<String>,
}

fn word<S: serde::Serializer>(word: &Option<CacheWord>, serializer: S) -> Result<S::Ok, S::Error> {
    word.map(CacheWord::text).serialize(serializer)
}

/// Milliseconds since the load began. A step that was not needed has no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    pub found: f64,
    /// A new connection: begun, name resolved, connected, encrypted.
    pub connect: Option<ConnectMoments>,
    pub sent: Option<f64>,
    pub first_byte: Option<f64>,
    pub end: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ConnectMoments {
    pub begun: f64,
    pub resolved: f64,
    pub connected: f64,
    pub encrypted: Option<f64>,
}

impl ConnectMoments {
    /// When the connection stood.
    pub fn end(&self) -> f64 {
        self.encrypted.unwrap_or(self.connected)
    }
}

/// Bytes. The head is counted as HTTP/1.1 would send it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    pub head: u64,
    /// Bytes of the body as sent.
    pub body: u64,
    /// Without its content coding.
    pub decoded: u64,
}

/// Names and values.
pub type FieldList = Vec<(String, String)>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    pub request: FieldList,
    pub response: FieldList,
}

impl Fields {
    /// The first value of a field of the answer.
    pub fn answered(&self, name: &str) -> Option<&str> {
        let found = self.response.iter();
        let mut found = found.filter(|it| it.0.eq_ignore_ascii_case(name));
        found.next().map(|it| it.1.as_str())
    }
}

impl LoadedResource {
    /// Returns the outcome in words: a status, or that it failed.
    #[must_use]
    pub fn status_text(&self) -> String {
        match &self.answer {
            Some(answer) if self.fault.is_none() => answer.status.to_string(),
            _ => "failed".to_owned(),
        }
    }

    /// Whether there is no whole answer, or one with an error status.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.fault.is_some() || self.answer.as_ref().is_none_or(|it| it.status >= 400)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A page from memory, a sheet that blocks, a font that is unchanged, a picture that fails, a
    /// script from the browser's cache.
    pub fn example() -> PageLoad {
        let resource = |kind, path: &str, status, found, end| LoadedResource {
            url: format!("http://site.test{path}"),
            kind,
            priority: Priority::Low,
            blocks_rendering: matches!(kind, ResourceKind::Document | ResourceKind::Style),
            initiator: Some(0),
            fault: None,
            answer: Some(AnswerFacts {
                status,
                version: "HTTP/1.1",
                location: None,
                server_cache: Some(CacheWord::Hit),
                age: None,
                connection: Some(1),
                server: Some("127.0.0.1".to_owned()),
            }),
            source: Source::Network,
            times: Times {
                found,
                connect: None,
                sent: Some(found + 1.0),
                first_byte: Some(found + 20.0),
                end,
            },
            sizes: Sizes {
                head: 200,
                body: 1000,
                decoded: 20_000,
            },
            fields: Fields::default(),
        };
        let mut page = resource(ResourceKind::Document, "/", 200, 0.0, 40.0);
        page.initiator = None;
        page.times.connect = Some(ConnectMoments {
            begun: 0.0,
            resolved: 0.25,
            connected: 0.5,
            encrypted: Some(1.0),
        });
        page.fields.request = vec![("cookie".to_owned(), "session=secret".to_owned())];
        page.fields.response = vec![("content-type".to_owned(), "text/html".to_owned())];
        let mut sheet = resource(ResourceKind::Style, "/a.css?v=1", 200, 20.0, 60.0);
        if let Some(answer) = &mut sheet.answer {
            answer.server_cache = Some(CacheWord::Miss);
        }
        let mut font = resource(ResourceKind::Font, "/f.woff2", 304, 61.0, 90.0);
        font.source = Source::Revalidated;
        font.sizes.decoded = 500;
        let mut picture = resource(ResourceKind::Image, "/<p>.png", 0, 30.0, 150.0);
        picture.fault = Some("the connection ended before the answer did".to_owned());
        picture.answer = None;
        picture.sizes = Sizes::default();
        picture.times.first_byte = None;
        let mut script = resource(ResourceKind::Script, "/s.js", 200, 30.0, 30.0);
        script.source = Source::BrowserCache;
        script.times.sent = None;
        script.times.first_byte = None;
        PageLoad {
            url: "http://site.test/".to_owned(),
            begun: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_704_067_200),
            resources: vec![page, sheet, font, picture, script],
            left_out: LeftOut {
                third_party: BTreeMap::from([("cdn.test".to_owned(), 2)]),
                lazy: 3,
                bounds: Vec::new(),
            },
            traffic: TrafficBytes {
                received: 5000,
                sent: 700,
            },
            connections: 2,
            scripts: 1,
        }
    }
}
