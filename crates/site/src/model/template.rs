//! Values with variables in them, parsed once.

/// A configuration value: literal pieces and variables, in order.
///
/// Neighbouring literals are joined, so that a value without variables is one
/// literal or nothing at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Literal(Box<[u8]>),
    Variable(Variable),
}

impl Template {
    pub fn literal(text: impl AsRef<[u8]>) -> Template {
        let text = text.as_ref();
        let parts = if text.is_empty() {
            Vec::new()
        } else {
            vec![Part::Literal(text.into())]
        };
        Template { parts }
    }

    /// The whole value where it holds no variable.
    pub fn as_constant(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// What `$name` stands for, resolved when the configuration is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    Builtin(Builtin),
    /// `$1` to `$9` of the last pattern that matched.
    Capture(u8),
    /// Written by `set` or by a named capture.
    Slot(super::SlotId),
    /// Made by `map`, `geo` or `split_clients`, and written by `set` as well: what `set`
    /// wrote in this request, else what is made.
    SetOver(super::SlotId, Box<Variable>),
    /// What nginx has over TLS only: `$ssl_NAME`.
    WithoutTls,
    Map(super::MapId),
    Geo(super::GeoId),
    SplitClients(super::SplitClientsId),
    /// `$arg_NAME`: names compare without case.
    Argument(Box<[u8]>),
    /// `$http_NAME`: the field name, lower case, `_` for `-`.
    RequestField(Box<[u8]>),
    /// `$sent_http_NAME`, spelt likewise.
    SentField(Box<[u8]>),
    /// `$sent_trailer_NAME`, spelt likewise.
    SentTrailer(Box<[u8]>),
    /// `$upstream_http_NAME`, spelt likewise.
    UpstreamField(Box<[u8]>),
    /// `$upstream_trailer_NAME`, spelt likewise.
    UpstreamTrailer(Box<[u8]>),
    /// `$cookie_NAME`: spelling kept, compared without case.
    Cookie(Box<[u8]>),
    /// `$upstream_cookie_NAME`.
    UpstreamCookie(Box<[u8]>),
    /// `$proxy_protocol_tlv_NAME`.
    ProxyProtocolExtra(ProxyExtra),
}

/// What version 2 of the PROXY protocol may say beyond addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyExtra {
    /// By type.
    Of(u8),
    /// By type, among what is said of the proxy's own TLS.
    OfTls(u8),
    /// The outcome of verifying the client's certificate, as a number.
    TlsVerify,
}

impl ProxyExtra {
    /// `alpn`, `ssl_cn`, `0x05`, `ssl_0x21` and so on: what stands behind
    /// `$proxy_protocol_tlv_`.
    pub fn from_name(name: &str) -> Option<ProxyExtra> {
        let number = |text: &str| {
            let digits = text.strip_prefix("0x")?;
            u8::from_str_radix(digits, 16).ok()
        };
        let of = |known: &[(&str, u8)], name: &str| {
            let known = known.iter().find(|(text, _)| *text == name);
            known.map(|(_, kind)| *kind).or_else(|| number(name))
        };
        match name.strip_prefix("ssl_") {
            Some("verify") => Some(ProxyExtra::TlsVerify),
            Some(name) => of(TLS_EXTRAS, name).map(ProxyExtra::OfTls),
            None => of(EXTRAS, name).map(ProxyExtra::Of),
        }
    }
}

const EXTRAS: &[(&str, u8)] = &[
    ("alpn", 0x01),
    ("authority", 0x02),
    ("unique_id", 0x05),
    ("ssl", 0x20),
    ("netns", 0x30),
];

const TLS_EXTRAS: &[(&str, u8)] = &[
    ("version", 0x21),
    ("cn", 0x22),
    ("cipher", 0x23),
    ("sig_alg", 0x24),
    ("key_alg", 0x25),
];

macro_rules! builtins {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// Variables with a fixed name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Builtin { $(#[doc = $doc] $variant,)* }

        impl Builtin {
            /// All of them, for the reference page and for "did you mean".
            pub const ALL: &'static [Builtin] = &[$(Builtin::$variant,)*];

            /// The name without the dollar sign.
            pub fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name,)* }
            }

            pub fn documentation(self) -> &'static str {
                match self { $(Builtin::$variant => $doc,)* }
            }

            pub fn from_name(name: &str) -> Option<Builtin> {
                match name { $($name => Some(Builtin::$variant),)* _ => None }
            }
        }
    };
}

