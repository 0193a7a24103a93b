//! Who may come in, and who a client is.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("allow", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats()
        .short("let an address or network in")
        .long("The lines of `allow` and `deny` are looked at in order; the first that fits decides. Where none fits, the client may come in.")
        .example("allow 192.0.2.0/24;"),
    Directive::new("auth_basic", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "REALM | off").inherited()
        .default("off")
        .short("ask for a name and a password")
        .long("The text is what browsers show. It may have variables; `off` ends what was inherited.")
        .example(r#"auth_basic "Members"; auth_basic_user_file /etc/mayfly/users;"#),
    Directive::new("auth_basic_user_file", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "FILE").inherited()
        .short("names and passwords")
        .long("Lines of `name:password`, with the password hashed as `htpasswd` or `openssl passwd` do. A relative path starts at the folder of the configuration.")
        .example("auth_basic_user_file /etc/mayfly/users;"),
    Directive::new("auth_delay", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0s")
        .short("how long a wrong password waits")
        .long("It slows guessing down.")
        .example("auth_delay 1s;"),
    Directive::new("auth_request", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "URI | off").inherited()
        .default("off")
        .short("let another path of this site decide")
        .long("Before the content, a subrequest without body asks the path. A status of 2xx lets the client in; 401 and 403 are passed on, 401 with its `WWW-Authenticate`; anything else is 500. Its body is thrown away. `allow`, `deny` and `auth_basic` are asked first; `satisfy any` ends the asking with the first that agrees.")
        .example("auth_request /auth;"),
    Directive::new("auth_request_set", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "$NAME VALUE").inherited_as_a_whole().repeats()
        .short("keep a value of the subrequest")
        .long("Once `auth_request` has its answer, the variable takes the value as the subrequest sees it: `$upstream_http_*` are the fields of its response.")
        .example("auth_request_set $user $upstream_http_x_user;"),
    Directive::new("deny", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats()
        .short("keep an address or network out")
        .long("The lines of `allow` and `deny` are looked at in order; the first that fits decides. `deny all` as the last keeps everybody else out, with 403.")
        .example("deny all;"),
    Directive::new("deny_reason", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "TEXT").inherited()
        .short("what the error log says about who is kept out")
        .long("The text stands behind `access forbidden by rule` in the lines about requests that `deny` refused. Clients do not see it. An empty text takes an inherited one away.")
        .example(r#"deny_reason "A database dump.";"#),
    Directive::new("limit_except", &[Context::Location])
        .takes(1, usize::MAX, "METHOD ... { }").block()
        .short("rules for other methods")
        .long("What stands inside holds for requests with any method but those named; GET stands for HEAD as well. For such requests the location's `rewrite`, `if` and `set` are not run, and its handler and `try_files` remain.")
        .example("limit_except GET POST { deny all; }"),
    Directive::new("mirror", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "URI | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("send a copy of each request to another path")
        .long("A subrequest with the same method, arguments and body asks the path in the background; its response is thrown away. The client does not wait for it. Several lines make several copies. At most 1024 copies are under way at once in the whole server; what comes beyond is not copied, and the error log says so.")
        .example("mirror /mirror;"),
    Directive::new("mirror_request_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("copies have the body, too")
        .long("With `on`, the body is read whole before the request goes on, so that `*_request_buffering off` has no effect there. With `off`, copies have no body; their location should then not pass on a Content-Length.")
        .example("mirror_request_body off;"),
    Directive::new("real_ip_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD | X-Real-IP | X-Forwarded-For | proxy_protocol").inherited()
        .default("X-Real-IP")
        .short("where a proxy writes the client's address")
        .long("A field such as `X-Forwarded-For`, whose last address is taken, or `proxy_protocol`.")
        .example("real_ip_header X-Forwarded-For;"),
    Directive::new("real_ip_recursive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("look past several proxies")
        .long("With `on`, addresses of believed proxies at the end of the field are skipped.")
        .example("real_ip_recursive on;"),
    Directive::new("set_real_ip_from", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ADDRESS | NETWORK | unix:").inherited_as_a_whole().repeats()
        .short("a proxy that is believed")
        .long("Requests from this address or network have their client's address in a field that the proxy writes (`real_ip_header`). A host name stands for all its addresses.")
        .example("set_real_ip_from 10.0.0.0/8;"),
    Directive::new("trusted_proxy", &[Context::Http, Context::Server])
        .takes(1, usize::MAX, "ADDRESS | NETWORK | unix: ...").inherited_as_a_whole().repeats()
        .short("proxies in front whose word counts")
        .long("Requests from one of these addresses come through a proxy in front. It is believed in what it says of the visitor: the client's address in `X-Forwarded-For` (the last one that is not a trusted proxy itself), the scheme in `X-Forwarded-Proto` (`https`; anything else is http), the host in `X-Forwarded-Host`. `$remote_addr`, `$scheme`, `$https`, `$host` and `$http_host` tell what it says. From anybody else these fields mean nothing. It takes the place of `set_real_ip_from`, `real_ip_header` and `real_ip_recursive`. Where servers share a listener, what the default server of the listener says decides about host and scheme.")
        .example("trusted_proxy 127.0.0.1 10.0.0.0/8;"),
    Directive::new("valid_referers", &[Context::Server, Context::Location])
        .takes(1, usize::MAX, "none | blocked | server_names | NAME ...").inherited_as_a_whole().repeats()
        .short("pages that may link here")
        .long("Sets `$invalid_referer` to an empty text where the request's `Referer` is one of those named, else to 1. `none` is a request without the field, `blocked` one whose field a firewall has emptied, `server_names` the server's own names. Names may be wildcards, have a path, or be patterns after `~`.")
        .example("valid_referers none blocked server_names *.example.org;"),
];
