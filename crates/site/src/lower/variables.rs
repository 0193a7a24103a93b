//! The names of variables: which are declared, and which are used without a declaration.
//!
//! `map`, `geo`, `split_clients` and `set` are declared before anything is lowered, so that
//! they may be written anywhere. Named groups are found when their patterns are compiled. A
//! name that is used before that gets a slot at once, and is reported at the end if nothing
//! fills the slot.

use std::collections::{HashMap, HashSet};

use nginx_conf::{Diagnostic, Span, did_you_mean};

use crate::check::Node;
use crate::model::*;

#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// `map`, `geo`, `split_clients`.
    declared: HashMap<String, Variable>,
    slots: Vec<Slot>,
    by_name: HashMap<String, SlotId>,
    of_set: HashSet<SlotId>,
    /// Written by `set` with a value that holds the request's method.
    set_from_method: HashSet<SlotId>,
    /// Some value reads `$upstream_cache_last_modified`, or may.
    pub uses_cache_last_modified: bool,
    /// Some value reads `$upstream_http_*` or `$upstream_cookie_*`, or may.
    pub uses_upstream_fields: bool,
    /// Some value reads `$request_body_file`.
    pub uses_request_body_file: bool,
}

#[derive(Debug)]
struct Slot {
    name: String,
    is_filled: bool,
    uses: Vec<Span>,
}

/// Beginnings of names of variables that nginx has and Mayfly does not, and the advice.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("geoip_", "use `geo` with a list of networks"),
    ("uid_reset", "`map` or `set` makes it"),
    ("modern_browser", "use `map $http_user_agent`"),
    ("ancient_browser", "use `map $http_user_agent`"),
    ("msie", "use `map $http_user_agent`"),
    (
        "tcpinfo_",
        "Mayfly does not ask the kernel about connections",
    ),
    ("proxy_internal_", "nginx uses it internally only"),
    ("spdy", "there is no SPDY"),
    ("jwt_", "auth_jwt is not there yet"),
];

/// Variables of nginx about TLS that have no value here.
const TLS_VARIABLES: &[&str] = &[
    "ssl_client_sigalg",
    "ssl_ech_outer_server_name",
    "ssl_ech_status",
    "ssl_sigalg",
];

/// Shorter names are similar to too many others.
const MIN_GUESSED_BYTES: usize = 3;

impl Variables {
    /// Declares a variable of `map`, `geo` or `split_clients`.
    pub fn declare(&mut self, name: &str, variable: Variable) {
        self.declared.insert(name.to_ascii_lowercase(), variable);
    }

    /// Gives every `set` its slot, at any depth.
    pub fn declare_set_variables(&mut self, nodes: &[Node<'_>]) {
        for node in nodes {
            if ["set", "auth_request_set"].contains(&node.name())
                && let Some(name) = node.arg(0).strip_prefix('$')
                && Builtin::from_name(&name.to_ascii_lowercase()).is_none()
            {
                let id = self.filled_slot(name);
                if node.name() == "set" {
                    self.of_set.insert(id);
                }
                if node.arg(1).contains("request_method") {
                    self.set_from_method.insert(id);
                }
            }
            self.declare_set_variables(&node.children);
        }
    }

    /// Does `map`, `geo`, `split_clients` or `set` make a variable of this name?
    pub fn is_defined(&self, name: &str) -> bool {
        let slot = self.by_name.get(name).and_then(|id| self.slots.get(id.0));
        self.declared.contains_key(name) || slot.is_some_and(|slot| slot.is_filled)
    }

    /// Does a `set` write the request's method into it?
    pub fn is_set_from_method(&self, slot: SlotId) -> bool {
        self.set_from_method.contains(&slot)
    }

    /// The slot of a name that something fills.
    pub fn filled_slot(&mut self, name: &str) -> SlotId {
        let id = self.slot(name);
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.is_filled = true;
        }
        id
    }

    /// Names compare without case, as in nginx.
    fn slot(&mut self, name: &str) -> SlotId {
        let name = name.to_ascii_lowercase();
        if let Some(&id) = self.by_name.get(&name) {
            return id;
        }
        let id = SlotId(self.slots.len());
        self.slots.push(Slot {
            name: name.clone(),
            is_filled: false,
            uses: Vec::new(),
        });
        self.by_name.insert(name, id);
        id
    }

