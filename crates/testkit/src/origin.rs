//! One origin in two protocols: a test that is written once holds for PHP
//! behind FastCGI and for an HTTP server alike. Directives are written as the
//! table of directives names families (`*_cache_valid`), and
//! [`Spelling::spell`] gives them the prefix.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::fake_http::{self, FakeHttp};
use crate::fake_php::{self, FakePhp};

/// The protocol, and so the prefix of directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    FastCgi,
    Proxy,
}

impl Spelling {
    pub const BOTH: [Spelling; 2] = [Spelling::FastCgi, Spelling::Proxy];

    /// `*_` becomes the prefix, and `PASS;` the directive that hands requests
    /// to `origin`.
    pub fn spell(self, directives: &str, origin: &Origin) -> String {
        let address = origin.address();
        let (prefix, pass) = match self {
            Spelling::FastCgi => (
                "fastcgi_",
                format!(
                    "fastcgi_pass {address};\n\
                     fastcgi_param REQUEST_METHOD $request_method;\n\
                     fastcgi_param REQUEST_URI $request_uri;\n\
                     fastcgi_param DOCUMENT_URI $uri;\n\
                     fastcgi_param CONTENT_LENGTH $content_length;"
                ),
            ),
            Spelling::Proxy => ("proxy_", format!("proxy_pass http://{address};")),
        };
        directives.replace("PASS;", &pass).replace("*_", prefix)
    }
}

/// A request that the origin got.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query, as the client sent them.
    pub target: String,
    /// Decoded, without the query; a subrequest's own.
    pub path: String,
    pub body: Bytes,
    /// The first request of this origin has 1.
    pub number: usize,
    fields: Fields,
}

#[derive(Clone, Debug)]
enum Fields {
    FastCgi(fake_php::Request),
    Http(fake_http::Request),
}

impl Request {
    /// A field of the request, or the empty text.
    pub fn field(&self, name: &str) -> &str {
        match &self.fields {
            Fields::Http(request) => request.field(name),
            Fields::FastCgi(request) => {
                let name = name.to_ascii_uppercase().replace('-', "_");
                request.param(&format!("HTTP_{name}"))
            }
        }
    }

    fn of_fastcgi(request: &fake_php::Request) -> Request {
        Request {
            method: request.param("REQUEST_METHOD").to_owned(),
            target: request.param("REQUEST_URI").to_owned(),
            path: request.param("DOCUMENT_URI").to_owned(),
            body: request.body.clone(),
            number: request.number,
            fields: Fields::FastCgi(request.clone()),
        }
    }

    fn of_http(request: &fake_http::Request) -> Request {
        Request {
            method: request.method.clone(),
            target: request.target.clone(),
            path: decoded(request.target.split('?').next().unwrap_or_default()),
            body: request.body.clone(),
            number: request.number,
            fields: Fields::Http(request.clone()),
        }
    }
}

/// Without percent-encoding.
fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or(("", part));
        out.extend(u8::from_str_radix(digits, 16).ok());
        out.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Clone, Debug)]
enum Step {
    Bytes(Bytes),
    WaitFor(Arc<Semaphore>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// The right number of bytes.
    True,
    /// Another number of bytes.
    Claimed(usize),
    /// No length: chunks over HTTP.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyEnding {
    Whole,
    /// The connection is closed without the protocol's own end.
    Cut,
    Hang,
}

/// An answer in either protocol. The head leaves with the first bytes of the
/// body; gates before them hold it back as well.
#[derive(Clone, Debug)]
pub struct OriginAnswer {
    status: u16,
    fields: String,
    steps: Vec<Step>,
    length: Length,
    ending: BodyEnding,
}

impl OriginAnswer {
    /// These field lines (`"Cache-Control: max-age=1\r\n"`), and a body that
    /// [`OriginAnswer::then`] adds.
    pub fn status(status: u16, fields: impl Into<String>) -> OriginAnswer {
        OriginAnswer {
            status,
            fields: fields.into(),
            steps: Vec::new(),
            length: Length::True,
            ending: BodyEnding::Whole,
        }
    }

    /// 200 with these field lines and a body.
    pub fn page(fields: impl Into<String>, body: impl AsRef<[u8]>) -> OriginAnswer {
        OriginAnswer::status(200, fields).then(body)
    }

    /// Sends the next bytes of the body.
    pub fn then(mut self, bytes: impl AsRef<[u8]>) -> OriginAnswer {
        self.steps
            .push(Step::Bytes(Bytes::copy_from_slice(bytes.as_ref())));
        self
    }

    /// Goes on when a permit of `gate` is free, and consumes it.
    pub fn wait_for(mut self, gate: &Arc<Semaphore>) -> OriginAnswer {
        self.steps.push(Step::WaitFor(gate.clone()));
        self
    }

