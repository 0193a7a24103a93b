//! Table of the directives that only `proxy_*` has. Directives that it shares with FastCGI are
//! in `fastcgi.rs` and `cache.rs`, with `*` for the prefix.

use super::{Context, Directive};

const EVERYWHERE: &[Context] = &[Context::Http, Context::Server, Context::Location];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("proxy_cookie_domain", EVERYWHERE)
        .takes(1, 2, "off | DOMAIN REPLACEMENT").inherited_as_a_whole().repeats()
        .default("off")
        .short("changes the domain of cookies")
        .long("\
            If the attribute `domain` of a `Set-Cookie` is DOMAIN, it becomes the replacement. Case and \
            a dot at the beginning do not count. After `~`, DOMAIN is a pattern, and the replacement may \
            contain its groups. The first line that matches is used.")
        .example("proxy_cookie_domain localhost example.org;"),
    Directive::new("proxy_cookie_flags", EVERYWHERE)
        .takes(1, usize::MAX, "off | COOKIE [FLAG ...]").inherited_as_a_whole().repeats()
        .default("off")
        .short("adds flags to cookies or removes them")
        .long("\
            `secure`, `httponly`, `samesite=strict`, `samesite=lax` and `samesite=none` add a flag. \
            `nosecure`, `nohttponly` and `nosamesite` remove one. COOKIE is a name, or a pattern after \
            `~`. The first line that matches is used.")
        .example("proxy_cookie_flags session secure httponly samesite=lax;"),
    Directive::new("proxy_cookie_path", EVERYWHERE)
        .takes(1, 2, "off | PATH REPLACEMENT").inherited_as_a_whole().repeats()
        .default("off")
        .short("changes the path of cookies")
        .long("\
            If the attribute `path` of a `Set-Cookie` begins with PATH, this part becomes the \
            replacement. After `~` (case counts) or `~*` (case does not count), PATH is a pattern for \
            the whole attribute, and the replacement may contain its groups. The first line that matches \
            is used.")
        .example("proxy_cookie_path /app/ /;"),
    Directive::new("proxy_headers_hash_bucket_size", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("64")
        .ignored("Mayfly sizes its tables itself")
        .short("sets the size of nginx's table for proxy_set_header")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("proxy_headers_hash_bucket_size 128;"),
    Directive::new("proxy_headers_hash_max_size", EVERYWHERE)
        .takes(1, 1, "SIZE").inherited()
        .default("512")
        .ignored("Mayfly sizes its tables itself")
        .short("sets the size of nginx's table for proxy_set_header")
        .long("The line may be removed. Tables in Mayfly always have the size that they need.")
        .example("proxy_headers_hash_max_size 1024;"),
    Directive::new("proxy_http_version", EVERYWHERE)
        .takes(1, 1, "1.0 | 1.1").inherited()
        .default("1.1")
        .short("sets the version of HTTP for requests to the upstream")
        .long("\
            With 1.1, connections are kept for further requests, and a body of unknown length can be \
            sent in chunks. Use 1.0 only for servers that do not support 1.1.")
        .example("proxy_http_version 1.0;"),
    Directive::new("proxy_method", EVERYWHERE)
        .takes(1, 1, "METHOD").inherited()
        .short("sets the method of requests to the upstream")
        .long("It replaces the client's method. The value may contain variables.")
        .example("proxy_method POST;"),
    Directive::new("proxy_pass", &[Context::Location, Context::LocationIf, Context::LimitExcept])
        .takes(1, 1, "URL")
        .short("sends requests to an HTTP server")
        .long("\
            The URL begins with `http://` or `https://`. Then follow a host or the name of an `upstream` \
            block, a port, and a path. `http://unix:/run/app.sock:/` names a unix socket.\n\n\
            - Without a path, the request target is sent as the client sent it.\n\
            - With a path, even if it is only `/`, this path replaces the part of the request path that \
            the location names.\n\
            - If the URL contains variables, its path is sent as it is.\n\n\
            The directive is not inherited, except by an `if` in its location.")
        .example("proxy_pass http://127.0.0.1:8080;"),
    Directive::new("proxy_pass_trailers", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sends fields after the response body to the client")
        .long("\
            With `on`, trailer fields of the upstream's response are sent to the client. The upstream \
            sends them only if it is asked to: add `proxy_set_header Connection te; proxy_set_header TE \
            trailers;`.")
        .example("proxy_pass_trailers on;"),
    Directive::new("proxy_redirect", EVERYWHERE)
        .takes(1, 2, "default | off | REDIRECT REPLACEMENT").inherited_as_a_whole().repeats()
        .default("default")
        .short("changes redirects of the upstream")
        .long("\
            If the field `Location`, or the URL in the field `Refresh`, begins with REDIRECT, this part \
            becomes the replacement. After `~` (case counts) or `~*` (case does not count), REDIRECT is \
            a pattern for the whole value, and the replacement may contain its groups. The first line \
            that matches is used.\n\n\
            `default` replaces the URL of `proxy_pass` by the path of the location.")
        .example("proxy_redirect http://app.internal/ /;"),
    Directive::new("proxy_set_body", EVERYWHERE)
        .takes(1, 1, "VALUE").inherited()
        .short("sets the body of requests to the upstream")
        .long("It replaces the client's body. The value may contain variables.")
        .example("proxy_set_body $request_uri;"),
    Directive::new("proxy_set_header", EVERYWHERE)
        .takes(2, 2, "FIELD VALUE").inherited_as_a_whole().repeats()
        .default("Host $proxy_host")
        .short("sets a field of requests to the upstream")
        .long("\
            It replaces the client's field of this name. If the value is empty, the field is not sent. \
            If a level has one line or more, nothing is inherited from the outer levels. \
            `Content-Length` and `Transfer-Encoding` always describe the body that is sent.")
        .example("proxy_set_header Host $host;"),
    Directive::new("proxy_ssl_certificate", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("sets the certificate that is shown to upstreams")
        .long("\
            The file is in PEM format: our certificate first, then intermediate ones. It needs \
            `proxy_ssl_certificate_key`. Use it for upstreams that check the client's certificate.\n\n\
            The name may contain variables. Then the files are read for each connection, unless \
            `proxy_ssl_certificate_cache` says otherwise, and connections are not kept. If a variable's value \
            contains `..`, or a file cannot be used, the request gets 500. An empty name means that no certificate is \
            shown.")
        .example("proxy_ssl_certificate /etc/mayfly/client.pem;"),
    Directive::new("proxy_ssl_certificate_cache", EVERYWHERE)
        .takes(1, 3, "off | max=N [inactive=TIME] [valid=TIME]").inherited()
        .default("off")
        .short("sets a cache for certificates and keys whose names have variables")
        .long("\
            `max` is their number, a certificate and its key counted as two. One that was not used for the time \
            `inactive` (10 seconds) is forgotten, and one that was read the time `valid` ago (60 seconds) is read \
            again. Certificates with encrypted keys are not kept.")
        .example("proxy_ssl_certificate_cache max=1000 inactive=20s valid=1m;"),
    Directive::new("proxy_ssl_certificate_key", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("sets the key of proxy_ssl_certificate")
        .long("\
            The file is in PEM format. Its name may contain variables. For an encrypted key (PKCS #8), \
            `proxy_ssl_password_file` is needed.")
        .example("proxy_ssl_certificate_key /etc/mayfly/client.key;"),
    Directive::new("proxy_ssl_ciphers", EVERYWHERE)
        .takes(1, 1, "CIPHERS").inherited()
        .default("DEFAULT")
        .missing("the ciphers are those of rustls")
        .short("sets the ciphers for connections to upstreams")
        .long("All ciphers of rustls are strong. They cannot be chosen.")
        .example("proxy_ssl_ciphers HIGH:!aNULL;"),
    Directive::new("proxy_ssl_crl", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("sets a list of revoked certificates")
        .long("\
            The file is in PEM format and has one list for each authority of the chain. It is used with \
            `proxy_ssl_verify on`.")
        .example("proxy_ssl_crl /etc/mayfly/revoked.pem;"),
    Directive::new("proxy_ssl_name", EVERYWHERE)
        .takes(1, 1, "NAME").inherited()
        .default("$proxy_host")
        .short("sets the name that the upstream's certificate must have")
        .long("\
            With `proxy_ssl_server_name on`, this name is also sent to the upstream. The value may \
            contain variables.")
        .example("proxy_ssl_name app.internal;"),
    Directive::new("proxy_ssl_password_file", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("sets the passwords for the keys of proxy_ssl_certificate_key")
        .long("Each line is a password. They are tried in turn.")
        .example("proxy_ssl_password_file /etc/mayfly/passwords;"),
    Directive::new("proxy_ssl_protocols", EVERYWHERE)
        .takes(1, usize::MAX, "TLSv1.2 | TLSv1.3 ...").inherited_as_a_whole().repeats()
        .default("TLSv1.2 TLSv1.3")
        .short("sets the versions of TLS for connections to upstreams")
        .long("Older versions than TLSv1.2 may be named, but are never used.")
        .example("proxy_ssl_protocols TLSv1.3;"),
    Directive::new("proxy_ssl_server_name", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether the upstream is told which name is meant")
        .long("\
            With `on`, the name of `proxy_ssl_name` is sent at the beginning of the connection (SNI, RFC \
            6066). An upstream with certificates for several names needs it.")
        .example("proxy_ssl_server_name on;"),
    Directive::new("proxy_ssl_session_reuse", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether TLS sessions are used again")
        .long("With `on`, a new connection to the same server needs a shorter handshake.")
        .example("proxy_ssl_session_reuse off;"),
    Directive::new("proxy_ssl_trusted_certificate", EVERYWHERE)
        .takes(1, 1, "FILE").inherited()
        .short("sets the certificates that are trusted")
        .long("\
            The file is in PEM format. It contains certificates of authorities, or the upstream's own \
            certificate. It is used with `proxy_ssl_verify on`.")
        .example("proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;"),
    Directive::new("proxy_ssl_verify", EVERYWHERE)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether the upstream's certificate is checked")
        .long("\
            With `off`, as in nginx, any certificate is accepted. Write `on` if you do not control the \
            network between the server and the upstream. `on` needs `proxy_ssl_trusted_certificate`.")
        .example("proxy_ssl_verify on;"),
    Directive::new("proxy_ssl_verify_depth", EVERYWHERE)
        .takes(1, 1, "NUMBER").inherited()
        .default("1")
        .short("limits the length of a chain of certificates")
        .long("\
            It is the number of certificates that may be between the upstream's certificate and a \
            trusted one.")
        .example("proxy_ssl_verify_depth 2;"),
];
