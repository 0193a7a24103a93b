//! Table of directives for access and for the client's address.

use super::{Context, Directive};

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("allow", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats()
        .short("allows clients by address")
        .long("\
            The lines `allow` and `deny` are compared in order, and the first one that contains the \
            client's address decides. If no line contains it, the client is allowed. `unix:` means \
            connections to a unix socket.")
        .example("allow 192.0.2.0/24;"),
    Directive::new("apache_rules", &[Context::Server])
        .takes(1, 1, "TEXT")
        .short("evaluates sections of Apache's configuration")
        .long("\
            The text holds what stands in a virtual host of Apache 2.4: `<Directory>`, `<Files>`, \
            `<Location>` and `<If>` sections, and directives that a `.htaccess` may contain. It is \
            evaluated together with the `.htaccess` files, in Apache's order, before a location is \
            chosen. Rules outside of sections are run before the path is mapped to a file. \
            `AllowOverride` says in which directories `.htaccess` files count: in none without it, as \
            in Apache. They also need `htaccess on`.\n\n\
            The text opens nothing that a location refuses. A line that may limit access and cannot be \
            evaluated closes what it stands in, and `mayfly check` names it. Directories and passwords \
            have absolute paths. `mayfly convert` writes this directive.")
        .example(r#"apache_rules '
    <Directory /srv/www/private>
        Require ip 192.0.2.0/24
    </Directory>
';"#),
    Directive::new("auth_basic", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "REALM | off").inherited()
        .default("off")
        .short("asks for a user name and a password")
        .long("\
            The text is shown by browsers. It may contain variables. `off` removes an inherited value. \
            It needs `auth_basic_user_file`.")
        .example(r#"auth_basic "Members"; auth_basic_user_file /etc/mayfly/users;"#),
    Directive::new("auth_basic_user_file", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "FILE").inherited()
        .short("sets the file with user names and passwords")
        .long("\
            Each line is `name:password`. The password is a hash, as the programs `htpasswd` and \
            `openssl passwd` make it: bcrypt, SHA-2, MD5, `$apr1$`, DES, `{SHA}`, `{SSHA}`, or `{PLAIN}` \
            and the password itself. No password fits another format, and the error log says so. A \
            changed file is read again. A relative path starts at the directory of the configuration.")
        .example("auth_basic_user_file /etc/mayfly/users;"),
    Directive::new("auth_delay", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TIME").inherited()
        .default("0s")
        .short("delays the response to a wrong password")
        .long("It makes guessing passwords slow.")
        .example("auth_delay 1s;"),
    Directive::new("auth_request", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "URI | off").inherited()
        .default("off")
        .short("asks another path of this site whether a request is allowed")
        .long("\
            The server makes a subrequest without a body to the path. If its status is 2xx, the request \
            is allowed. If it is 401 or 403, the client gets this status, and 401 also has the field \
            `WWW-Authenticate` of the subrequest. Any other status gives 500. The body of the subrequest \
            is not used.\n\n\
            `allow`, `deny` and `auth_basic` are checked before it. With `satisfy any`, it is asked only \
            if none of them allows the request.")
        .example("auth_request /auth;"),
    Directive::new("auth_request_set", &[Context::Http, Context::Server, Context::Location])
        .takes(2, 2, "$NAME VALUE").inherited_as_a_whole().repeats()
        .short("sets a variable from the subrequest of auth_request")
        .long("\
            The value is computed when the subrequest has ended. `$upstream_http_NAME` is then a field \
            of its response.")
        .example("auth_request_set $user $upstream_http_x_user;"),
    Directive::new("deny", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats()
        .short("refuses clients by address")
        .long("\
            The lines `allow` and `deny` are compared in order, and the first one that contains the \
            client's address decides. A refused client gets 403. Write `deny all` as the last line to \
            refuse everybody whom no earlier line allows.")
        .example("deny all;"),
    Directive::new("deny_reason", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept])
        .takes(1, 1, "TEXT").inherited()
        .short("sets a text for the error log about refused requests")
        .long("\
            The text is added to the message `access forbidden by rule` when `deny` refuses a request. \
            Clients do not see it. An empty text removes an inherited one.")
        .example(r#"deny_reason "A database dump.";"#),
    Directive::new("htaccess", &[Context::Http, Context::Server])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("obeys the .htaccess files of the site")
        .long("\
            Before a location is chosen, the `.htaccess` files on the way to the file of the path are \
            evaluated as Apache 2.4 evaluates them. They may refuse a request, redirect it, or lead it to \
            another path of the site. They open nothing that a location refuses. A changed file counts \
            within a second. A line that may limit access and cannot be evaluated closes its folder, and \
            the error log says so. The files are looked for below a `root` or `alias` without variables \
            of the server or of a location for a prefix.\n\n\
            Fields (`Header`), lifetimes (`ExpiresByType`), types of files (`AddType`) and pages of \
            errors (`ErrorDocument`) are added when a response is sent, so that a stored page has \
            nothing of them.")
        .example("htaccess on;"),
    Directive::new("limit_except", &[Context::Location])
        .takes(1, usize::MAX, "METHOD ... { }").block()
        .short("sets what holds for all methods except the named ones")
        .long("\
            The block holds for requests with other methods. GET includes HEAD. For these requests, \
            `rewrite`, `if` and `set` of the location are not run. Its `fastcgi_pass`, `proxy_pass` and \
            `try_files` still hold, unless the block contains another.")
        .example("limit_except GET POST { deny all; }"),
    Directive::new("mirror", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "URI | off").inherited_as_a_whole().repeats()
        .default("off")
        .short("sends a copy of each request to another path")
        .long("\
            The copy is a subrequest with the same method, arguments and body. Its response is not used, \
            and the client does not wait for it. Use it to try out a new application with real requests. \
            Several lines send several copies.\n\n\
            At most 1,024 copies are under way in the whole server. Further copies are not sent, and the \
            error log says so.")
        .example("mirror /mirror;"),
    Directive::new("mirror_request_body", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether copies have the request body")
        .long("\
            With `on`, the body is read completely before the request is sent on, so that \
            `fastcgi_request_buffering off` has no effect. With `off`, copies have no body: remove \
            `Content-Length` from them with `proxy_set_header`.")
        .example("mirror_request_body off;"),
    Directive::new("post_action", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "URI | off").inherited()
        .default("off")
        .short("makes a request when a response has been sent")
        .long("\
            A subrequest is made to the path, with the method and the arguments of the request and without its body. \
            Its response is not used, and the client does not wait for it. `$status`, `$bytes_sent` and \
            `$body_bytes_sent` are those of the response that was sent, so that an application can count them. It \
            is not made for requests of the server itself. Those that are under way are counted with the copies of \
            `mirror`. Named locations are not possible.")
        .example("post_action /count;"),
    Directive::new("real_ip_header", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "FIELD | X-Real-IP | X-Forwarded-For | proxy_protocol").inherited()
        .default("X-Real-IP")
        .short("sets where a trusted proxy writes the client's address")
        .long("\
            The value is a field, whose last address is used, or `proxy_protocol`. It has an effect on \
            connections from the addresses of `set_real_ip_from`.")
        .example("real_ip_header X-Forwarded-For;"),
    Directive::new("real_ip_recursive", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether several trusted proxies are skipped")
        .long("\
            With `on`, the last address in the field that is not a trusted proxy is the client's \
            address. With `off`, the last address is.")
        .example("real_ip_recursive on;"),
    Directive::new("secure_link", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "DIGEST[,EXPIRES]").inherited()
        .short("sets where a link has its digest and its end")
        .long("\
            The value has variables, such as `$arg_md5,$arg_expires`. Before the comma is an MD5 digest in \
            base64url, of the text of `secure_link_md5`. Behind it is the time at which the link is over, \
            in seconds since 1970. The variable `$secure_link` is then `1`, or `0` for a link that is over, \
            and empty for any other. Refuse these two with `if`.")
        .example("secure_link $arg_md5,$arg_expires;"),
    Directive::new("secure_link_md5", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "TEXT").inherited()
        .short("sets the text whose digest a link must have")
        .long("\
            The text has a secret, and what the link is to hold for: its path, its end, perhaps the address \
            of the client. `printf '1700000000/a.zip secret' | openssl md5 -binary | openssl base64 | tr +/ \
            -_ | tr -d =` makes such a digest.")
        .example(r#"secure_link_md5 "$secure_link_expires$uri secret";"#),
    Directive::new("secure_link_secret", &[Context::Location])
        .takes(1, 1, "WORD").inherited()
        .short("sets the secret of links of the older form")
        .long("\
            A link of this form is `/PREFIX/DIGEST/REST`. The digest is the MD5 of the rest and the secret, \
            in hexadecimal. `$secure_link` is then the rest, and empty for any other link. It cannot be \
            written beside `secure_link`.")
        .example("secure_link_secret word;"),
    Directive::new("set_real_ip_from", &[Context::Http, Context::Server, Context::Location])
        .takes(1, 1, "ADDRESS | NETWORK | unix:").inherited_as_a_whole().repeats()
        .short("names trusted proxies")
        .long("\
            For a connection from one of these addresses, the client's address is taken from \
            `real_ip_header`. A host name means all its addresses.")
        .example("set_real_ip_from 10.0.0.0/8;"),
    Directive::new("trusted_proxy", &[Context::Http, Context::Server])
        .takes(1, usize::MAX, "ADDRESS | NETWORK | unix: ...").inherited_as_a_whole().repeats()
        .short("names trusted proxies in front of the server")
        .long("\
            Use it when clients reach the server through a load balancer or a proxy for TLS. For \
            connections from these addresses, the server uses\n\n\
            - the client's address from `X-Forwarded-For`: the last address that is not a trusted proxy,\n\
            - the scheme from `X-Forwarded-Proto`: `https`, else `http`,\n\
            - the host from `X-Forwarded-Host`.\n\n\
            The variables `$remote_addr`, `$scheme`, `$https`, `$host` and `$http_host` have these \
            values. For other connections, the fields have no meaning. It replaces `set_real_ip_from`, \
            `real_ip_header` and `real_ip_recursive`. If several servers share an address, the line of \
            its default server decides about scheme and host.")
        .example("trusted_proxy 127.0.0.1 10.0.0.0/8;"),
    Directive::new("valid_referers", &[Context::Server, Context::Location])
        .takes(1, usize::MAX, "none | blocked | server_names | NAME ...").inherited_as_a_whole().repeats()
        .short("sets which pages may link to a location")
        .long("\
            It sets `$invalid_referer`: empty if the request field `Referer` is one of the named ones, \
            else `1`. Use it with `if`, to keep other sites from showing your pictures.\n\n\
            `none` is a request without the field. `blocked` is a field whose value does not begin with \
            `http://` or `https://`. `server_names` are the names of this server. Other names may have \
            wildcards and a path, or be patterns after `~`.")
        .example("valid_referers none blocked server_names *.example.org;"),
];