builtins! {
    Args "args" "the request's query string; may be written by `set`";
    BinaryRemoteAddr "binary_remote_addr" "client address in binary form: 4 or 16 bytes";
    BodyBytesSent "body_bytes_sent" "bytes of the body sent to the client";
    BrotliRatio "brotli_ratio" "compression achieved on this response, where it is sent in `br`";
    BytesSent "bytes_sent" "bytes sent to the client, head included";
    ClientIsLocal "client_is_local" "1 where the request was made on this machine, else empty";
    Connection "connection" "serial number of the connection";
    ConnectionRequests "connection_requests" "number of requests so far on this connection";
    ConnectionTime "connection_time" "age of the connection in seconds, with milliseconds";
    ContentLength "content_length" "the request's Content-Length field";
    ContentType "content_type" "the request's Content-Type field";
    DateGmt "date_gmt" "current time in GMT";
    DateLocal "date_local" "current time in the local time zone";
    DocumentRoot "document_root" "`root` or `alias` for this request";
    DocumentUri "document_uri" "same as `$uri`";
    FastcgiPathInfo "fastcgi_path_info" "second capture of `fastcgi_split_path_info`";
    FastcgiScriptName "fastcgi_script_name" "request path, with `fastcgi_index` after a trailing slash, or the first capture of `fastcgi_split_path_info`";
    GzipRatio "gzip_ratio" "compression achieved on this response, where it is sent in `gzip`";
    Host "host" "host of the request target, else of the Host field, else the server's name";
    Hostname "hostname" "name of this machine";
    Http2 "http2" "empty: no connection is HTTP/2 yet";
    Http3 "http3" "empty: no connection is HTTP/3 yet";
    Https "https" "`on` over TLS, else empty";
    InvalidReferer "invalid_referer" "empty when the Referer is one of `valid_referers`, else 1";
    IsArgs "is_args" "`?` where the request has arguments, else empty";
    IsRequestPort "is_request_port" "`:` where the client named a port, else empty";
    LimitConnStatus "limit_conn_status" "what `limit_conn` decided";
    LimitRate "limit_rate" "rate limit of the response; may be written by `set`";
    LimitReqStatus "limit_req_status" "what `limit_req` decided";
    Msec "msec" "current time in seconds, with milliseconds";
    NginxVersion "nginx_version" "version of nginx whose language this is";
    Pid "pid" "process number";
    Pipe "pipe" "`p` when the request was pipelined, else `.`";
    ProxyAddXForwardedFor "proxy_add_x_forwarded_for" "X-Forwarded-For with the client's address appended";
    ProxyHost "proxy_host" "host and port of `proxy_pass`";
    ProxyPort "proxy_port" "port of `proxy_pass`";
    ProxyProtocolAddr "proxy_protocol_addr" "client address from the PROXY protocol";
    ProxyProtocolPort "proxy_protocol_port" "client port from the PROXY protocol";
    ProxyProtocolServerAddr "proxy_protocol_server_addr" "server address from the PROXY protocol";
    ProxyProtocolServerPort "proxy_protocol_server_port" "server port from the PROXY protocol";
    QueryString "query_string" "same as `$args`";
    RealipRemoteAddr "realip_remote_addr" "the peer's own address";
    RealipRemotePort "realip_remote_port" "the peer's own port";
    RealpathRoot "realpath_root" "`$document_root` with symbolic links resolved";
    RemoteAddr "remote_addr" "client address";
    RemotePort "remote_port" "client port";
    RemoteUser "remote_user" "user name of Basic authentication";
    Request "request" "request line as received";
    RequestBody "request_body" "request body, where it is held in memory";
    RequestBodyFile "request_body_file" "name of the file that holds the request body";
    RequestCompletion "request_completion" "`OK` when the request was completed";
    RequestFilename "request_filename" "file path for this request";
    RequestId "request_id" "16 random bytes in hexadecimal";
    RequestLength "request_length" "bytes of the request: line, fields and body";
    RequestMethod "request_method" "request method";
    RequestPort "request_port" "port of the request target or of the Host field";
    RequestTime "request_time" "seconds since the first byte of the request, with milliseconds";
    RequestUri "request_uri" "request target as received";
    Scheme "scheme" "http or https";
    ServerAddr "server_addr" "address that accepted the connection";
    ServerName "server_name" "first name of the server that took the request";
    ServerPort "server_port" "port that accepted the connection";
    ServerProtocol "server_protocol" "HTTP/1.0, HTTP/1.1";
    SliceRange "slice_range" "range of the slice being asked for, as in bytes=0-1048575; empty without `slice`";
    Status "status" "status of the response";
    TimeIso8601 "time_iso8601" "local time, ISO 8601";
    TimeLocal "time_local" "local time, common log format";
    UpstreamAddr "upstream_addr" "addresses of the upstream servers that were tried";
    UpstreamBytesReceived "upstream_bytes_received" "bytes received from each upstream server";
    UpstreamBytesSent "upstream_bytes_sent" "bytes sent to each upstream server";
    UpstreamCacheAge "upstream_cache_age" "age of the stored response in seconds";
    UpstreamCacheKey "upstream_cache_key" "key under which the response was looked up";
    UpstreamCacheLastModified "upstream_cache_last_modified" "Last-Modified of the stored response";
    UpstreamCacheStatus "upstream_cache_status" "MISS, BYPASS, EXPIRED, STALE, UPDATING, REVALIDATED or HIT";
    UpstreamConnectTime "upstream_connect_time" "time spent connecting, one value for each server tried";
    UpstreamHeaderTime "upstream_header_time" "time to the response head, likewise";
    UpstreamQueueTime "upstream_queue_time" "time spent waiting in the queue, likewise";
    UpstreamResponseLength "upstream_response_length" "bytes of each upstream response body";
    UpstreamResponseTime "upstream_response_time" "time to the end of each upstream response";
    UpstreamStatus "upstream_status" "status of each upstream response";
    Uri "uri" "current request path, decoded and normalised";
    CacheStatus "cache_status" "what the cache did, as the Cache-Status field says it (RFC 9211)";
    CacheReason "cache_reason" "why the response was not stored or not taken from memory, in one word";
    ZstdRatio "zstd_ratio" "compression achieved on this response, where it is sent in `zstd`";
}
