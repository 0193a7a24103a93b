//! What nginx has and Mayfly does not: named, so that nobody searches for a
//! typing error, with what to do meanwhile.

/// Names or beginnings of names (`ssl_*`), and what to do.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("absent_ok", "leave it out"),
    ("accept_zone", "leave it out"),
    (
        "acme_*",
        "let a TLS terminator in front, such as stunnel or a load balancer, hold the certificates",
    ),
    ("ancient_browser", "use `map $http_user_agent`"),
    ("ancient_browser_value", "use `map $http_user_agent`"),
    ("api", "there is no status API yet; `stub_status` works"),
    ("auth_jwt*", "let the application check tokens"),
    ("browser", "use `map $http_user_agent`"),
    ("create_full_put_path", "let the application take uploads"),
    ("dav_*", "let the application take uploads"),
    ("f4f*", "leave it out"),
    ("flv", "serve the files as they are"),
    ("geoip_*", "use `geo` with a list of networks"),
    ("google_perftools_profiles", "leave it out"),
    (
        "grpc_*",
        "there are FastCGI, HTTP and memcached upstreams only",
    ),
    (
        "health_check_timeout",
        "checks wait as long as the location's `*_read_timeout`",
    ),
    ("hls*", "serve the files as they are"),
    ("image_filter*", "make the sizes beforehand"),
    (
        "internal_redirect",
        "use `rewrite`, `try_files` or `error_page`",
    ),
    ("js_*", "use `map` and `rewrite`"),
    ("least_time", "use `least_conn`"),
    ("mail", "Mayfly serves the web only"),
    ("map_volatile", "write `volatile;` in the `map`"),
    ("memcached_allow_upstream", "leave it out"),
    ("memcached_bind_dynamic", "leave it out"),
    ("mgmt", "leave it out"),
    ("min_delete_depth", "let the application take uploads"),
    ("modern_browser", "use `map $http_user_agent`"),
    ("modern_browser_value", "use `map $http_user_agent`"),
    ("mp4*", "serve the files as they are; ranges work"),
    ("ntlm", "leave it out"),
    ("otel_*", "leave it out"),
    ("override_charset_map", "leave it out"),
    ("perl*", "use `map` and `rewrite`"),
    ("proxy_allow_upstream", "leave it out"),
    ("proxy_bind_dynamic", "leave it out"),
    ("proxy_request_dynamic", "leave it out"),
    ("proxy_socket_rcvbuf", "leave it out"),
    ("proxy_socket_sndbuf", "leave it out"),
    ("proxy_ssl_certificate_cache", "leave it out"),
    ("proxy_ssl_conf_command", "leave it out"),
    ("proxy_ssl_key_log", "leave it out"),
    (
        "proxy_ssl_password_file",
        "keep the key unencrypted, readable for the server only",
    ),
    ("quic_*", "there is no HTTP/3 yet; leave it out"),
    ("random_index", "leave it out"),
    (
        "scgi_*",
        "there are FastCGI, HTTP and memcached upstreams only",
    ),
    ("secure_link*", "let the application check"),
    ("session_log*", "leave it out"),
    ("spdy_*", "leave it out"),
    (
        "ssl",
        "there is no TLS yet; put a TLS terminator in front and use `listen 80`",
    ),
    (
        "ssl_*",
        "there is no TLS yet; put a TLS terminator in front and use `listen 80`",
    ),
    ("state", "write the servers into the `upstream` block"),
    ("status", "use `stub_status`"),
    ("status_zone", "leave it out"),
    ("sticky", "use `ip_hash` or `hash $cookie_NAME consistent`"),
    (
        "sticky_cookie_insert",
        "use `ip_hash` or `hash $cookie_NAME consistent`",
    ),
    ("stream", "Mayfly serves the web only"),
    ("sub_filter*", "let the application write it"),
    ("tunnel_*", "leave it out"),
    (
        "upstream_conf",
        "write the servers into the `upstream` block",
    ),
    ("userid*", "let the application set the cookie"),
    (
        "uwsgi_*",
        "there are FastCGI, HTTP and memcached upstreams only",
    ),
    ("xclient", "Mayfly serves the web only"),
    ("xml_entities", "leave it out"),
    ("xslt_*", "let the application transform it"),
    ("fastcgi_allow_upstream", "leave it out"),
    ("fastcgi_bind_dynamic", "leave it out"),
    ("fastcgi_request_dynamic", "leave it out"),
    (
        "zstd_dict_file",
        "leave it out; browsers have no such dictionary",
    ),
    ("pagespeed", "leave it out"),
    ("more_set_headers", "use `add_header ... always`"),
    (
        "more_clear_headers",
        "use `proxy_hide_header` or `fastcgi_hide_header`",
    ),
    (
        "more_set_input_headers",
        "use `proxy_set_header` or `fastcgi_param HTTP_...`",
    ),
    (
        "more_clear_input_headers",
        "use `proxy_set_header NAME \"\"` or `fastcgi_param HTTP_... \"\"`",
    ),
    ("srcache_*", "use `fastcgi_cache` or `proxy_cache`"),
    ("redis_pass", "use `memcached_pass`"),
    ("redis2_*", "use `fastcgi_cache`"),
    ("lua_*", "use `map` and `rewrite`"),
    ("access_by_lua*", "use `map` and `rewrite`"),
    ("content_by_lua*", "use `map` and `rewrite`"),
    ("rewrite_by_lua*", "use `map` and `rewrite`"),
    ("set_by_lua*", "use `map` and `rewrite`"),
    ("header_filter_by_lua*", "use `add_header`"),
    ("body_filter_by_lua*", "let the application write it"),
    ("log_by_lua*", "use `log_format`"),
    ("echo*", "use `return 200 TEXT`"),
    ("set_md5", "use `map` and `rewrite`"),
    ("fancyindex*", "use `autoindex`"),
    ("modsecurity*", "leave it out"),
    ("vhost_traffic_status*", "leave it out"),
    (
        "passenger*",
        "there are FastCGI, HTTP and memcached upstreams only",
    ),
];

/// What to do instead, where nginx (or a well-known module of others) has a
/// directive of this name and Mayfly does not.
pub fn advice_for_unsupported(name: &str) -> Option<&'static str> {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    UNSUPPORTED
        .iter()
        .find(|(pattern, _)| fits(pattern))
        .map(|(_, advice)| *advice)
}

/// The names as the list has them, `*` at the end for families.
pub fn unsupported_names() -> impl Iterator<Item = &'static str> {
    UNSUPPORTED.iter().map(|(name, _)| *name)
}
