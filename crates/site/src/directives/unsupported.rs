//! Directives that nginx or a well-known module has and Mayfly does not, with advice.
//!
//! The check reports them by name, so that operators do not look for a typing mistake, and
//! advises a replacement.

/// Names or beginnings of names (`js_*`), and the advice.
#[rustfmt::skip]
const UNSUPPORTED: &[(&str, &str)] = &[
    ("absent_ok", "leave it out"),
    ("accept_zone", "leave it out"),
    ("ancient_browser", "use `map $http_user_agent`"),
    ("ancient_browser_value", "use `map $http_user_agent`"),
    ("api", "there is no status API yet; `stub_status` works"),
    ("auth_jwt*", "let the application check tokens"),
    ("browser", "use `map $http_user_agent`"),
    ("create_full_put_path", "let the application take uploads"),
    ("dav_*", "let the application take uploads"),
    ("f4f*", "leave it out"),
    ("geoip_*", "use `geo` with a list of networks"),
    ("google_perftools_profiles", "leave it out"),
    ("grpc_*", "there are FastCGI, HTTP and memcached upstreams only"),
    ("health_check_timeout", "checks wait as long as the location's `*_read_timeout`"),
    ("hls*", "serve the files as they are"),
    ("image_filter*", "make the sizes beforehand"),
    ("internal_redirect", "use `rewrite`, `try_files` or `error_page`"),
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
    ("mp4_limit_rate*", "use `limit_rate`"),
    ("ntlm", "leave it out"),
    ("override_charset_map", "leave it out"),
    ("perl*", "use `map` and `rewrite`"),
    ("proxy_allow_upstream", "leave it out"),
    ("proxy_bind_dynamic", "leave it out"),
    ("proxy_request_dynamic", "leave it out"),
    ("proxy_socket_rcvbuf", "leave it out"),
    ("proxy_socket_sndbuf", "leave it out"),
    ("proxy_ssl_conf_command", "leave it out"),
    ("proxy_ssl_key_log", "leave it out"),
    ("scgi_*", "there are FastCGI, HTTP and memcached upstreams only"),
    ("session_log*", "leave it out"),
    ("spdy_*", "leave it out"),
    ("ssl_key_log", "leave it out"),
    ("state", "write the servers into the `upstream` block"),
    ("status", "use `stub_status`"),
    ("status_zone", "leave it out"),
    ("sticky", "use `ip_hash` or `hash $cookie_NAME consistent`"),
    ("sticky_cookie_insert", "use `ip_hash` or `hash $cookie_NAME consistent`"),
    ("stream", "Mayfly serves the web only"),
    ("tunnel_*", "leave it out"),
    ("upstream_conf", "write the servers into the `upstream` block"),
    ("uwsgi_*", "there are FastCGI, HTTP and memcached upstreams only"),
    ("xclient", "Mayfly serves the web only"),
    ("xml_entities", "leave it out"),
    ("xslt_*", "let the application transform it"),
    ("fastcgi_allow_upstream", "leave it out"),
    ("fastcgi_bind_dynamic", "leave it out"),
    ("fastcgi_request_dynamic", "leave it out"),
];

