//! The built-in variables: one line of the table below for each.
//!
//! A line gives the variant, the name without the dollar sign, and the documentation. The enum,
//! the look-up by name and the reference page are made from it. The server keeps the function
//! for a variable's value in an array, at [`Builtin::index`].

macro_rules! builtins {
    ($($variant:ident $name:literal $documentation:literal;)*) => {
        /// Variables with a fixed name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Builtin { $(#[doc = $documentation] $variant,)* }

        impl Builtin {
            /// All of them, in the order of their [`index`](Builtin::index).
            pub const ALL: &'static [Builtin] = &[$(Builtin::$variant,)*];

            /// How many there are: the length of an array with one element for each.
            pub const COUNT: usize = Builtin::ALL.len();

            /// Returns the index of this variable in such an array: less than
            /// [`COUNT`](Builtin::COUNT).
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The name without the dollar sign.
            pub fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name,)* }
            }

            /// Returns the description of its value, for the reference page.
            pub fn documentation(self) -> &'static str {
                match self { $(Builtin::$variant => $documentation,)* }
            }

            /// The variable of this name, which is in lower case.
            pub fn from_name(name: &str) -> Option<Builtin> {
                match name { $($name => Some(Builtin::$variant),)* _ => None }
            }
        }
    };
}

builtins! {
    Args "args" "query string of the request; `set` may change it";
    BinaryRemoteAddr "binary_remote_addr" "client address in binary form: 4 or 16 bytes; use it as a key of limits";
    BodyBytesSent "body_bytes_sent" "number of bytes of the response body that were sent";
    BrotliRatio "brotli_ratio" "compression ratio of the response, if it was compressed with brotli";
    BytesSent "bytes_sent" "number of bytes sent to the client, with the head";
    ClientIsLocal "client_is_local" "`1` if the request comes from a program on this machine, or a browser there and not for a page of another site (see `fastcgi_cache_purge`), else empty";
    Connection "connection" "number of the connection, counted from the start of the server";
    ConnectionRequests "connection_requests" "number of requests so far on this connection";
    ConnectionTime "connection_time" "age of the connection in seconds, with milliseconds";
    ConnectionsActive "connections_active" "number of open connections, with idle ones";
    ConnectionsReading "connections_reading" "number of connections whose request is being read";
    ConnectionsWaiting "connections_waiting" "number of idle connections that wait for a request";
    ConnectionsWriting "connections_writing" "number of connections whose response is being made or sent";
    ContentLength "content_length" "the request's Content-Length field";
    ContentType "content_type" "the request's Content-Type field";
    DateGmt "date_gmt" "current time in GMT";
    DateLocal "date_local" "current time in the local time zone";
    DocumentRoot "document_root" "`root` or `alias` for this request";
    DocumentUri "document_uri" "same as `$uri`";
    FastcgiPathInfo "fastcgi_path_info" "second capture of `fastcgi_split_path_info`";
    FastcgiScriptName "fastcgi_script_name" "request path, with `fastcgi_index` after a trailing slash, or the first capture of `fastcgi_split_path_info`";
    GzipRatio "gzip_ratio" "compression ratio of the response, if it was compressed with gzip";
    Host "host" "host of the request target, else of the Host field, else the server's name";
    Hostname "hostname" "name of this machine";
    Http2 "http2" "`h2` for HTTP/2 over TLS, `h2c` without TLS, else empty";
    Http3 "http3" "`h3` for HTTP/3, else empty";
    Https "https" "`on` over TLS, else empty";
    InvalidReferer "invalid_referer" "empty if the Referer is one of `valid_referers`, else `1`";
    IsArgs "is_args" "`?` if the request has arguments, else empty";
    IsRequestPort "is_request_port" "`:` if the client named a port, else empty";
    LimitConnStatus "limit_conn_status" "what `limit_conn` decided: PASSED, REJECTED or REJECTED_DRY_RUN";
    LimitRate "limit_rate" "rate limit of the response; `set` may change it";
    LimitReqStatus "limit_req_status" "what `limit_req` decided: PASSED, DELAYED, REJECTED, DELAYED_DRY_RUN or REJECTED_DRY_RUN";
    Msec "msec" "current time in seconds, with milliseconds";
    NginxVersion "nginx_version" "version of nginx whose configuration language Mayfly reads";
    OtelParentId "otel_parent_id" "identifier of the span that the request comes from, if `otel_trace_context` extracts it";
    OtelParentSampled "otel_parent_sampled" "`1` if the sender of the request traces it, else `0`; `otel_trace_context` must extract it";
    OtelSpanId "otel_span_id" "identifier of the request's span";
    OtelTraceId "otel_trace_id" "identifier of the trace that the request's span belongs to";
    Pid "pid" "process number";
    Pipe "pipe" "`p` if the request was pipelined, else `.`";
    ProxyAddXForwardedFor "proxy_add_x_forwarded_for" "the request field X-Forwarded-For with the client address added";
    ProxyHost "proxy_host" "host and port of `proxy_pass`";
    ProxyPort "proxy_port" "port of `proxy_pass`";
    ProxyProtocolAddr "proxy_protocol_addr" "client address from the PROXY protocol";
    ProxyProtocolPort "proxy_protocol_port" "client port from the PROXY protocol";
    ProxyProtocolServerAddr "proxy_protocol_server_addr" "server address from the PROXY protocol";
    ProxyProtocolServerPort "proxy_protocol_server_port" "server port from the PROXY protocol";
    QueryString "query_string" "same as `$args`";
    RealipRemoteAddr "realip_remote_addr" "address of the connection, before a trusted proxy's field is used";
    RealipRemotePort "realip_remote_port" "port of the connection, before a trusted proxy's field is used";
    RealpathRoot "realpath_root" "`$document_root` with symbolic links resolved";
    RemoteAddr "remote_addr" "client address";
    RemotePort "remote_port" "client port";
    RemoteUser "remote_user" "user name of Basic authentication";
    Request "request" "request line as received";
    RequestBody "request_body" "request body, if it is in memory";
    RequestBodyFile "request_body_file" "name of the file with the request body (see `client_body_in_file_only`)";
    RequestCompletion "request_completion" "`OK` if the response was sent completely, else empty";
    RequestFilename "request_filename" "file path for this request";
    RequestId "request_id" "16 random bytes in hexadecimal";
    RequestLength "request_length" "bytes of the request: line, fields and body";
    RequestMethod "request_method" "request method";
    RequestPort "request_port" "port of the request target or of the Host field";
    RequestTime "request_time" "seconds since the first byte of the request, with milliseconds";
    RequestUri "request_uri" "request target as received";
    Scheme "scheme" "http or https";
    SecureLink "secure_link" "`1` for a link that `secure_link` finds valid, `0` for one that is over, else empty; with `secure_link_secret`, the rest of the link";
    SecureLinkExpires "secure_link_expires" "time in seconds at which the link of `secure_link` is over";
    ServerAddr "server_addr" "address that accepted the connection";
    ServerName "server_name" "first name of the server that took the request";
    ServerPort "server_port" "port that accepted the connection";
    ServerProtocol "server_protocol" "HTTP/1.0, HTTP/1.1";
    SliceRange "slice_range" "range of the part that `slice` asks for, as in `bytes=0-1048575`; empty without `slice`";
    SslAlpnProtocol "ssl_alpn_protocol" "protocol that TLS agreed on (ALPN): h2 or http/1.1";
    SslCipher "ssl_cipher" "cipher of the TLS connection";
    SslCiphers "ssl_ciphers" "cipher suites that the client offers, as names of OpenSSL or numbers, separated by colons";
    SslClientCert "ssl_client_cert" "the client's certificate in PEM format, a tab before each line but the first; use `$ssl_client_escaped_cert`";
    SslClientEscapedCert "ssl_client_escaped_cert" "the client's certificate in PEM format, percent-encoded";
    SslClientFingerprint "ssl_client_fingerprint" "SHA-1 of the client's certificate";
    SslClientIDn "ssl_client_i_dn" "issuer of the client's certificate, as in RFC 2253";
    SslClientIDnLegacy "ssl_client_i_dn_legacy" "issuer of the client's certificate, with slashes";
    SslClientRawCert "ssl_client_raw_cert" "the client's certificate in PEM format";
    SslClientSDn "ssl_client_s_dn" "subject of the client's certificate, as in RFC 2253";
    SslClientSDnLegacy "ssl_client_s_dn_legacy" "subject of the client's certificate, with slashes";
    SslClientSerial "ssl_client_serial" "serial number of the client's certificate";
    SslClientVEnd "ssl_client_v_end" "end of the client's certificate";
    SslClientVRemain "ssl_client_v_remain" "days until the client's certificate ends";
    SslClientVStart "ssl_client_v_start" "start of the client's certificate";
    SslClientVerify "ssl_client_verify" "SUCCESS, FAILED with a reason, or NONE without a certificate";
    SslCurve "ssl_curve" "group of the TLS key exchange";
    SslCurves "ssl_curves" "groups for the TLS key exchange that the client offers, as names of OpenSSL or numbers, separated by colons";
    SslEarlyData "ssl_early_data" "`1` if the request came ahead of the end of the TLS handshake (`ssl_early_data on`)";
    SslProtocol "ssl_protocol" "TLSv1.2 or TLSv1.3";
    SslServerName "ssl_server_name" "name that the client asked for in the TLS handshake (SNI)";
    SslSessionId "ssl_session_id" "identifier of the TLS session in hexadecimal; in TLS 1.3, which has none, a value that no other connection has";
    SslSessionReused "ssl_session_reused" "`r` if the TLS session was resumed, else `.`";
    Status "status" "status of the response";
    TimeIso8601 "time_iso8601" "local time, ISO 8601";
    TimeLocal "time_local" "local time, common log format";
    UidGot "uid_got" "name and identifier of the cookie of `userid` that the client sent";
    UidSet "uid_set" "name and identifier of the cookie of `userid` that the response sets";
    UpstreamAddr "upstream_addr" "addresses of the upstream servers that were tried";
    UpstreamBytesReceived "upstream_bytes_received" "bytes received from each upstream server";
    UpstreamBytesSent "upstream_bytes_sent" "bytes sent to each upstream server";
    UpstreamCacheAge "upstream_cache_age" "age of the stored response in seconds";
    UpstreamCacheKey "upstream_cache_key" "cache key of the request";
    UpstreamCacheLastModified "upstream_cache_last_modified" "Last-Modified of the stored response";
    UpstreamCacheStatus "upstream_cache_status" "MISS, BYPASS, EXPIRED, STALE, UPDATING, REVALIDATED or HIT";
    UpstreamConnectTime "upstream_connect_time" "time spent connecting, one value for each server tried";
    UpstreamHeaderTime "upstream_header_time" "time to the response head, one value for each server tried";
    UpstreamQueueTime "upstream_queue_time" "time spent waiting in the `queue`, one value for each server tried";
    UpstreamResponseLength "upstream_response_length" "bytes of each upstream response body";
    UpstreamResponseTime "upstream_response_time" "time to the end of the response, one value for each server tried";
    UpstreamStatus "upstream_status" "status of each upstream response";
    Uri "uri" "path of the request, decoded and normalised; changed by `rewrite` and internal redirects";
    CacheStatus "cache_status" "what the cache did, in the form of the Cache-Status field (RFC 9211)";
    CacheReason "cache_reason" "why the response was not stored or did not come from the cache, in one word of [cache-reasons.md](cache-reasons.md)";
    ZstdRatio "zstd_ratio" "compression ratio of the response, if it was compressed with zstd";
}

#[cfg(test)]
mod tests {
    use super::Builtin;

    #[test]
    fn each_variable_stands_at_its_index_and_is_found_by_its_name() {
        assert_eq!(Builtin::ALL.len(), Builtin::COUNT);
        for (index, builtin) in Builtin::ALL.iter().enumerate() {
            assert_eq!(builtin.index(), index);
            assert_eq!(Builtin::from_name(builtin.name()), Some(*builtin));
        }
    }
}
