//! Names of variables: what is declared, and what is used before or without
//! a declaration.
//!
//! `map`, `geo`, `split_clients` and `set` are declared before anything is
//! lowered, so that they may stand anywhere. Named captures turn up when
//! their patterns are compiled; a name used before that gets its slot at once
//! and is reported at the end if nothing ever fills it.

use std::collections::{HashMap, HashSet};

use nginx_conf::{Diagnostic, Span, did_you_mean};

use super::Lowering;
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
    pub uses_cache_last_modified: bool,
    /// Some value reads `$sent_http_*`.
    pub uses_sent_fields: bool,
    /// Some value reads `$upstream_http_*` or `$upstream_cookie_*`, or may.
    pub uses_upstream_fields: bool,
}

#[derive(Debug)]
struct Slot {
    name: String,
    is_filled: bool,
    uses: Vec<Span>,
}

/// A name that unknown variables of nginx begin with, and what they are about.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("ssl_", "there is no variable of this name over TLS either"),
    ("geoip_", "use `geo` with a list of networks"),
    ("uid_", "userid is not there yet"),
    ("modern_browser", "use `map $http_user_agent`"),
    ("ancient_browser", "use `map $http_user_agent`"),
    ("msie", "use `map $http_user_agent`"),
    ("secure_link", "secure_link is not there yet"),
    ("tcpinfo_", "the kernel is not asked about connections"),
    ("connections_", "`stub_status` shows them"),
    (
        "proxy_protocol_tlv_",
        "write a known name or 0x and the type, as in $proxy_protocol_tlv_0x05",
    ),
    ("proxy_internal_", "it is of nginx's inside"),
    ("spdy", "there is no SPDY"),
    ("jwt_", "auth_jwt is not there yet"),
    ("otel_", "OpenTelemetry is not there yet"),
];

/// What nginx tells about TLS, without `ssl_`. On a connection without TLS none of them has a
/// value there, nor here.
const TLS_VARIABLES: &[&str] = &[
    "alpn_protocol",
    "cipher",
    "ciphers",
    "client_cert",
    "client_escaped_cert",
    "client_fingerprint",
    "client_i_dn",
    "client_i_dn_legacy",
    "client_raw_cert",
    "client_s_dn",
    "client_s_dn_legacy",
    "client_serial",
    "client_sigalg",
    "client_v_end",
    "client_v_remain",
    "client_v_start",
    "client_verify",
    "curve",
    "curves",
    "early_data",
    "ech_outer_server_name",
    "ech_status",
    "protocol",
    "server_name",
    "session_id",
    "session_reused",
    "sigalg",
];

/// Shorter names are near to too many others.
const MIN_GUESSED_BYTES: usize = 3;

