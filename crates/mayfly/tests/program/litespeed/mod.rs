//! `cache_litespeed`: LiteSpeed's cache protocol, in front of a scripted PHP that answers as an application
//! with LiteSpeed's plug-in does. The fields of the plug-in for WordPress were recorded from its version
//! 7.9 behind this server (<https://github.com/litespeedtech/lscache_wp>); each constant names the file
//! that writes it.

mod attacks;
mod fragments;
mod plugin;
mod protocol;
mod visitors;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use testkit::client::{Reply, Target};
use testkit::fake_php::{FakePhp, Request, Script};
use testkit::running::RunningServer;

use crate::start;

/// src/control.cls.php, `output`, and src/tag.cls.php, `output`: a post, for who is not logged in.
const PUBLIC: &str = "Content-Type: text/html\r\nX-LiteSpeed-Cache-Control: public,max-age=604800\r\n\
    X-LiteSpeed-Tag: 7c8_post,7c8_URL.c2640972ae3761a1b1ef658ef9c68216,7c8_Po.4,7c8_\r\n";
/// The fields for a visitor who is logged in, with the setting `cache-priv`, which is on by default.
const PRIVATE: &str = "Content-Type: text/html\r\nX-LiteSpeed-Cache-Control: private,max-age=1800\r\n\
    X-LiteSpeed-Tag: 7c8_tag_priv,public:7c8_post,\
    public:7c8_URL.c2640972ae3761a1b1ef658ef9c68216,public:7c8_Po.4,public:7c8_\r\n";
/// The fields for a visitor who is logged in, with the setting `esi`.
const OF_GROUP: &str = "Content-Type: text/html\r\n\
    X-LiteSpeed-Cache-Control: public,max-age=604800,esi=on\r\n\
    X-LiteSpeed-Tag: 7c8_post,7c8_URL.c2640972ae3761a1b1ef658ef9c68216,7c8_Po.4,7c8_\r\n";
/// src/core.cls.php, `send_headers`: fields of a page that is never kept.
const NOT_KEPT: &str = "Content-Type: text/html\r\nX-LiteSpeed-Cache-Control: no-cache\r\n\
    Cache-Control: no-cache, must-revalidate, max-age=0, no-store, private\r\n";

/// src/vary.cls.php, `finalize_default_vary`: a hash for each role.
const SUBSCRIBERS: &str = "_lscache_vary=13dd32ec9e1a4850b0c01de72a4ba2be";
const EDITORS: &str = "_lscache_vary=0c28bcf541953a8b920d66c0f56c1f55";

/// A site with the directive and no other rule for keeping pages.
async fn site(php: &FakePhp) -> RunningServer {
    start(&configuration(php, "")).await
}

fn configuration(php: &FakePhp, location: &str) -> String {
    php.cached_site(&format!("cache_litespeed on;\n{location}"))
}

/// The fields of a browser that is logged in.
fn logged_in(name: &str, group: &str) -> String {
    format!("Cookie: wordpress_logged_in_1b8a984d={name}%7C1795607704%7CRFFxSVUz4UJ; {group}\r\n")
}

/// The visitor of a request, as PHP sees it.
fn visitor(request: &Request) -> &str {
    let mut cookies = request.param("HTTP_COOKIE").split("; ");
    let own = cookies.find_map(|cookie| cookie.strip_prefix("wordpress_logged_in_1b8a984d="));
    own.and_then(|value| value.split('%').next())
        .unwrap_or("nobody")
}

/// PHP whose pages have these fields, and in the body for whom and how often they were made.
async fn pages(fields: &'static str) -> FakePhp {
    let made = AtomicU64::new(0);
    FakePhp::tcp(move |request| {
        let number = made.fetch_add(1, SeqCst);
        Script::page(fields, format!("{} {number}", visitor(request)))
    })
    .await
}

/// A PHP that answers by the function, which gets the requests so far.
async fn php(answer: impl Fn(&Request) -> Script + Send + Sync + 'static) -> FakePhp {
    FakePhp::tcp(answer).await
}

/// Asks for a page until it is kept for a visitor with cookies.
async fn store(target: &Target, path: &str, fields: &str) -> Reply {
    for _ in 0..3 {
        target.get_with(path, fields).await;
    }
    let kept = target.get_with(path, fields).await;
    assert_eq!(kept.x_cache(), "HIT", "{path} {fields}");
    kept
}

/// A number that PHP counts up, in its pages.
type Version = Arc<AtomicU64>;