    /// Announces a body of `length` bytes, whatever it has.
    pub fn claiming(mut self, length: usize) -> OriginAnswer {
        self.length = Length::Claimed(length);
        self
    }

    /// Leaves out the length of the body.
    pub fn of_open_length(mut self) -> OriginAnswer {
        self.length = Length::Open;
        self
    }

    /// Truncates the body at its end.
    pub fn cut(mut self) -> OriginAnswer {
        self.ending = BodyEnding::Cut;
        self
    }

    /// Sends nothing more, and does not close either.
    pub fn hang(mut self) -> OriginAnswer {
        self.ending = BodyEnding::Hang;
        self
    }

    fn body_bytes(&self) -> usize {
        let of_step = |step: &Step| match step {
            Step::Bytes(bytes) => bytes.len(),
            Step::WaitFor(_) => 0,
        };
        self.steps.iter().map(of_step).sum()
    }

    fn length_field(&self) -> String {
        match self.length {
            Length::Open => String::new(),
            // These have no field with a length.
            _ if matches!(self.status, 204 | 304) => String::new(),
            Length::True => format!("Content-Length: {}\r\n", self.body_bytes()),
            Length::Claimed(length) => format!("Content-Length: {length}\r\n"),
        }
    }

    fn into_php(self, to_head: bool) -> fake_php::Script {
        let length = self.length_field();
        let head = format!("Status: {}\r\n{}{length}\r\n", self.status, self.fields);
        let mut head = head.into_bytes();
        let mut script = fake_php::Script::new();
        for step in self.steps {
            script = match step {
                Step::Bytes(_) if to_head => continue,
                Step::Bytes(bytes) => {
                    script.stdout([std::mem::take(&mut head), bytes.to_vec()].concat())
                }
                Step::WaitFor(gate) => script.wait_for(&gate),
            };
        }
        if !head.is_empty() {
            script = script.stdout(head);
        }
        match self.ending {
            BodyEnding::Whole => script,
            BodyEnding::Cut => script.close(),
            BodyEnding::Hang => script.hang(),
        }
    }

    fn into_http(self, to_head: bool) -> fake_http::Script {
        let is_chunked = self.length == Length::Open && !matches!(self.status, 204 | 304);
        let framing = match is_chunked {
            true => "Transfer-Encoding: chunked\r\n".to_owned(),
            false => self.length_field(),
        };
        let head = format!(
            "HTTP/1.1 {} Said\r\n{}{framing}\r\n",
            self.status, self.fields
        );
        let mut head = head.into_bytes();
        let mut script = fake_http::Script::new();
        for step in self.steps {
            script = match step {
                Step::Bytes(_) if to_head => continue,
                Step::Bytes(bytes) if is_chunked => {
                    let chunk =
                        [format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
                    script.raw([std::mem::take(&mut head), chunk].concat())
                }
                Step::Bytes(bytes) => {
                    script.raw([std::mem::take(&mut head), bytes.to_vec()].concat())
                }
                Step::WaitFor(gate) => script.wait_for(&gate),
            };
        }
        if !head.is_empty() {
            script = script.raw(head);
        }
        match self.ending {
            BodyEnding::Whole if is_chunked && !to_head => script.raw("0\r\n\r\n"),
            BodyEnding::Whole => script,
            BodyEnding::Cut => script.close(),
            // The semaphore never gets a permit.
            BodyEnding::Hang => script.wait_for(&Arc::new(Semaphore::new(0))),
        }
    }
}

/// The origin. Stops when dropped.
pub enum Origin {
    FastCgi(FakePhp),
    Http(FakeHttp),
}

impl Origin {
    /// Listens on a free port of the loopback address.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start(
        spelling: Spelling,
        handler: impl Fn(&Request) -> OriginAnswer + Send + Sync + 'static,
    ) -> Origin {
        match spelling {
            Spelling::FastCgi => Origin::FastCgi(
                FakePhp::tcp(move |request| {
                    let request = Request::of_fastcgi(request);
                    handler(&request).into_php(request.method == "HEAD")
                })
                .await,
            ),
            Spelling::Proxy => Origin::Http(
                FakeHttp::start(move |request| {
                    let to_head = request.method == "HEAD";
                    handler(&Request::of_http(request)).into_http(to_head)
                })
                .await,
            ),
        }
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        match self {
            Origin::FastCgi(php) => php.address(),
            Origin::Http(http) => http.address(),
        }
    }

    /// Requests received so far.
    pub fn requests(&self) -> usize {
        match self {
            Origin::FastCgi(php) => php.requests(),
            Origin::Http(http) => http.requests(),
        }
    }
}
