//! Puts the settings of one level together: one call for each subject, with inheritance
//! resolved.

use std::sync::Arc;

use super::Lowering;
use super::cache_tags::speaks_litespeed;
use super::level::Level;
use super::location::LocationMatcher;
use super::location_tree::BlockKind;
use super::values::{seconds, to_u32, to_usize};
use crate::directives::content_handlers;
use crate::model::*;

/// Fragments of fragments: as deep as requests of the server's own go at all.
const MAX_ESI_DEPTH: u8 = 20;

impl Lowering<'_> {
    /// The settings of `level`. For an `if` block, `outer` is the settings of its location, from
    /// which it takes everything that it does not set, the handler included.
    pub fn settings(
        &mut self,
        level: &Level<'_>,
        block: BlockKind,
        matcher: &LocationMatcher,
        outer: Option<&Arc<Settings>>,
    ) -> Settings {
        let runs_ssi = self.flag(level, "ssi", false);
        // The variables in its commands are known only when they run.
        self.variables.uses_upstream_fields |= runs_ssi;
        self.variables.uses_cache_last_modified |= runs_ssi;
        let access = self.access_rules(level);
        let auth = self.auth(level);
        let auth_request = self.auth_request(level);
        let satisfy = self.choice(
            level,
            "satisfy",
            &[("all", Satisfy::All), ("any", Satisfy::Any)],
            Satisfy::All,
        );
        let checks = [!access.is_empty(), auth.is_some(), auth_request.is_some()];
        Settings {
            content: self.content(level, block, matcher, outer),
            files: self.file_settings(level, block),
            body: self.body_settings(level),
            connection: self.connection_settings(level),
            headers: self.header_settings(level),
            addition: self.addition(level),
            sub_filter: self.sub_filter(level),
            esi: self.esi(level),
            ssi: SsiSettings {
                enabled: runs_ssi,
                types: self.media_types(level, "ssi_types", &["text/html"]),
                last_modified: self.flag(level, "ssi_last_modified", false),
                silent_errors: self.flag(level, "ssi_silent_errors", false),
                max_includes: to_u32(self.number(level, "ssi_max_includes", 200)),
                output_buffer_bytes: to_usize(self.size(
                    level,
                    "subrequest_output_buffer_size",
                    4 << 10,
                )),
            },
            own_access: own_access(level, checks, satisfy, outer.map(|outer| outer.own_access)),
            access,
            fragments: FragmentLimits {
                bytes: self.size(level, "fragments_max_bytes", 64 << 20),
                fetches: to_u32(self.number(level, "fragments_max_fetches", 200)),
                time: self.duration(level, "fragments_max_time", seconds(60)),
            },
            deny_reason: level
                .find("deny_reason")
                .map(|node| node.arg(0).text.as_str().into())
                .unwrap_or_default(),
            auth,
            satisfy,
            auth_request,
            mirror: self.mirror(level),
            post_action: self.post_action(level),
            limits: self.limits(level),
            otel: self.otel_settings(level),
            early_hints: self.templates(level, "early_hints"),
            error_pages: self.error_pages(level),
            recursive_error_pages: self.flag(level, "recursive_error_pages", false),
            redirects: RedirectSettings {
                absolute: self.flag(level, "absolute_redirect", true),
                port: self.flag(level, "port_in_redirect", true),
                server_name: self.flag(level, "server_name_in_redirect", false),
                msie_refresh: self.flag(level, "msie_refresh", false),
            },
            access_logs: self.access_logs(level),
            open_log_file_cache: self.open_log_file_cache(level),
            error_logs: self.error_logs(level),
            log_not_found: self.flag(level, "log_not_found", true),
            log_subrequests: self.flag(level, "log_subrequest", false),
            compression: self.compression(level),
            charset: self.charset(level),
            limit_rate: self
                .optional_template(level, "limit_rate")
                .unwrap_or_default(),
            limit_rate_after: self
                .optional_template(level, "limit_rate_after")
                .unwrap_or_default(),
            slice_bytes: self.size(level, "slice", 0),
            real_ip: self.real_ip(level),
            names: self.name_resolution(level),
            valid_referers: self.valid_referers(level),
            secure_link: self.secure_link(level).map(Box::new),
        }
    }

    fn content(
        &mut self,
        level: &Level<'_>,
        block: BlockKind,
        matcher: &LocationMatcher,
        outer: Option<&Arc<Settings>>,
    ) -> Content {
        // Read at every level, so that mistakes are reported; used where there is a target.
        let fastcgi = self.fastcgi(level, block);
        let proxy = self.proxy(level, block, matcher);
        let memcached = self.memcached(level);
        if let Some(pass) = proxy.or(fastcgi).or(memcached) {
            return Content::Pass(Arc::new(pass));
        }
        if let Some(name) = content_handlers().find(|name| !level.own(name).is_empty()) {
            return Content::Handler(name);
        }
        let tokens = level
            .find("cache_purge_token")
            .map(|node| node.arg(0))
            .filter(|word| word.text != "off")
            .map(|word| self.path(word));
        if !level.own("cache_purge_api").is_empty() {
            return Content::PurgeApi(PurgeApi { tokens });
        }
        if !level.own("dashboard").is_empty() {
            return Content::Dashboard(Dashboard { tokens });
        }
        outer.map_or(Content::Files, |outer| outer.content.clone())
    }

    fn esi(&mut self, level: &Level<'_>) -> EsiSettings {
        let depth = self.number(level, "esi_max_depth", 5);
        EsiSettings {
            mode: self.choice(
                level,
                "esi",
                &[
                    ("off", EsiMode::Off),
                    ("on", EsiMode::On),
                    ("always", EsiMode::Always),
                ],
                // Pages ask for it by `esi=on`.
                match speaks_litespeed(level) {
                    true => EsiMode::On,
                    false => EsiMode::Off,
                },
            ),
            types: self.media_types(level, "esi_types", &["text/html"]),
            max_depth: match u8::try_from(depth) {
                Ok(depth @ ..=MAX_ESI_DEPTH) => depth,
                _ => {
                    if let Some(node) = level.find("esi_max_depth") {
                        self.invalid(node.arg(0), "depth", "expected a number up to 20");
                    }
                    MAX_ESI_DEPTH
                }
            },
            max_includes: to_u32(self.number(level, "esi_max_includes", 200)),
            timeout: self.duration(level, "esi_timeout", seconds(10)),
        }
    }

    fn body_settings(&mut self, level: &Level<'_>) -> BodySettings {
        let temp_path = level
            .find("client_body_temp_path")
            .map(|node| node.arg(0).text.clone());
        BodySettings {
            max_bytes: self.size(level, "client_max_body_size", 1 << 20),
            buffer_bytes: self.size(level, "client_body_buffer_size", 16 << 10),
            timeout: self.duration(level, "client_body_timeout", seconds(60)),
            temp_path: self
                .own_files
                .state
                .join(temp_path.as_deref().unwrap_or("client_body_temp")),
            in_file_only: self.choice(
                level,
                "client_body_in_file_only",
                &[
                    ("off", InFileOnly::Off),
                    ("clean", InFileOnly::Clean),
                    ("on", InFileOnly::On),
                ],
                InFileOnly::Off,
            ),
            // Known when all values have been read.
            has_name: false,
        }
    }

    fn connection_settings(&mut self, level: &Level<'_>) -> ConnectionSettings {
        let header = level
            .find("keepalive_timeout")
            .and_then(|node| node.args().get(1));
        let disabled: Vec<&str> = level
            .all("keepalive_disable")
            .iter()
            .flat_map(|node| node.args())
            .map(|word| word.text.as_str())
            .collect();
        for node in level.all("keepalive_disable") {
            for word in node.args() {
                self.choice_of(word, &[("none", ()), ("msie6", ()), ("safari", ())]);
            }
        }
        ConnectionSettings {
            keepalive_timeout: self.duration(level, "keepalive_timeout", seconds(75)),
            keepalive_min_timeout: self.duration(level, "keepalive_min_timeout", seconds(0)),
            keepalive_header: header.and_then(|word| self.duration_of(word)),
            keepalive_requests: self.number(level, "keepalive_requests", 1000),
            keepalive_time: self.duration(level, "keepalive_time", seconds(3600)),
            disable_msie6: disabled.is_empty() || disabled.contains(&"msie6"),
            disable_safari: disabled.contains(&"safari"),
            send_timeout: self.duration(level, "send_timeout", seconds(60)),
            lingering_close: self.choice(
                level,
                "lingering_close",
                &[
                    ("off", LingeringClose::Off),
                    ("on", LingeringClose::On),
                    ("always", LingeringClose::Always),
                ],
                LingeringClose::On,
            ),
            lingering_time: self.duration(level, "lingering_time", seconds(30)),
            lingering_timeout: self.duration(level, "lingering_timeout", seconds(5)),
            http2_chunk_bytes: self.http2_chunk(level),
            reset_timedout: self.flag(level, "reset_timedout_connection", false),
            chunked_transfer_encoding: self.flag(level, "chunked_transfer_encoding", true),
        }
    }
}