    pub fn slot_names(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.name.clone()).collect()
    }

    pub fn slots_of_set(&self) -> HashSet<SlotId> {
        self.of_set.clone()
    }

    pub fn made_variables(&self) -> HashMap<String, Variable> {
        self.declared.clone()
    }

    /// The variable `$name`, used at `span`.
    pub fn resolve(&mut self, written: &str, span: Span) -> Variable {
        let folded = written.to_ascii_lowercase();
        let name = folded.as_str();
        if let [digit @ b'1'..=b'9'] = name.as_bytes() {
            return Variable::Capture(digit - b'0');
        }
        let filled = self.by_name.get(name).copied().filter(|id| {
            let slot = self.slots.get(id.0);
            slot.is_some_and(|slot| slot.is_filled)
        });
        let made = self.declared.get(name).cloned();
        let known = Variable::named(written, made, filled);
        if let Some(variable) = known {
            self.note_use(&variable);
            return variable;
        }
        if TLS_VARIABLES.contains(&name) {
            return Variable::Missing;
        }
        let id = self.slot(name);
        if let Some(slot) = self.slots.get_mut(id.0)
            && !slot.uses.contains(&span)
        {
            slot.uses.push(span);
        }
        Variable::Slot(id)
    }

    /// Notes the data that the server has to keep because some value reads it.
    fn note_use(&mut self, variable: &Variable) {
        match variable {
            Variable::Builtin(Builtin::UpstreamCacheLastModified) => {
                self.uses_cache_last_modified = true;
            }
            Variable::UpstreamField(_) | Variable::UpstreamCookie(_) => {
                self.uses_upstream_fields = true;
            }
            Variable::Builtin(Builtin::RequestBodyFile) => self.uses_request_body_file = true,
            Variable::SetOver(_, below) => self.note_use(below),
            _ => {}
        }
    }

    /// An error for each use of a name that nothing defines.
    pub fn undefined(&self) -> Vec<Diagnostic> {
        let known: Vec<&str> = self
            .slots
            .iter()
            .filter(|slot| slot.is_filled)
            .map(|slot| slot.name.as_str())
            .chain(self.declared.keys().map(String::as_str))
            .chain(Builtin::ALL.iter().map(|builtin| builtin.name()))
            .chain(TLS_VARIABLES.iter().copied())
            .collect();
        let unfilled = self.slots.iter().filter(|slot| !slot.is_filled);
        unfilled
            .flat_map(|slot| slot.uses.iter().map(|&span| (slot.name.as_str(), span)))
            .map(|(name, span)| undefined_name(name, span, &known))
            .collect()
    }
}

fn undefined_name(name: &str, span: Span, known: &[&str]) -> Diagnostic {
    let message = format!("unknown \"{name}\" variable");
    let error = Diagnostic::error(span, message.clone()).cause(message);
    let unsupported = UNSUPPORTED
        .iter()
        .find(|(start, _)| name.starts_with(start));
    if let Some((_, why)) = unsupported {
        return error.label("nginx has it, Mayfly does not yet").hint(*why);
    }
    if name.starts_with("proxy_protocol_tlv_") {
        return error
            .label("no such value of the PROXY protocol")
            .hint("write a known name, or 0x and the type, as in $proxy_protocol_tlv_0x05");
    }
    let meant = did_you_mean(name, known.iter().copied());
    error.label("nothing defines it").hint(
        match meant.filter(|_| name.len() >= MIN_GUESSED_BYTES) {
            Some(meant) => format!("did you mean \"${meant}\"?"),
            None => {
                "`set`, `map`, `geo`, `split_clients` and named groups of patterns define variables"
                    .to_owned()
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_server_is_told_which_costly_variables_some_value_reads() {
        let uses = |value: &str| {
            let text = format!("http {{ log_format f '{value}'; server {{ }} }}");
            let loader: nginx_conf::MemoryLoader =
                [("/m.conf", text.into_bytes())].into_iter().collect();
            let read = crate::read(Path::new("/m.conf"), Path::new("/"), None, None, &loader);
            let http = read.site.unwrap().http;
            (
                http.uses_cache_last_modified,
                http.uses_upstream_fields,
                http.uses_request_body_file,
            )
        };
        assert_eq!(uses("$uri"), (false, false, false));
        assert_eq!(uses("$upstream_cache_last_modified"), (true, false, false));
        assert_eq!(uses("$upstream_http_x"), (false, true, false));
        assert_eq!(uses("$request_body_file"), (false, false, true));
    }
}
