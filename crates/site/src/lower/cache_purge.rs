//! `*_cache_purge`: which requests remove stored responses instead of asking the upstream.
//!
//! The directive has three forms: conditions (`VALUE ...`), a method with the addresses that may
//! use it (`METHOD from ADDRESS ...`), and a location that does nothing else (`ZONE KEY`).

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::exchange::DirectivePrefix;
use super::level::Level;
use super::template::has_variables;
use super::values::{bytes, lower_bytes};
use crate::check::Node;
use crate::model::*;

/// The lines of one level together.
pub(crate) enum PurgeDirective {
    None,
    /// Any value neither empty nor `0` purges.
    Conditions(Vec<Template>),
    /// Any value neither empty nor `0` removes all responses of the zone (`METHOD purge_all`).
    Everything(Vec<Template>),
    /// `ZONE KEY`: every request of this location purges.
    Handler {
        zone: CacheZoneId,
        key: Template,
    },
}

impl Lowering<'_> {
    pub fn cache_purge(&mut self, level: &Level<'_>, protocol: &DirectivePrefix) -> PurgeDirective {
        let mut conditions = Vec::new();
        let mut purges_everything = false;
        for node in level.all(&protocol.name("_cache_purge")).to_vec() {
            let args = node.args();
            match args {
                [off] if off.text == "off" => {}
                [zone, key] if !has_variables(zone) && key.text != "from" && has_variables(key) => {
                    // A location that only purges is not inherited.
                    if level.own(node.name()).is_empty() {
                        continue;
                    }
                    let by = protocol.name("_cache_path");
                    if let Some(zone) = self.cache_zone_named(zone, &by) {
                        let key = self.template(key);
                        return PurgeDirective::Handler { zone, key };
                    }
                }
                [value, ..] if has_variables(value) => {
                    conditions.extend(args.iter().map(|word| self.template(word)));
                }
                [method, rest @ ..] if is_method(method) => {
                    let rest = match rest {
                        [all, rest @ ..] if all.text == "purge_all" => {
                            purges_everything = true;
                            rest
                        }
                        rest => rest,
                    };
                    conditions.extend(self.purge_by_method(method, rest));
                }
                _ => self.invalid_purge(node),
            }
        }
        match (conditions.is_empty(), purges_everything) {
            (true, _) => PurgeDirective::None,
            (false, false) => PurgeDirective::Conditions(conditions),
            (false, true) => PurgeDirective::Everything(conditions),
        }
    }

    fn invalid_purge(&mut self, node: &Node<'_>) {
        self.report(
            Diagnostic::error(node.span(), format!("invalid \"{}\"", node.name()))
                .label("expected variables, a method, or a zone and a key")
                .hint(format!("as in {} PURGE from 127.0.0.1;", node.name())),
        );
    }

    /// The condition for `METHOD [from ADDRESS ...]`. It is made once for each line, however
    /// many levels inherit it.
    fn purge_by_method(&mut self, method: &Word, rest: &[Word]) -> Option<Template> {
        if let Some(known) = self.purges.get(&method.span) {
            return Some(known.clone());
        }
        if ["GET", "HEAD"].contains(&method.text.as_str()) {
            self.report(
                Diagnostic::warning(
                    method.span,
                    format!("every {method} request purges and gets no page"),
                )
                .label("browsers request pages with this method")
                .hint("use the method PURGE, or a location of its own"),
            );
        }
        let networks = self.purge_networks(method, rest)?;
        let mut is_allowed = self.one_from_networks(networks);
        // The values of two conditions side by side are neither empty nor `0` where one is not.
        if rest.iter().skip(1).any(|word| word.text == "local") {
            let is_local = Variable::Builtin(Builtin::ClientIsLocal);
            is_allowed.parts.push(Part::Variable(is_local));
        }
        // The module ngx_cache_purge writes `on` for its method, PURGE.
        let name = if method.text == "on" { "PURGE" } else { method };
        let condition = self.value_for_method(name, is_allowed);
        self.purges.insert(method.span, condition.clone());
        Some(condition)
    }

    /// The networks named after `from`; the word `local` is not a network.
    fn purge_networks(&mut self, method: &Word, rest: &[Word]) -> Option<Vec<Network>> {
        let hint = format!("name the addresses that may, as in {method} from 127.0.0.1");
        match rest {
            [] => {
                self.report(
                    Diagnostic::warning(method.span, "anybody may purge")
                        .label("no address is named")
                        .hint(hint),
                );
                Some(vec![Network::All])
            }
            [from, all] if from.text == "from" && all.text == "all" => {
                self.report(Diagnostic::warning(all.span, "anybody may purge").hint(hint));
                Some(vec![Network::All])
            }
            [from, addresses @ ..] if from.text == "from" && !addresses.is_empty() => {
                let addresses = addresses.iter().filter(|word| word.text != "local");
                Some(addresses.filter_map(|word| self.network(word)).collect())
            }
            [unexpected, ..] => {
                self.invalid(unexpected, "parameter", "expected from ADDRESS ...");
                None
            }
        }
    }

    /// `1` for clients from one of the networks, else `0`: the value of a `geo` made for it.
    fn one_from_networks(&mut self, networks: Vec<Network>) -> Template {
        if networks.contains(&Network::All) {
            return Template::literal("1");
        }
        if networks.is_empty() {
            return Template::literal("0");
        }
        let mut networks: Vec<_> = networks.into_iter().map(|it| (it, bytes("1"))).collect();
        networks.sort_by_key(|(network, _)| match network {
            Network::Block { prefix_bits, .. } => std::cmp::Reverse(*prefix_bits),
            Network::All | Network::Unix => std::cmp::Reverse(0),
        });
        let id = GeoId(self.declared.geos.len());
        self.declared.geos.push(Geo {
            source: Variable::Builtin(Builtin::RemoteAddr),
            networks,
            ranges: Vec::new(),
            default: bytes("0"),
            proxies: Vec::new(),
            proxy_recursive: false,
            has_place_for_others: false,
            volatile: true,
        });
        Template {
            parts: vec![Part::Variable(Variable::Geo(id))],
        }
    }

    /// `value` for requests with this method, else `0`: the value of a `map` made for it.
    fn value_for_method(&mut self, method: &str, value: Template) -> Template {
        let id = MapId(self.declared.maps.len());
        self.declared.maps.push(Map {
            source: Template {
                parts: vec![Part::Variable(Variable::Builtin(Builtin::RequestMethod))],
            },
            volatile: true,
            exact: [(lower_bytes(method), value)].into_iter().collect(),
            leading_wildcard: Vec::new(),
            trailing_wildcard: Vec::new(),
            hostnames: false,
            patterns: Vec::new(),
            default: Template::literal("0"),
        });
        Template {
            parts: vec![Part::Variable(Variable::Map(id))],
        }
    }
}

fn is_method(word: &Word) -> bool {
    word.text == "on" || word.bytes().all(|byte| byte.is_ascii_uppercase())
}
