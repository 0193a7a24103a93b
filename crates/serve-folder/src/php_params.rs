//! The FastCGI params of a request to PHP.

use std::time::Duration;

use apache_conf::PARAMS;

use super::conf_text::Conf;
use super::kind::SiteKind;
use super::options::ServeOptions;

/// Lines at another level take the place of these: each level that hides another field
/// repeats this line.
pub(super) const HIDE_NOSNIFF: &str = "fastcgi_hide_header X-Content-Type-Options;";

/// The params made from fields of proxies in front; other clients are not believed.
const FORWARDED: [(&str, &str); 4] = [
    ("HTTP_X_FORWARDED_FOR", "$remote_addr"),
    ("HTTP_X_FORWARDED_HOST", "$http_host"),
    ("HTTP_X_FORWARDED_PROTO", "$scheme"),
    ("HTTP_X_REAL_IP", "$remote_addr"),
];

/// Further fields of that kind, which no script needs to see.
const NOT_FORWARDED: [&str; 12] = [
    "HTTP_CF_VISITOR",
    "HTTP_FORWARDED",
    "HTTP_FRONT_END_HTTPS",
    "HTTP_X_FORWARDED",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_X_FORWARDED_PREFIX",
    "HTTP_X_FORWARDED_PROTOCOL",
    "HTTP_X_FORWARDED_SCHEME",
    "HTTP_X_FORWARDED_SERVER",
    "HTTP_X_FORWARDED_SSL",
    "HTTP_X_HOST",
    "HTTP_X_URL_SCHEME",
];

/// Bytes of `fastcgi_buffer_size` for tags; WordPress's own fields need little.
const TAG_BYTES: usize = 24 * 1024;

/// Pages that are kept longer than this may get a shorter lifetime from the plug-in.
const KEPT_LONG: Duration = Duration::from_secs(1);

pub(super) fn php_params(conf: &mut Conf, kind: SiteKind, options: &ServeOptions) {
    conf.gap();
    for (name, mut value) in PARAMS {
        if name == "SERVER_PORT" && !options.behind.is_empty() {
            value = "$visitor_port";
        }
        conf.line(&format!("fastcgi_param {name} {value};"));
    }
    conf.line("fastcgi_param REDIRECT_STATUS 200;");
    conf.line("fastcgi_param HTTP_PROXY '';");
    conf.note("What a visitor says of proxies is not passed on; scripts would believe it.");
    for (name, value) in FORWARDED {
        match options.behind.is_empty() {
            true => conf.line(&format!("fastcgi_param {name} '' if_not_empty;")),
            false => conf.line(&format!("fastcgi_param {name} {value};")),
        }
    }
    for name in NOT_FORWARDED {
        conf.line(&format!("fastcgi_param {name} '' if_not_empty;"));
    }
    // If `--ttl` gives a longer lifetime, the plug-in may shorten it for a page's own
    // content.
    let said = (kind == SiteKind::WordPress && options.ttl > KEPT_LONG).then_some(options.ttl);
    if let Some(ttl) = options.vouched_ttl.or(said) {
        conf.note(
            "Mayfly's plug-in in WordPress tells when a page changes. What it vouches for is kept",
        );
        conf.note("for so many seconds; its tags may take so much of a response's head.");
        conf.line(&format!(
            "fastcgi_param MAYFLY_KEEP_SECONDS {};",
            ttl.as_secs()
        ));
        conf.line(&format!("fastcgi_param MAYFLY_HEAD_BYTES {TAG_BYTES};"));
    }
    conf.line("fastcgi_keep_conn on;");
    conf.line("fastcgi_read_timeout 300s;");
    conf.line("fastcgi_buffers 16 16k;");
    conf.line("fastcgi_buffer_size 32k;");
    conf.note("It is sent once, also where PHP says it.");
    conf.line(HIDE_NOSNIFF);
}