/// Returns the level's own access rules. `checks`: whether addresses, a password and `auth_request`
/// are in force, wherever their lines are; `outer` is of the location around an `if`.
fn own_access(
    level: &Level<'_>,
    checks: [bool; 3],
    satisfy: Satisfy,
    outer: Option<OwnAccess>,
) -> OwnAccess {
    let outer = outer.unwrap_or(OwnAccess {
        has_rules: false,
        credentials: OwnCredentials::NotAsked,
    });
    let is_own = |names: &[&str]| names.iter().any(|name| !level.own(name).is_empty());
    let has_list = is_own(&["allow", "deny"]);
    let [rules, password, request] = checks;
    let has_rules = rules && (has_list || outer.has_rules);
    let own_password = password && is_own(&["auth_basic"]);
    let own_request = request && is_own(&["auth_request"]);
    let is_all_own = has_rules == rules && own_password == password && own_request == request;
    let credentials = match satisfy {
        Satisfy::All if own_password => OwnCredentials::PasswordAsked,
        Satisfy::All if own_request => OwnCredentials::Asked,
        // A list around the location would let in who has neither.
        Satisfy::Any if (own_password || own_request) && is_all_own => OwnCredentials::Asked,
        _ if password || request => outer.credentials,
        _ => OwnCredentials::NotAsked,
    };
    OwnAccess {
        has_rules,
        credentials,
    }
}