impl Lowering<'_> {
    /// Declares what `map`, `geo` or `split_clients` makes.
    pub fn declare(&mut self, name: &str, variable: Variable) {
        self.variables
            .declared
            .insert(name.to_ascii_lowercase(), variable);
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
                    self.variables.of_set.insert(id);
                }
                if node.arg(1).contains("request_method") {
                    self.variables.set_from_method.insert(id);
                }
            }
            self.declare_set_variables(&node.children);
        }
    }

    /// Does a `set` write the request's method into it?
    pub fn is_set_from_method(&self, slot: SlotId) -> bool {
        self.variables.set_from_method.contains(&slot)
    }

    /// The slot of a name that something fills.
    pub fn filled_slot(&mut self, name: &str) -> SlotId {
        let id = self.slot(name);
        if let Some(slot) = self.variables.slots.get_mut(id.0) {
            slot.is_filled = true;
        }
        id
    }

    /// Names compare without case, as in nginx.
    fn slot(&mut self, name: &str) -> SlotId {
        let name = name.to_ascii_lowercase();
        if let Some(&id) = self.variables.by_name.get(&name) {
            return id;
        }
        let id = SlotId(self.variables.slots.len());
        self.variables.slots.push(Slot {
            name: name.clone(),
            is_filled: false,
            uses: Vec::new(),
        });
        self.variables.by_name.insert(name, id);
        id
    }

    pub fn slot_names(&self) -> Vec<String> {
        self.variables
            .slots
            .iter()
            .map(|slot| slot.name.clone())
            .collect()
    }

    pub fn slots_of_set(&self) -> HashSet<SlotId> {
        self.variables.of_set.clone()
    }

    pub fn made_variables(&self) -> HashMap<String, Variable> {
        self.variables.declared.clone()
    }

    pub fn uses_sent_fields(&self) -> bool {
        self.variables.uses_sent_fields
    }

    pub fn uses_upstream_fields(&self) -> bool {
        self.variables.uses_upstream_fields
    }

    pub fn uses_cache_last_modified(&self) -> bool {
        self.variables.uses_cache_last_modified
    }

    /// What `$name`, used at `span`, stands for.
    pub fn variable(&mut self, written: &str, span: Span) -> Variable {
        let folded = written.to_ascii_lowercase();
        let name = folded.as_str();
        if let [digit @ b'1'..=b'9'] = name.as_bytes() {
            return Variable::Capture(digit - b'0');
        }
        let filled = self.variables.by_name.get(name).copied().filter(|id| {
            let slot = self.variables.slots.get(id.0);
            slot.is_some_and(|slot| slot.is_filled)
        });
        let made = self.variables.declared.get(name).cloned();
        if let Some(variable) = made_or_set(made, filled) {
            return variable;
        }
        if let Some(builtin) = Builtin::from_name(name) {
            return Variable::Builtin(builtin);
        }
        if let Some(variable) = with_free_name(written) {
            self.variables.uses_sent_fields |= matches!(variable, Variable::SentField(_));
            self.variables.uses_upstream_fields |= matches!(
                variable,
                Variable::UpstreamField(_) | Variable::UpstreamCookie(_)
            );
            self.variables.uses_cache_last_modified |= matches!(
                variable,
                Variable::Builtin(Builtin::UpstreamCacheLastModified)
            );
            return variable;
        }
        if name
            .strip_prefix("ssl_")
            .is_some_and(|it| TLS_VARIABLES.contains(&it))
        {
            self.report(
                Diagnostic::warning(span, "variables about TLS have no value")
                    .label("there is no TLS yet")
                    .cause("variables of TLS"),
            );
            return Variable::WithoutTls;
        }
        let id = self.slot(name);
        if let Some(slot) = self.variables.slots.get_mut(id.0)
            && !slot.uses.contains(&span)
        {
            slot.uses.push(span);
        }
        Variable::Slot(id)
    }

    pub fn report_undefined_variables(&mut self) {
        let slots = std::mem::take(&mut self.variables.slots);
        let known: Vec<&str> = slots
            .iter()
            .filter(|slot| slot.is_filled)
            .map(|slot| slot.name.as_str())
            .chain(self.variables.declared.keys().map(String::as_str))
            .chain(Builtin::ALL.iter().map(|builtin| builtin.name()))
            .collect();
        let mut found = Vec::new();
        for slot in slots.iter().filter(|slot| !slot.is_filled) {
            let name = &slot.name;
            for &span in &slot.uses {
                let message = format!("unknown \"{name}\" variable");
                let error = Diagnostic::error(span, message.clone()).cause(message);
                let is_guessable = name.len() >= MIN_GUESSED_BYTES;
                let unsupported = UNSUPPORTED
                    .iter()
                    .find(|(start, _)| name.starts_with(start));
                found.push(match (unsupported, did_you_mean(name, known.iter().copied()).filter(|_| is_guessable)) {
                    (Some((_, why)), _) => {
                        error.label("nginx has it, Mayfly does not yet").hint(*why)
                    }
                    (None, Some(meant)) => {
                        error.label("nothing defines it").hint(format!("did you mean \"${meant}\"?"))
                    }
                    (None, None) => error.label("nothing defines it").hint(
                        "`set`, `map`, `geo`, `split_clients` and named groups of patterns define variables",
                    ),
                });
            }
        }
        found
            .into_iter()
            .for_each(|diagnostic| self.report(diagnostic));
    }
}

impl Http {
    /// What a name stands for that is met at run time.
    pub fn variable(&self, written: &str) -> Option<Variable> {
        let name = written.to_ascii_lowercase();
        let made = self.made_variables.get(&name).cloned();
        let slot = self.slots.iter().position(|slot| *slot == name).map(SlotId);
        if let Some(variable) = made_or_set(made, slot) {
            return Some(variable);
        }
        Builtin::from_name(&name)
            .map(Variable::Builtin)
            .or_else(|| with_free_name(written))
    }
}

/// As in nginx, `set` may write what `map`, `geo` or `split_clients` makes.
fn made_or_set(made: Option<Variable>, slot: Option<SlotId>) -> Option<Variable> {
    match (made, slot) {
        (Some(made), Some(slot)) => Some(Variable::SetOver(slot, Box::new(made))),
        (made, slot) => made.or(slot.map(Variable::Slot)),
    }
}

/// `$arg_NAME`, `$http_NAME` and the like. As in nginx the name may be missing;
/// nothing is called so.
fn with_free_name(name: &str) -> Option<Variable> {
    let free = |prefix: &str| {
        let (start, rest) = name.split_at_checked(prefix.len())?;
        start.eq_ignore_ascii_case(prefix).then_some(rest)
    };
    let kept = |rest: &str| Box::from(rest.as_bytes());
    let lower = |rest: &str| Box::from(rest.to_ascii_lowercase().as_bytes());
    if let Some(rest) = free("arg_") {
        return Some(Variable::Argument(kept(rest)));
    }
    if let Some(rest) = free("http_") {
        return Some(Variable::RequestField(lower(rest)));
    }
    if let Some(rest) = free("sent_http_") {
        return Some(Variable::SentField(lower(rest)));
    }
    if let Some(rest) = free("sent_trailer_") {
        return Some(Variable::SentTrailer(lower(rest)));
    }
    if let Some(rest) = free("upstream_trailer_") {
        return Some(Variable::UpstreamTrailer(lower(rest)));
    }
    if let Some(rest) = free("upstream_http_") {
        return Some(Variable::UpstreamField(lower(rest)));
    }
    if let Some(rest) = free("upstream_cookie_") {
        return Some(Variable::UpstreamCookie(kept(rest)));
    }
    if let Some(rest) = free("proxy_protocol_tlv_") {
        return ProxyExtra::from_name(&rest.to_ascii_lowercase()).map(Variable::ProxyProtocolExtra);
    }
    free("cookie_").map(|rest| Variable::Cookie(kept(rest)))
}
