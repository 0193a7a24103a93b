//! Table of directives for access and for the client's address.

use super::declaration::*;
use super::{Context, Directive};

table! {
    _ = lines("allow", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept], (1, 1), "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats().text(
        "allows clients by address", "allow 192.0.2.0/24;", "\
        The lines `allow` and `deny` are compared in order, and the first one that contains the client's address \
        decides. If no line contains it, the client is allowed. `unix:` means connections to a unix socket.");
    _ = lines("apache_rules", &[Context::Server], (1, 1), "TEXT").text(
        "evaluates sections of Apache's configuration", r#"apache_rules '
    <Directory /srv/www/private>
        Require ip 192.0.2.0/24
    </Directory>
';"#, "\
        The text holds what stands in a virtual host of Apache 2.4: `<Directory>`, `<Files>`, `<Location>` and \
        `<If>` sections, and directives that a `.htaccess` may contain. It is evaluated together with the \
        `.htaccess` files, in Apache's order, before a location is chosen. Rules outside of sections are run before \
        the path is mapped to a file. `AllowOverride` says in which directories `.htaccess` files count: in none \
        without it, as in Apache. They also need `htaccess on`.\n\n\
        The text opens nothing that a location refuses. A line that may limit access and cannot be evaluated closes \
        what it stands in, and `mayfly check` names it. Directories and passwords have absolute paths. `mayfly \
        convert` writes this directive.");
    _ = lines("auth_basic", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept], (1, 1), "REALM | off")
        .default("off").inherited().text(
        "asks for a user name and a password", r#"auth_basic "Members"; auth_basic_user_file /etc/mayfly/users;"#, "\
        The text is shown by browsers. It may contain variables. `off` removes an inherited value. It needs \
        `auth_basic_user_file`.");
    _ = lines("auth_basic_user_file", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept], (1, 1), "FILE").inherited().text(
        "sets the file with user names and passwords", "auth_basic_user_file /etc/mayfly/users;", "\
        Each line is `name:password`. The password is a hash, as the programs `htpasswd` and `openssl passwd` make \
        it: bcrypt, SHA-2, MD5, `$apr1$`, DES, `{SHA}`, `{SSHA}`, or `{PLAIN}` and the password itself. No password \
        fits another format, and the error log says so. A changed file is read again. A relative path starts at the \
        directory of the configuration.");
    AUTH_DELAY: Time = time("auth_delay", LEVELS).default("0s").text(
        "delays the response to a wrong password", "auth_delay 1s;", "It makes guessing passwords slow.");
    _ = lines("auth_request", LEVELS, (1, 1), "URI | off").default("off").inherited().text(
        "asks another path of this site whether a request is allowed", "auth_request /auth;", "\
        The server makes a subrequest without a body to the path. If its status is 2xx, the request is allowed. If \
        it is 401 or 403, the client gets this status, and 401 also has the field `WWW-Authenticate` of the \
        subrequest. Any other status gives 500. The body of the subrequest is not used.\n\n\
        `allow`, `deny` and `auth_basic` are checked before it. With `satisfy any`, it is asked only if none of them \
        allows the request.");
    _ = lines("auth_request_set", LEVELS, (2, 2), "$NAME VALUE").inherited_as_a_whole().repeats().text(
        "sets a variable from the subrequest of auth_request", "auth_request_set $user $upstream_http_x_user;",
        "The value is computed when the subrequest has ended. `$upstream_http_NAME` is then a field of its response.");
    _ = lines("deny", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept], (1, 1), "ADDRESS | NETWORK | unix: | all").inherited_as_a_whole().repeats().text(
        "refuses clients by address", "deny all;", "\
        The lines `allow` and `deny` are compared in order, and the first one that contains the client's address \
        decides. A refused client gets 403. Write `deny all` as the last line to refuse everybody whom no earlier \
        line allows.");
    _ = lines("deny_reason", &[Context::Http, Context::Server, Context::Location, Context::LimitExcept], (1, 1), "TEXT").inherited().text(
        "sets a text for the error log about refused requests", r#"deny_reason "A database dump.";"#, "\
        The text is added to the message `access forbidden by rule` when `deny` refuses a request. Clients do not \
        see it. An empty text removes an inherited one.");
    HTACCESS: Flag = flag("htaccess", SERVERS, "off").text("obeys the .htaccess files of the site", "htaccess on;", "\
        Before a location is chosen, the `.htaccess` files on the way to the file of the path are evaluated as \
        Apache 2.4 evaluates them. They may refuse a request, redirect it, or lead it to another path of the site. \
        They open nothing that a location refuses. A changed file counts within a second. A line that may limit \
        access and cannot be evaluated closes its folder, and the error log says so. The files are looked for below \
        a `root` or `alias` without variables of the server or of a location for a prefix.\n\n\
        Fields (`Header`), lifetimes (`ExpiresByType`), types of files (`AddType`) and pages of errors \
        (`ErrorDocument`) are added when a response is sent, so that a stored page has nothing of them.");
    _ = lines("limit_except", LOCATION, (1, MANY), "METHOD ... { }").block().text(
        "sets what holds for all methods except the named ones", "limit_except GET POST { deny all; }", "\
        The block holds for requests with other methods. GET includes HEAD. For these requests, `rewrite`, `if` and \
        `set` of the location are not run. Its `fastcgi_pass`, `proxy_pass` and `try_files` still hold, unless the \
        block contains another.");
    _ = lines("mirror", LEVELS, (1, 1), "URI | off").default("off").inherited_as_a_whole().repeats().text(
        "sends a copy of each request to another path", "mirror /mirror;", "\
        The copy is a subrequest with the same method, arguments and body. Its response is not used, and the client \
        does not wait for it. Use it to try out a new application with real requests. Several lines send several \
        copies.\n\n\
        At most 1,024 copies are under way in the whole server. Further copies are not sent, and the error log says \
        so.");
    MIRROR_REQUEST_BODY: Flag = flag("mirror_request_body", LEVELS, "on").text(
        "sets whether copies have the request body", "mirror_request_body off;", "\
        With `on`, the body is read completely before the request is sent on, so that `fastcgi_request_buffering \
        off` has no effect. With `off`, copies have no body: remove `Content-Length` from them with \
        `proxy_set_header`.");
    _ = lines("post_action", LEVELS, (1, 1), "URI | off").default("off").inherited().text(
        "makes a request when a response has been sent", "post_action /count;", "\
        A subrequest is made to the path, with the method and the arguments of the request and without its body. Its \
        response is not used, and the client does not wait for it. `$status`, `$bytes_sent` and `$body_bytes_sent` \
        are those of the response that was sent, so that an application can count them. It is not made for requests \
        of the server itself. Those that are under way are counted with the copies of `mirror`. Named locations are \
        not possible.");
    _ = lines("real_ip_header", LEVELS, (1, 1), "FIELD | X-Real-IP | X-Forwarded-For | proxy_protocol")
        .default("X-Real-IP").inherited().text(
        "sets where a trusted proxy writes the client's address", "real_ip_header X-Forwarded-For;", "\
        The value is a field, whose last address is used, or `proxy_protocol`. It has an effect on connections from \
        the addresses of `set_real_ip_from`.");
    REAL_IP_RECURSIVE: Flag = flag("real_ip_recursive", LEVELS, "off").text(
        "sets whether several trusted proxies are skipped", "real_ip_recursive on;", "\
        With `on`, the last address in the field that is not a trusted proxy is the client's address. With `off`, \
        the last address is.");
    _ = lines("secure_link", LEVELS, (1, 1), "DIGEST[,EXPIRES]").inherited().text(
        "sets where a link has its digest and its end", "secure_link $arg_md5,$arg_expires;", "\
        The value has variables, such as `$arg_md5,$arg_expires`. Before the comma is an MD5 digest in base64url, of \
        the text of `secure_link_md5`. Behind it is the time at which the link is over, in seconds since 1970. The \
        variable `$secure_link` is then `1`, or `0` for a link that is over, and empty for any other. Refuse these \
        two with `if`.");
    _ = lines("secure_link_md5", LEVELS, (1, 1), "TEXT").inherited().text(
        "sets the text whose digest a link must have", r#"secure_link_md5 "$secure_link_expires$uri secret";"#, "\
        The text has a secret, and what the link is to hold for: its path, its end, perhaps the address of the \
        client. `printf '1700000000/a.zip secret' | openssl md5 -binary | openssl base64 | tr +/ -_ | tr -d =` makes \
        such a digest.");
    _ = lines("secure_link_secret", LOCATION, (1, 1), "WORD").inherited().text(
        "sets the secret of links of the older form", "secure_link_secret word;", "\
        A link of this form is `/PREFIX/DIGEST/REST`. The digest is the MD5 of the rest and the secret, in \
        hexadecimal. `$secure_link` is then the rest, and empty for any other link. It cannot be written beside \
        `secure_link`.");
    _ = lines("set_real_ip_from", LEVELS, (1, 1), "ADDRESS | NETWORK | unix:").inherited_as_a_whole().repeats().text(
        "names trusted proxies", "set_real_ip_from 10.0.0.0/8;", "\
        For a connection from one of these addresses, the client's address is taken from `real_ip_header`. A host \
        name means all its addresses.");
    _ = lines("trusted_proxy", SERVERS, (1, MANY), "ADDRESS | NETWORK | unix: ...").inherited_as_a_whole().repeats().text(
        "names trusted proxies in front of the server", "trusted_proxy 127.0.0.1 10.0.0.0/8;", "\
        Use it when clients reach the server through a load balancer or a proxy for TLS. For connections from these \
        addresses, the server uses\n\n\
        - the client's address from `X-Forwarded-For`: the last address that is not a trusted proxy,\n\
        - the scheme from `X-Forwarded-Proto`: `https`, else `http`,\n\
        - the host from `X-Forwarded-Host`.\n\n\
        The variables `$remote_addr`, `$scheme`, `$https`, `$host` and `$http_host` have these values. For other \
        connections, the fields have no meaning. It replaces `set_real_ip_from`, `real_ip_header` and \
        `real_ip_recursive`. If several servers share an address, the line of its default server decides about \
        scheme and host.");
    _ = lines("valid_referers", &[Context::Server, Context::Location], (1, MANY), "none | blocked | server_names | NAME ...").inherited_as_a_whole().repeats().text(
        "sets which pages may link to a location", "valid_referers none blocked server_names *.example.org;", "\
        It sets `$invalid_referer`: empty if the request field `Referer` is one of the named ones, else `1`. Use it \
        with `if`, to keep other sites from showing your pictures.\n\n\
        `none` is a request without the field. `blocked` is a field whose value does not begin with `http://` or \
        `https://`. `server_names` are the names of this server. Other names may have wildcards and a path, or be \
        patterns after `~`.");
}
