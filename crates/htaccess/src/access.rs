//! `Order`, `Allow`, `Deny` and `Satisfy` (`mod_access_compat`). The lines of a section replace those of all outer
//! sections.

use crate::address::Network;
use crate::names::Methods;

/// The order of the two lists: the last one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    DenyAllow,
    AllowDeny,
    MutualFailure,
}

/// The clients that a line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    All,
    Variable {
        name: String,
        is_negated: bool,
    },
    Network(Network),
    Loopback,
    /// A name that would have to be looked up.
    Host,
}

/// The lines of a section. Each holds for some methods.
#[derive(Clone, Debug, Default)]
pub struct AddressAccess {
    pub orders: Vec<(Methods, Order)>,
    pub allows: Vec<(Methods, Source)>,
    pub denies: Vec<(Methods, Source)>,
    pub satisfies_any: Vec<(Methods, bool)>,
}

impl AddressAccess {
    /// Whether the lines let a request in. `is_of` answers whether a source stands for the client; `None`: that is not
    /// known.
    pub fn lets_in(&self, method: &str, mut is_of: impl FnMut(&Source) -> Option<bool>) -> bool {
        // A name that is not looked up is denied where it is denied, and not allowed where it is allowed.
        let mut is_in = |lines: &[(Methods, Source)], unknown: bool| {
            lines
                .iter()
                .filter(|(methods, _)| methods.include(method))
                .any(|(_, source)| is_of(source).unwrap_or(unknown))
        };
        let is_allowed = is_in(&self.allows, false);
        let is_denied = is_in(&self.denies, true);
        match last(&self.orders, method).unwrap_or(Order::DenyAllow) {
            Order::DenyAllow => is_allowed || !is_denied,
            Order::AllowDeny | Order::MutualFailure => is_allowed && !is_denied,
        }
    }

    pub fn is_satisfied_by_any(&self, method: &str) -> bool {
        last(&self.satisfies_any, method).unwrap_or(false)
    }
}

fn last<T: Copy>(lines: &[(Methods, T)], method: &str) -> Option<T> {
    let mut lines = lines.iter().rev();
    let found = lines.find(|(methods, _)| methods.include(method));
    found.map(|(_, value)| *value)
}
