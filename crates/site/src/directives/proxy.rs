//! HTTP upstreams: what only `proxy_*` has. What it shares with FastCGI stands
//! in `fastcgi.rs` and `cache.rs`, with `*` for the prefix.

use super::{Context, Directive};

const EVERYWHERE: &[Context] = &[Context::Http, Context::Server, Context::Location];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("proxy_cookie_domain", EVERYWHERE)
        .takes(1, 2, "off | DOMAIN REPLACEMENT").inherited_as_a_whole().repeats()
        .default("off")
        .short("write the domain of cookies anew")
        .long("Where the `domain` of a `Set-Cookie` is DOMAIN, the replacement is sent. Case and a dot at the beginning do not count. After `~`, DOMAIN is a pattern, whose groups may stand in the replacement. The first line that fits counts.")
        .example("proxy_cookie_domain localhost example.org;"),
    Directive::new("proxy_cookie_flags", EVERYWHERE)
        .takes(1, usize::MAX, "off | COOKIE [FLAG ...]").inherited_as_a_whole().repeats()
        .default("off")
        .short("add flags to cookies, or take them off")
        .long("`secure`, `httponly`, `samesite=strict`, `samesite=lax` and `samesite=none` are added, `nosecure`, `nohttponly` and `nosamesite` take a flag off. COOKIE is a name, or a pattern after `~`. The first line that fits counts.")
        .example("proxy_cookie_flags session secure httponly samesite=lax;"),
    Directive::new("proxy_cookie_path", EVERYWHERE)
        .takes(1, 2, "off | PATH REPLACEMENT").inherited_as_a_whole().repeats()
        .default("off")
        .short("write the path of cookies anew")
        .long("Where the `path` of a `Set-Cookie` begins with PATH, that part is replaced. After `~`, or `~*` without regard to case, PATH is a pattern for the whole, whose groups may stand in the replacement. The first line that fits counts.")
        .example("proxy_cookie_path /app/ /;"),
    Directive::new("proxy_headers_hash_bucket_size", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("Mayfly sizes its tables itself")
        .short("size of a table")
        .long("Mayfly sizes its tables itself. The line has no effect.")
        .example("proxy_headers_hash_bucket_size 128;"),
    Directive::new("proxy_headers_hash_max_size", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("Mayfly sizes its tables itself")
        .short("size of a table")
        .long("Mayfly sizes its tables itself. The line has no effect.")
        .example("proxy_headers_hash_max_size 1024;"),
    Directive::new("proxy_http_version", EVERYWHERE)
        .takes(1, 1, "1.0 | 1.1").inherited()
        .default("1.1")
        .short("the version of HTTP spoken to the upstream")
        .long("With 1.1, connections are kept for the next request, and bodies of unknown length are sent as they come.")
        .example("proxy_http_version 1.0;"),
    Directive::new("proxy_method", EVERYWHERE)
        .takes(1, 1, "METHOD").inherited()
        .short("the method of requests to the upstream")
        .long("It is sent in place of the client's. Variables may be used.")
        .example("proxy_method POST;"),
    Directive::new("proxy_pass", &[Context::Location, Context::LocationIf, Context::LimitExcept])
        .takes(1, 1, "URL")
        .short("hand requests to an HTTP server")
        .long("`http://` or `https://`, then a host or the name of an `upstream`, a port, and a path. `http://unix:PATH:` leads to a socket. With a path, it replaces the part of the request's path that the location names; without one, the request's target is sent as it came. Where variables are used, a path is sent as it is. It is not inherited, except by an `if` in its location.")
        .example("proxy_pass http://127.0.0.1:8080;"),
    Directive::new("proxy_pass_trailers", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("pass fields that follow a body")
        .long("With `on`, trailer fields of the upstream's response are sent to the client. The upstream must be asked for them: `proxy_set_header Connection te; proxy_set_header TE trailers;`.")
        .example("proxy_pass_trailers on;"),
    Directive::new("proxy_redirect", EVERYWHERE)
        .takes(1, 2, "default | off | REDIRECT REPLACEMENT").inherited_as_a_whole().repeats()
        .default("default")
        .short("write redirects of the upstream anew")
        .long("Where `Location` or the URL of `Refresh` begins with REDIRECT, that part is replaced. `default` stands for the URL of `proxy_pass` and the location's own path. After `~`, or `~*` without regard to case, REDIRECT is a pattern for the whole, whose groups may stand in the replacement. The first line that fits counts.")
        .example("proxy_redirect http://app.internal/ /;"),
    Directive::new("proxy_set_body", EVERYWHERE)
        .takes(1, 1, "VALUE").inherited()
        .short("the body of requests to the upstream")
        .long("It is sent in place of the client's. Variables may be used.")
        .example("proxy_set_body $request_uri;"),
    Directive::new("proxy_set_header", EVERYWHERE)
        .takes(2, 2, "FIELD VALUE").inherited_as_a_whole().repeats()
        .default("Host $proxy_host")
        .short("a field of requests to the upstream")
        .long("Sent in place of the client's field of that name; with an empty value the field is left out. One line at a level replaces all inherited ones. `Content-Length` and `Transfer-Encoding` are always those of the body that is sent.")
        .example("proxy_set_header Host $host;"),
    Directive::new("proxy_ssl_certificate", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("our certificate, for upstreams that ask for one")
        .long("A PEM file: ours first, then intermediate ones. `proxy_ssl_certificate_key` belongs to it.")
        .example("proxy_ssl_certificate /etc/mayfly/client.pem;"),
    Directive::new("proxy_ssl_certificate_key", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("the key of our certificate")
        .long("A PEM file with an unencrypted key.")
        .example("proxy_ssl_certificate_key /etc/mayfly/client.key;"),
    Directive::new("proxy_ssl_ciphers", EVERYWHERE)
        .takes(1, 1, "CIPHERS").inherited()
        .default("DEFAULT")
        .missing("the ciphers are those of rustls")
        .short("ciphers towards upstreams")
        .long("The ciphers are those of rustls, all of them strong. The line has no effect.")
        .example("proxy_ssl_ciphers HIGH:!aNULL;"),
    Directive::new("proxy_ssl_crl", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("certificates that are revoked")
        .long("A PEM file with a list for each authority of the chain; used with `proxy_ssl_verify`.")
        .example("proxy_ssl_crl /etc/mayfly/revoked.pem;"),
    Directive::new("proxy_ssl_name", EVERYWHERE)
        .takes(1, 1, "NAME").inherited()
        .default("$proxy_host")
        .short("the name that an upstream's certificate must have")
        .long("Also the name sent where `proxy_ssl_server_name` is on. Variables may be used.")
        .example("proxy_ssl_name app.internal;"),
    Directive::new("proxy_ssl_protocols", EVERYWHERE)
        .takes(1, usize::MAX, "TLSv1.2 | TLSv1.3 ...").inherited_as_a_whole().repeats()
        .default("TLSv1.2 TLSv1.3")
        .short("versions of TLS towards upstreams")
        .long("Older versions may be named and are not spoken.")
        .example("proxy_ssl_protocols TLSv1.3;"),
    Directive::new("proxy_ssl_server_name", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("tell the upstream which name is meant")
        .long("With `on`, the name of `proxy_ssl_name` is sent (SNI, RFC 6066). Upstreams with several names need it.")
        .example("proxy_ssl_server_name on;"),
    Directive::new("proxy_ssl_session_reuse", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("take sessions up again")
        .long("A session that is taken up again saves most of the handshake.")
        .example("proxy_ssl_session_reuse off;"),
    Directive::new("proxy_ssl_trusted_certificate", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("whom to trust")
        .long("A PEM file with authorities, or with the upstream's own certificate; used with `proxy_ssl_verify`.")
        .example("proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;"),
    Directive::new("proxy_ssl_verify", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("check the upstream's certificate")
        .long("With `off`, whoever answers is believed, as in nginx: write `on` wherever the way to the upstream is not your own.")
        .example("proxy_ssl_verify on;"),
    Directive::new("proxy_ssl_verify_depth", EVERYWHERE)
        .takes(1, 1, "NUMBER").inherited()
        .default("1")
        .short("how long a chain of certificates may be")
        .long("How many certificates may stand between the upstream's and a trusted one.")
        .example("proxy_ssl_verify_depth 2;"),
];
