//! Lowers `fastcgi_pass` and the directives that only FastCGI has.

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::cache_purge::PurgeDirective;
use super::exchange::{DirectivePrefix, NEXT_UPSTREAM};
use super::level::Level;
use super::location_tree::BlockKind;
use super::template::has_variables;
use super::values::bytes;
use crate::directives::constants::*;
use crate::model::*;

pub(crate) const FASTCGI: DirectivePrefix = DirectivePrefix {
    prefix: "fastcgi",
    hidden: &[
        "status",
        "x-accel-expires",
        "x-accel-redirect",
        "x-accel-limit-rate",
        "x-accel-buffering",
        "x-accel-charset",
    ],
    failures: NEXT_UPSTREAM,
};

/// The parameters of nginx's `fastcgi.conf` (RFC 3875, and PHP's own).
const USUAL_PARAMS: [(&str, &str); 22] = [
    ("SCRIPT_FILENAME", "$document_root$fastcgi_script_name"),
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("PATH_INFO", "$fastcgi_path_info"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("HTTPS", "$https"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
    ("REMOTE_USER", "$remote_user"),
    ("SERVER_SOFTWARE", "mayfly"),
    // PHP needs it if it was built with force-cgi-redirect.
    ("REDIRECT_STATUS", "200"),
];

impl Lowering<'_> {
    /// The FastCGI settings, if this level passes requests on. The values of this level are read in
    /// any case, so that mistakes are reported.
    pub fn fastcgi(&mut self, level: &Level<'_>, block: BlockKind) -> Option<Pass> {
        if level.only_inherits(FASTCGI.prefix) {
            return None;
        }
        let target = self.fastcgi_target(level);
        let purge = self.cache_purge(level, &FASTCGI);
        let exchange = self.exchange(level, &FASTCGI);
        let is_handled = target.is_some() && block != BlockKind::Http;
        let cache = self.cache_rules(level, &FASTCGI, &exchange, &purge, is_handled);
        let fastcgi = FastCgi {
            params: self.fastcgi_params(level),
            index: level.word("fastcgi_index").map(|word| bytes(word)),
            split_path_info: self.split_path_info(level),
            keep_conn: self.value(level, FASTCGI_KEEP_CONN),
            catch_stderr: level
                .all("fastcgi_catch_stderr")
                .iter()
                .map(|node| bytes(node.arg(0)))
                .collect(),
        };
        let target = match (target, purge) {
            (Some(target), _) => target,
            // A location that only purges asks no upstream.
            (None, PurgeDirective::Handler { .. }) if block == BlockKind::Location => {
                PassTarget::Variable(Template::default())
            }
            _ => return None,
        };
        Some(Pass {
            target,
            exchange,
            cache: cache.map(Arc::new),
            protocol: Protocol::FastCgi(fastcgi),
        })
    }

    fn fastcgi_target(&mut self, level: &Level<'_>) -> Option<PassTarget> {
        let node = level.own("fastcgi_pass").first()?;
        let word = node.arg(0);
        if has_variables(word) {
            return Some(PassTarget::Variable(self.template(word)));
        }
        if word.starts_with("http://") || word.starts_with("fastcgi://") {
            self.invalid(word, "address", "expected an address without a scheme");
            return None;
        }
        let group = self.group_of(word)?;
        self.take_turns(group);
        Some(PassTarget::Group(group))
    }

    fn fastcgi_params(&mut self, level: &Level<'_>) -> Vec<FastCgiParam> {
        let mut params: Vec<FastCgiParam> = Vec::new();
        for node in level.all("fastcgi_param").to_vec() {
            let if_not_empty = match node.args().get(2) {
                None => false,
                Some(word) => self
                    .choice_of(word, &[("if_not_empty", true)])
                    .unwrap_or(false),
            };
            // Like in nginx, an empty text removes a field of the request, and is not sent as one.
            let takes_out = node.arg(0).starts_with("HTTP_") && node.arg(1).is_empty();
            params.push(FastCgiParam {
                name: bytes(node.arg(0)),
                value: self.template(node.arg(1)),
                if_not_empty: if_not_empty || takes_out,
            });
        }
        if params.is_empty() {
            return self.usual_params(level);
        }
        params
    }

    /// The parameters for a `php_pool` if none are written. With nginx they are in a file of the
    /// distribution, which may be missing here.
    fn usual_params(&mut self, level: &Level<'_>) -> Vec<FastCgiParam> {
        let Some(node) = level.own("fastcgi_pass").first() else {
            return Vec::new();
        };
        let word = node.arg(0).clone();
        if self.pool_named_by(&word).is_none() {
            return Vec::new();
        }
        USUAL_PARAMS
            .iter()
            .map(|(name, value)| {
                let text = (*value).to_owned();
                FastCgiParam {
                    name: name.as_bytes().into(),
                    value: self.template(&Word {
                        text,
                        ..word.clone()
                    }),
                    if_not_empty: *name == "HTTPS",
                }
            })
            .collect()
    }

    fn split_path_info(&mut self, level: &Level<'_>) -> Option<Arc<Pattern>> {
        let node = level.find("fastcgi_split_path_info")?;
        let word = node.arg(0);
        let pattern = self.pattern(word, word, false)?;
        if pattern.group_count() != 3 {
            self.report(
                Diagnostic::error(
                    word.span,
                    format!("pattern \"{word}\" must have 2 captures"),
                )
                .label("the first is the script, the second the path behind it")
                .hint("such as ^(.+\\.php)(/.*)$"),
            );
        }
        Some(pattern)
    }
}
