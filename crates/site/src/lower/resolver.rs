//! Lowers `resolver` and `resolver_timeout`.

use std::net::SocketAddr;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::level::Level;
use super::upstream::split_host;
use super::values::parameter;
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

/// The port of name servers, unless another is written.
const DNS_PORT: u16 = 53;

impl Lowering<'_> {
    /// The name servers and the time limit that hold at `level`.
    pub fn name_resolution(&mut self, level: &Level<'_>) -> NameResolution {
        NameResolution {
            resolver: level.find("resolver").and_then(|node| self.resolver(node)),
            timeout: self.value(level, RESOLVER_TIMEOUT),
        }
    }

    /// Levels that inherit a line share its resolver, and so its answers.
    fn resolver(&mut self, node: &Node<'_>) -> Option<ResolverId> {
        if let Some(known) = self.resolver_lines.get(&node.span()) {
            return *known;
        }
        let settings = self.resolver_settings(node);
        let id = settings.map(|settings| {
            self.declared.resolvers.push(settings);
            ResolverId(self.declared.resolvers.len() - 1)
        });
        self.resolver_lines.insert(node.span(), id);
        id
    }

    fn resolver_settings(&mut self, node: &Node<'_>) -> Option<ResolverSettings> {
        let mut settings = ResolverSettings {
            servers: Vec::new(),
            valid: None,
            ipv4: true,
            ipv6: true,
        };
        for word in node.args() {
            self.resolver_word(word, &mut settings);
        }
        if !settings.ipv4 && !settings.ipv6 {
            self.refuse(
                node.span(),
                "\"ipv4\" and \"ipv6\" cannot both be \"off\"",
                "no address would be left to look for",
            );
            return None;
        }
        if settings.servers.is_empty() {
            // A server that could not be found has been reported.
            let names_none = node.args().iter().all(|word| word.contains('='));
            if names_none {
                self.report(
                    Diagnostic::error(node.span(), "no name servers defined")
                        .label("expected the address of a name server")
                        .hint("such as resolver 127.0.0.53 valid=30s;"),
                );
            }
            return None;
        }
        Some(settings)
    }

    fn resolver_word(&mut self, word: &Word, settings: &mut ResolverSettings) {
        if let Some(text) = parameter(word, "valid") {
            settings.valid = self.duration_in(word, text);
        } else if let Some(text) = parameter(word, "ipv4") {
            settings.ipv4 = self.on_or_off(word, text);
        } else if let Some(text) = parameter(word, "ipv6") {
            settings.ipv6 = self.on_or_off(word, text);
        } else if parameter(word, "status_zone").is_some() {
            self.report(
                Diagnostic::warning(word.span, "\"status_zone\" has no effect")
                    .label("there is no status API to show it"),
            );
        } else if word.contains('=') {
            self.unknown_parameter(word, word, "resolver", "valid ipv4 ipv6 status_zone");
        } else {
            let found = self.name_server(word);
            settings.servers.extend(found);
        }
    }

    fn on_or_off(&mut self, word: &Word, text: &str) -> bool {
        match text {
            "on" => true,
            "off" => false,
            _ => {
                self.invalid(word, "parameter", "expected on or off");
                true
            }
        }
    }

    /// All addresses of one name server.
    fn name_server(&mut self, word: &Word) -> Vec<SocketAddr> {
        let Some((host, port)) = split_host(word) else {
            self.invalid(word, "address", "expected ADDRESS or ADDRESS:PORT");
            return Vec::new();
        };
        let port = port.unwrap_or(DNS_PORT);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return vec![SocketAddr::new(address, port)];
        }
        match (self.options.resolve)(host, port) {
            Ok(found) if !found.is_empty() => found,
            _ => {
                self.refuse(
                    word.span,
                    format!("host not found in resolver \"{word}\""),
                    "expected the IP address of a name server, or a name that this machine knows",
                );
                Vec::new()
            }
        }
    }
}
