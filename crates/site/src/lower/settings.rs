//! Puts the settings of one level together: one call for each subject, with inheritance
//! resolved.

use std::sync::Arc;

use super::Lowering;
use super::cache_tags::speaks_litespeed;
use super::level::Level;
use super::location::LocationMatcher;
use super::location_tree::BlockKind;
use super::values::{to_u32, to_usize};
use crate::directives::constants::*;
use crate::directives::content_handlers;
use crate::model::*;

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
        let runs_ssi = self.value(level, SSI);
        // The variables in its commands are known only when they run.
        self.variables.uses_upstream_fields |= runs_ssi;
        self.variables.uses_cache_last_modified |= runs_ssi;
        let access = self.access_rules(level);
        let auth = self.auth(level);
        let auth_request = self.auth_request(level);
        let satisfy = self.value(level, SATISFY);
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
                types: self.media_types(level, SSI_TYPES),
                last_modified: self.value(level, SSI_LAST_MODIFIED),
                silent_errors: self.value(level, SSI_SILENT_ERRORS),
                max_includes: to_u32(self.value(level, SSI_MAX_INCLUDES)),
                output_buffer_bytes: to_usize(self.value(level, SUBREQUEST_OUTPUT_BUFFER_SIZE)),
            },
            own_access: own_access(level, checks, satisfy, outer.map(|outer| outer.own_access)),
            access,
            fragments: FragmentLimits {
                bytes: self.value(level, FRAGMENTS_MAX_BYTES),
                fetches: to_u32(self.value(level, FRAGMENTS_MAX_FETCHES)),
                time: self.value(level, FRAGMENTS_MAX_TIME),
            },
            deny_reason: level
                .word("deny_reason")
                .map(|word| word.text.as_str().into())
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
            recursive_error_pages: self.value(level, RECURSIVE_ERROR_PAGES),
            redirects: RedirectSettings {
                absolute: self.value(level, ABSOLUTE_REDIRECT),
                port: self.value(level, PORT_IN_REDIRECT),
                server_name: self.value(level, SERVER_NAME_IN_REDIRECT),
                msie_refresh: self.value(level, MSIE_REFRESH),
            },
            access_logs: self.access_logs(level),
            open_log_file_cache: self.open_log_file_cache(level),
            error_logs: self.error_logs(level),
            log_not_found: self.value(level, LOG_NOT_FOUND),
            log_subrequests: self.value(level, LOG_SUBREQUEST),
            compression: self.compression(level),
            charset: self.charset(level),
            limit_rate: self
                .optional_template(level, "limit_rate")
                .unwrap_or_default(),
            limit_rate_after: self
                .optional_template(level, "limit_rate_after")
                .unwrap_or_default(),
            slice_bytes: self.value(level, SLICE),
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
            .unless_off("cache_purge_token")
            .map(|node| node.arg(0))
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
        EsiSettings {
            mode: match (self.given(level, ESI), speaks_litespeed(level)) {
                (Some(mode), _) => mode,
                // Pages ask for it by `esi=on`.
                (None, true) => EsiMode::On,
                (None, false) => EsiMode::Off,
            },
            types: self.media_types(level, ESI_TYPES),
            max_depth: u8::try_from(self.value(level, ESI_MAX_DEPTH)).unwrap_or(u8::MAX),
            max_includes: to_u32(self.value(level, ESI_MAX_INCLUDES)),
            timeout: self.value(level, ESI_TIMEOUT),
        }
    }

    fn body_settings(&mut self, level: &Level<'_>) -> BodySettings {
        let temp_path = level
            .word("client_body_temp_path")
            .map(|word| word.text.clone());
        BodySettings {
            max_bytes: self.value(level, CLIENT_MAX_BODY_SIZE),
            buffer_bytes: self.value(level, CLIENT_BODY_BUFFER_SIZE),
            timeout: self.value(level, CLIENT_BODY_TIMEOUT),
            temp_path: self
                .own_files
                .state
                .join(temp_path.as_deref().unwrap_or("client_body_temp")),
            in_file_only: self.value(level, CLIENT_BODY_IN_FILE_ONLY),
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
            keepalive_timeout: self.value(level, KEEPALIVE_TIMEOUT),
            keepalive_min_timeout: self.value(level, KEEPALIVE_MIN_TIMEOUT),
            keepalive_header: header.and_then(|word| self.duration_of(word)),
            keepalive_requests: self.value(level, KEEPALIVE_REQUESTS),
            keepalive_time: self.value(level, KEEPALIVE_TIME),
            disable_msie6: disabled.is_empty() || disabled.contains(&"msie6"),
            disable_safari: disabled.contains(&"safari"),
            send_timeout: self.value(level, SEND_TIMEOUT),
            lingering_close: self.value(level, LINGERING_CLOSE),
            lingering_time: self.value(level, LINGERING_TIME),
            lingering_timeout: self.value(level, LINGERING_TIMEOUT),
            http2_chunk_bytes: self.http2_chunk(level),
            reset_timedout: self.value(level, RESET_TIMEDOUT_CONNECTION),
            chunked_transfer_encoding: self.value(level, CHUNKED_TRANSFER_ENCODING),
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
