//! Lowers `limit_except`: other methods than the named ones get a location of their own, with
//! the settings of the one around it
//! (<https://nginx.org/en/docs/http/ngx_http_core_module.html#limit_except>).

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word, did_you_mean};

use super::Lowering;
use super::level::Level;
use super::location_tree::{BlockKind, EnclosingLocation, LocationList};
use crate::model::*;

/// The methods that may be named, as nginx knows them.
const METHODS: [&str; 14] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "MKCOL",
    "COPY",
    "MOVE",
    "OPTIONS",
    "PROPFIND",
    "PROPPATCH",
    "LOCK",
    "UNLOCK",
    "PATCH",
];

impl Lowering<'_> {
    /// The block of `level`, a location's, where it has one.
    pub fn limit_except(
        &mut self,
        level: &Level<'_>,
        around: &EnclosingLocation,
        list: &mut LocationList,
    ) -> Option<LimitExcept> {
        let node = *level.own("limit_except").first()?;
        let mut methods = Vec::new();
        for word in node.args() {
            methods.extend(self.method(word));
        }
        if methods.contains(&"GET") && !methods.contains(&"HEAD") {
            methods.push("HEAD");
        }
        let inner = Level::new(&node.children, Some(level));
        let mut settings = self.settings(
            &inner,
            BlockKind::LocationIf,
            &around.matcher,
            Some(&around.settings),
        );
        settings.files.try_files = around.settings.files.try_files.clone();
        let rewrite = self.rewrite_ops(&inner, None);
        let location = list.add(Location {
            name: format!("{} (limit_except)", around.matcher.shown()),
            rewrite,
            settings: Arc::new(settings),
            limit_except: None,
            inner: Locations::default(),
            prefix_bytes: around.prefix_bytes,
            internal: around.internal,
            named: around.matcher.is_named(),
            auto_redirect: false,
            is_pattern: around.is_pattern,
        });
        Some(LimitExcept { methods, location })
    }

    fn method(&mut self, word: &Word) -> Option<&'static str> {
        let found = METHODS
            .iter()
            .find(|name| word.eq_ignore_ascii_case(name))
            .copied();
        if found.is_none() {
            let mut diagnostic = Diagnostic::error(word.span, format!("invalid method \"{word}\""))
                .label("expected a method such as GET or POST");
            if let Some(meant) = did_you_mean(word, METHODS) {
                diagnostic = diagnostic.hint(format!("did you mean \"{meant}\"?"));
            }
            self.report(diagnostic);
        }
        found
    }
}
