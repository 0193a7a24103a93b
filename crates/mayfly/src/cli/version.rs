//! `-v` and `-V`. nginx's public test suite reads the second to know which
//! modules are there, so it speaks as nginx does: modules that nginx builds by
//! default are named when missing, the optional ones when present. One table; a
//! module that comes is one word changed.

use std::fmt::Write as _;

/// The release of nginx whose language and behaviour this is measured by.
pub const NGINX_VERSION: &str = "1.31.5";

/// Modules that nginx has by default, and whether they are here.
const DEFAULT_MODULES: &[(&str, bool)] = &[
    ("http_charset_module", true),
    ("http_gzip_module", true),
    ("http_ssi_module", true),
    ("http_userid_module", true),
    ("http_access_module", true),
    ("http_auth_basic_module", true),
    ("http_mirror_module", true),
    ("http_autoindex_module", true),
    ("http_geo_module", true),
    ("http_map_module", true),
    ("http_split_clients_module", true),
    ("http_referer_module", true),
    ("http_rewrite_module", true),
    ("http_proxy_module", true),
    ("http_fastcgi_module", true),
    ("http_uwsgi_module", false),
    ("http_scgi_module", false),
    ("http_grpc_module", false),
    ("http_tunnel_module", false),
    ("http_memcached_module", true),
    ("http_limit_conn_module", true),
    ("http_limit_req_module", true),
    ("http_empty_gif_module", true),
    ("http_browser_module", false),
    ("http_upstream_hash_module", true),
    ("http_upstream_ip_hash_module", true),
    ("http_upstream_least_conn_module", true),
    ("http_upstream_least_time_module", false),
    ("http_upstream_random_module", true),
    ("http_upstream_keepalive_module", true),
    ("http_upstream_zone_module", true),
    ("http_upstream_sticky_module", false),
];

/// Modules that nginx has when asked to, and that are here.
const OPTIONAL_MODULES: &[&str] = &[
    "http_addition_module",
    "http_auth_request_module",
    "http_gunzip_module",
    "http_gzip_static_module",
    "http_random_index_module",
    "http_realip_module",
    "http_secure_link_module",
    "http_slice_module",
    "http_ssl_module",
    "http_stub_status_module",
    "http_sub_module",
    "http_v2_module",
    "http_v3_module",
];

/// `mayfly 0.1.0`
pub fn version_text() -> String {
    format!("mayfly {}\n", env!("CARGO_PKG_VERSION"))
}

/// Returns the text of `-v`: the line that programs around nginx look for.
pub fn nginx_version_line() -> String {
    format!(
        "nginx version: nginx/{NGINX_VERSION} (mayfly {})\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Returns the text of `-V`.
pub fn build_text() -> String {
    let mut text = nginx_version_line();
    text.push_str("TLS SNI support enabled\n");
    let _ = write!(
        text,
        "configure arguments: --prefix={}",
        crate::paths::PREFIX
    );
    let _ = write!(text, " --conf-path={}", crate::paths::CONF);
    for (name, _) in DEFAULT_MODULES.iter().filter(|(_, built)| !built) {
        let _ = write!(text, " --without-{name}");
    }
    for name in OPTIONAL_MODULES {
        let _ = write!(text, " --with-{name}");
    }
    text.push('\n');
    if !cfg!(feature = "jemalloc") {
        text.push_str("built for a first look, as by make run: allocator of the system\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_text_names_what_is_missing_and_what_is_more() {
        let text = build_text();
        assert!(
            text.starts_with("nginx version: nginx/1.31.5 (mayfly "),
            "{text}"
        );
        for (name, built) in DEFAULT_MODULES {
            assert_eq!(
                text.contains(&format!("--without-{name}")),
                !built,
                "{name}"
            );
        }
        for name in OPTIONAL_MODULES {
            assert!(text.contains(&format!("--with-{name}")), "{name}");
        }
    }
}