/// Directives of third-party modules that people build into nginx.
#[rustfmt::skip]
const THIRD_PARTY: &[(&str, &str)] = &[
    ("zstd_dict_file", "leave it out; browsers have no such dictionary"),
    ("pagespeed", "leave it out"),
    ("more_set_input_headers", "use `proxy_set_header` or `fastcgi_param HTTP_...`"),
    ("more_clear_input_headers", "use `proxy_set_header NAME \"\"` or `fastcgi_param HTTP_... \"\"`"),
    ("srcache_*", "use `fastcgi_cache` or `proxy_cache`"),
    ("redis_pass", "use `memcached_pass`"),
    ("redis2_*", "use `fastcgi_cache`"),
    ("lua_*", "use `map` and `rewrite`"),
    ("access_by_lua*", "use `map` and `rewrite`"),
    ("content_by_lua*", "use `map` and `rewrite`"),
    ("rewrite_by_lua*", "use `map` and `rewrite`"),
    ("set_by_lua*", "use `map` and `rewrite`"),
    ("header_filter_by_lua*", "use `add_header`"),
    ("body_filter_by_lua*", "let the application produce it"),
    ("log_by_lua*", "use `log_format`"),
    ("echo*", "use `return 200 TEXT`"),
    ("consistent_hash", "use `hash KEY consistent`"),
    ("ipscrub*", "log `$remote_addr` in parts, by a `map`"),
    ("ssl_dyn_rec_*", "use `ssl_buffer_size 4k`"),
    ("set_md5", "use `map` and `rewrite`"),
    ("fancyindex*", "use `autoindex`"),
    ("modsecurity*", "leave it out"),
    ("vhost_traffic_status*", "leave it out"),
    ("passenger*", "there are FastCGI, HTTP and memcached upstreams only"),
    ("auth_ldap*", "let the application check passwords"),
    ("auth_pam*", "use `auth_basic`, or let the application check passwords"),
    ("balancer_by_lua*", "use the methods of `upstream`"),
    ("cache_purge_response_type", "leave it out; the answer to a purge is a small page"),
    ("dav_ext_*", "let the application take uploads"),
    ("geoip2*", "use `geo` with a list of networks"),
    ("headers_in_by_lua*", "use `map` and `rewrite`"),
    ("init_by_lua*", "use `map` and `rewrite`"),
    ("init_worker_by_lua*", "use `map` and `rewrite`"),
    ("ldap_server", "let the application check passwords"),
    ("memc_*", "use `memcached_pass`"),
    ("nchan_*", "let the application push"),
    ("push_stream_*", "let the application push"),
    ("rds_json*", "let the application produce it"),
    ("replace_filter*", "let the application produce it"),
    ("rtmp", "Mayfly serves the web only"),
    ("security_headers*", "use `add_header ... always`"),
    ("set_decode_base64", "let the application decode it"),
    ("set_encode_base64", "let the application encode it"),
    ("set_escape_uri", "let the application escape it"),
    ("set_if_empty", "use `map`"),
    ("set_misc*", "use `map` and `rewrite`"),
    ("set_random", "use `split_clients $request_id`"),
    ("set_secure_random_*", "use `$request_id`"),
    ("set_unescape_uri", "let the application unescape it"),
    ("slowfs_*", "use `proxy_cache` in front of the files"),
    ("ssl_certificate_by_lua*", "use `ssl_certificate`"),
    ("subs_filter*", "let the application produce it"),
    ("testcookie*", "use `limit_req`"),
    ("track_uploads", "leave it out; browsers show the progress"),
    ("report_uploads", "leave it out; browsers show the progress"),
    ("upload_progress*", "leave it out; browsers show the progress"),
    ("upload_*", "let the application take uploads"),
    ("upsync*", "write the servers into the `upstream` block"),
];

/// The origin of a directive that Mayfly does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Nginx,
    ThirdParty,
}

impl Origin {
    /// Returns the text for the line under the place.
    pub fn label(self) -> &'static str {
        match self {
            Origin::Nginx => "nginx has it, Mayfly does not yet",
            Origin::ThirdParty => "a third-party module of nginx has it, Mayfly does not",
        }
    }
}

/// A directive that Mayfly does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedDirective {
    /// The name, or the beginning of a family with `*`.
    pub pattern: &'static str,
    pub origin: Origin,
    /// The advice for a replacement.
    pub advice: &'static str,
}

impl UnsupportedDirective {
    /// Directives of one family have the same cause.
    pub fn cause(&self) -> &'static str {
        self.pattern
    }
}

/// Returns the advice for a directive that nginx (or a well-known third-party module) has and
/// Mayfly does not.
pub fn unsupported(name: &str) -> Option<UnsupportedDirective> {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    let of = |table: &'static [(&'static str, &'static str)], origin| {
        let (pattern, advice) = *table.iter().find(|(pattern, _)| fits(pattern))?;
        Some(UnsupportedDirective {
            pattern,
            origin,
            advice,
        })
    };
    // Some families of others begin as one of nginx's own.
    of(THIRD_PARTY, Origin::ThirdParty).or_else(|| of(UNSUPPORTED, Origin::Nginx))
}

/// The names as the list has them, `*` at the end for families.
pub fn unsupported_names() -> impl Iterator<Item = &'static str> {
    let all = UNSUPPORTED.iter().chain(THIRD_PARTY);
    all.map(|(name, _)| *name)
}
