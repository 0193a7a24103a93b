//! Lowers the `http` block: its shared settings, the servers, and their listeners.
//!
//! Names are declared first (variables, groups, zones), so that values may use them wherever
//! they are written.

use std::sync::Arc;

use nginx_conf::Diagnostic;

use super::Lowering;
use super::cache::{name_set, names};
use super::level::Level;
use super::location::LocationMatcher;
use super::location_tree::BlockKind;
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

impl Lowering<'_> {
    pub fn http(&mut self, level: &Level<'_>) -> Http {
        self.declare_names(level);
        self.zones(level);
        self.log_formats(level);
        self.upstream_groups(level);
        self.variables_from_others(level);
        self.match_blocks(level);
        self.otel_exporter(level);
        // Reads every value of this level, so that mistakes are reported even if no server
        // inherits it.
        self.settings(
            level,
            BlockKind::Http,
            &LocationMatcher::server_level(),
            None,
        );
        let purge_log = self.purge_log(level);
        let shown_arguments = name_set(&names(level, "cache_show_args"));
        self.acme_issuers(level);
        self.http2(level);
        self.http3(level);
        self.server_tls_settings(level, false);
        let servers: Vec<&Node<'_>> = level.own("server").to_vec();
        let lowered: Vec<Server> = servers
            .iter()
            .map(|node| self.server(node, level))
            .collect();
        let listeners = self.listeners(&servers, &lowered);
        Http {
            listeners,
            servers: lowered,
            slots: self.variables.slot_names(),
            slots_of_set: self.variables.slots_of_set(),
            made_variables: self.variables.made_variables(),
            http2_receive_buffer_bytes: self.http2_receive_buffer(level),
            cache_nodes: self.cache_nodes(level),
            cache_nodes_lost: self.cache_nodes_lost(level),
            purge_again: self.value(level, CACHE_PURGE_AGAIN),
            purge_log,
            shown_arguments,
            uses_cache_last_modified: self.variables.uses_cache_last_modified,
            uses_upstream_fields: self.variables.uses_upstream_fields,
            uses_request_body_file: self.variables.uses_request_body_file,
            ..std::mem::take(&mut self.declared)
        }
    }

    /// Everything that a value may name, wherever it is written.
    fn declare_names(&mut self, level: &Level<'_>) {
        self.declare_made_variables(level);
        self.variables.declare_set_variables(level.nodes);
        self.declare_groups(level);
    }

    fn zones(&mut self, level: &Level<'_>) {
        self.cache_zones(level);
        self.limit_zones(level);
    }

    fn server(&mut self, node: &Node<'_>, http: &Level<'_>) -> Server {
        let level = Level::new(&node.children, Some(http));
        self.server_names = level
            .own("server_name")
            .iter()
            .flat_map(|node| node.args())
            .map(|word| word.text.clone())
            .collect();
        let name = self.first_name();
        self.acme_file = self.acme_certificate(&level);
        let mut rewrite = self.rewrite_ops(&level, None);
        if self.answers_acme_challenges(&level) {
            rewrite.insert(0, RewriteOp::AcmeChallenge);
        }
        let (locations, top) = self.location_tree(&level);
        Server {
            name,
            rewrite,
            locations,
            top,
            head: self.head_settings(&level),
            merge_slashes: self.value(&level, MERGE_SLASHES),
            obeys_htaccess: self.value(&level, HTACCESS),
            apache_rules: self.apache_rules(&level),
            tls: self.server_tls(&level),
            http2: self.http2(&level),
            http3: self.http3(&level),
        }
    }

    /// Reads `apache_rules`, and reports lines that close their block.
    fn apache_rules(&mut self, level: &Level<'_>) -> Option<Arc<htaccess::ServerRules>> {
        let word = level.word("apache_rules")?;
        let rules = htaccess::read_server_rules(&word.text);
        for note in rules.notes.iter().filter(|it| it.closes) {
            let message = format!(
                "line {} of this text closes what it stands in: {}",
                note.line, note.text
            );
            self.report(Diagnostic::warning(word.span, message));
        }
        Some(Arc::new(rules))
    }

    /// Returns the value of `$server_name`: `.example.org` without its dot.
    fn first_name(&self) -> String {
        let first = self.server_names.first().map_or("", String::as_str);
        match first {
            "$hostname" => self.options.hostname.clone(),
            name if name.starts_with('~') => name.to_owned(),
            name => name.strip_prefix('.').unwrap_or(name).to_ascii_lowercase(),
        }
    }

    fn head_settings(&mut self, level: &Level<'_>) -> HeadSettings {
        let (count, size) = self.buffers(level, LARGE_CLIENT_HEADER_BUFFERS);
        HeadSettings {
            buffer_bytes: self.value(level, CLIENT_HEADER_BUFFER_SIZE),
            large_buffers: super::values::to_usize(count),
            large_buffer_bytes: size,
            timeout: self.value(level, CLIENT_HEADER_TIMEOUT),
            max_fields: super::values::to_usize(self.value(level, MAX_HEADERS)),
            ignore_invalid: self.value(level, IGNORE_INVALID_HEADERS),
            underscores: self.value(level, UNDERSCORES_IN_HEADERS),
        }
    }
}
