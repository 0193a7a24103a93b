//! Table of the directives that only `proxy_*` has. Directives that it shares with FastCGI are
//! in `fastcgi.rs` and `cache.rs`, with `*` for the prefix.

use super::declaration::*;
use super::{Context, Directive};
use crate::model::ProxyVersion;

table! {
    _ = lines("proxy_cookie_domain", LEVELS, (1, 2), "off | DOMAIN REPLACEMENT")
        .default("off").inherited_as_a_whole().repeats().text(
        "changes the domain of cookies", "proxy_cookie_domain localhost example.org;", "\
        If the attribute `domain` of a `Set-Cookie` is DOMAIN, it becomes the replacement. Case and a dot at the \
        beginning do not count. After `~`, DOMAIN is a pattern, and the replacement may contain its groups. The \
        first line that matches is used.");
    _ = lines("proxy_cookie_flags", LEVELS, (1, MANY), "off | COOKIE [FLAG ...]")
        .default("off").inherited_as_a_whole().repeats().text(
        "adds flags to cookies or removes them", "proxy_cookie_flags session secure httponly samesite=lax;", "\
        `secure`, `httponly`, `samesite=strict`, `samesite=lax` and `samesite=none` add a flag. `nosecure`, \
        `nohttponly` and `nosamesite` remove one. COOKIE is a name, or a pattern after `~`. The first line that \
        matches is used.");
    _ = lines("proxy_cookie_path", LEVELS, (1, 2), "off | PATH REPLACEMENT")
        .default("off").inherited_as_a_whole().repeats().text(
        "changes the path of cookies", "proxy_cookie_path /app/ /;", "\
        If the attribute `path` of a `Set-Cookie` begins with PATH, this part becomes the replacement. After `~` \
        (case counts) or `~*` (case does not count), PATH is a pattern for the whole attribute, and the replacement \
        may contain its groups. The first line that matches is used.");
    _ = size("proxy_headers_hash_bucket_size", LEVELS).default("64").ignored("Mayfly sizes its tables itself").text(
        "sets the size of nginx's table for proxy_set_header", "proxy_headers_hash_bucket_size 128;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    _ = size("proxy_headers_hash_max_size", LEVELS).default("512").ignored("Mayfly sizes its tables itself").text(
        "sets the size of nginx's table for proxy_set_header", "proxy_headers_hash_max_size 1024;",
        "The line may be removed. Tables in Mayfly always have the size that they need.");
    PROXY_HTTP_VERSION: Choice<ProxyVersion> = choice("proxy_http_version", LEVELS, "1.0 | 1.1", &[
        ("1.0", ProxyVersion::Http10), ("1.1", ProxyVersion::Http11),
    ])
        .default("1.1").text("sets the version of HTTP for requests to the upstream", "proxy_http_version 1.0;", "\
        With 1.1, connections are kept for further requests, and a body of unknown length can be sent in chunks. Use \
        1.0 only for servers that do not support 1.1.");
    _ = lines("proxy_method", LEVELS, (1, 1), "METHOD").inherited().text(
        "sets the method of requests to the upstream", "proxy_method POST;",
        "It replaces the client's method. The value may contain variables.");
    _ = lines("proxy_pass", &[Context::Location, Context::LocationIf, Context::LimitExcept], (1, 1), "URL").text(
        "sends requests to an HTTP server", "proxy_pass http://127.0.0.1:8080;", "\
        The URL begins with `http://` or `https://`. Then follow a host or the name of an `upstream` block, a port, \
        and a path. `http://unix:/run/app.sock:/` names a unix socket.\n\n\
        - Without a path, the request target is sent as the client sent it.\n\
        - With a path, even if it is only `/`, this path replaces the part of the request path that the location \
        names.\n\
        - If the URL contains variables, its path is sent as it is.\n\n\
        The directive is not inherited, except by an `if` in its location.");
    PROXY_PASS_TRAILERS: Flag = flag("proxy_pass_trailers", LEVELS, "off").text(
        "sends fields after the response body to the client", "proxy_pass_trailers on;", "\
        With `on`, trailer fields of the upstream's response are sent to the client. The upstream sends them only if \
        it is asked to: add `proxy_set_header Connection te; proxy_set_header TE trailers;`.");
    _ = lines("proxy_redirect", LEVELS, (1, 2), "default | off | REDIRECT REPLACEMENT")
        .default("default").inherited_as_a_whole().repeats().text(
        "changes redirects of the upstream", "proxy_redirect http://app.internal/ /;", "\
        If the field `Location`, or the URL in the field `Refresh`, begins with REDIRECT, this part becomes the \
        replacement. After `~` (case counts) or `~*` (case does not count), REDIRECT is a pattern for the whole \
        value, and the replacement may contain its groups. The first line that matches is used.\n\n\
        `default` replaces the URL of `proxy_pass` by the path of the location.");
    _ = lines("proxy_set_body", LEVELS, (1, 1), "VALUE").inherited().text(
        "sets the body of requests to the upstream", "proxy_set_body $request_uri;",
        "It replaces the client's body. The value may contain variables.");
    _ = lines("proxy_set_header", LEVELS, (2, 2), "FIELD VALUE")
        .default("Host $proxy_host").inherited_as_a_whole().repeats().text(
        "sets a field of requests to the upstream", "proxy_set_header Host $host;", "\
        It replaces the client's field of this name. If the value is empty, the field is not sent. If a level has \
        one line or more, nothing is inherited from the outer levels. `Content-Length` and `Transfer-Encoding` \
        always describe the body that is sent.");
    _ = lines("proxy_ssl_certificate", LEVELS, (1, 1), "FILE").inherited().text(
        "sets the certificate that is shown to upstreams", "proxy_ssl_certificate /etc/mayfly/client.pem;", "\
        The file is in PEM format: our certificate first, then intermediate ones. It needs \
        `proxy_ssl_certificate_key`. Use it for upstreams that check the client's certificate.\n\n\
        The name may contain variables. Then the files are read for each connection, unless \
        `proxy_ssl_certificate_cache` says otherwise, and connections are not kept. If a variable's value contains \
        `..`, or a file cannot be used, the request gets 500. An empty name means that no certificate is shown.");
    _ = lines("proxy_ssl_certificate_cache", LEVELS, (1, 3), "off | max=N [inactive=TIME] [valid=TIME]")
        .default("off").inherited().text(
        "sets a cache for certificates and keys whose names have variables", "proxy_ssl_certificate_cache max=1000 inactive=20s valid=1m;", "\
        `max` is their number, a certificate and its key counted as two. One that was not used for the time \
        `inactive` (10 seconds) is forgotten, and one that was read the time `valid` ago (60 seconds) is read again. \
        Certificates with encrypted keys are not kept.");
    _ = lines("proxy_ssl_certificate_key", LEVELS, (1, 1), "FILE").inherited().text(
        "sets the key of proxy_ssl_certificate", "proxy_ssl_certificate_key /etc/mayfly/client.key;", "\
        The file is in PEM format. Its name may contain variables. For an encrypted key (PKCS #8), \
        `proxy_ssl_password_file` is needed.");
    _ = lines("proxy_ssl_ciphers", LEVELS, (1, 1), "CIPHERS")
        .default("DEFAULT").inherited().missing("the ciphers are those of rustls").text(
        "sets the ciphers for connections to upstreams", "proxy_ssl_ciphers HIGH:!aNULL;",
        "All ciphers of rustls are strong. They cannot be chosen.");
    _ = lines("proxy_ssl_crl", LEVELS, (1, 1), "FILE").inherited().text(
        "sets a list of revoked certificates", "proxy_ssl_crl /etc/mayfly/revoked.pem;", "\
        The file is in PEM format and has one list for each authority of the chain. It is used with \
        `proxy_ssl_verify on`.");
    _ = lines("proxy_ssl_name", LEVELS, (1, 1), "NAME").default("$proxy_host").inherited().text(
        "sets the name that the upstream's certificate must have", "proxy_ssl_name app.internal;",
        "With `proxy_ssl_server_name on`, this name is also sent to the upstream. The value may contain variables.");
    _ = lines("proxy_ssl_password_file", LEVELS, (1, 1), "FILE").inherited().text(
        "sets the passwords for the keys of proxy_ssl_certificate_key", "proxy_ssl_password_file /etc/mayfly/passwords;",
        "Each line is a password. They are tried in turn.");
    _ = lines("proxy_ssl_protocols", LEVELS, (1, MANY), "TLSv1.2 | TLSv1.3 ...")
        .default("TLSv1.2 TLSv1.3").inherited_as_a_whole().repeats().text(
        "sets the versions of TLS for connections to upstreams", "proxy_ssl_protocols TLSv1.3;",
        "Older versions than TLSv1.2 may be named, but are never used.");
    PROXY_SSL_SERVER_NAME: Flag = flag("proxy_ssl_server_name", LEVELS, "off").text(
        "sets whether the upstream is told which name is meant", "proxy_ssl_server_name on;", "\
        With `on`, the name of `proxy_ssl_name` is sent at the beginning of the connection (SNI, RFC 6066). An \
        upstream with certificates for several names needs it.");
    PROXY_SSL_SESSION_REUSE: Flag = flag("proxy_ssl_session_reuse", LEVELS, "on").text(
        "sets whether TLS sessions are used again", "proxy_ssl_session_reuse off;",
        "With `on`, a new connection to the same server needs a shorter handshake.");
    _ = lines("proxy_ssl_trusted_certificate", LEVELS, (1, 1), "FILE").inherited().text(
        "sets the certificates that are trusted", "proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;", "\
        The file is in PEM format. It contains certificates of authorities, or the upstream's own certificate. It is \
        used with `proxy_ssl_verify on`.");
    PROXY_SSL_VERIFY: Flag = flag("proxy_ssl_verify", LEVELS, "off").text(
        "sets whether the upstream's certificate is checked", "proxy_ssl_verify on;", "\
        With `off`, as in nginx, any certificate is accepted. Write `on` if you do not control the network between \
        the server and the upstream. `on` needs `proxy_ssl_trusted_certificate`.");
    PROXY_SSL_VERIFY_DEPTH: Number = number("proxy_ssl_verify_depth", LEVELS).default("1").text(
        "limits the length of a chain of certificates", "proxy_ssl_verify_depth 2;",
        "It is the number of certificates that may be between the upstream's certificate and a trusted one.");
}
