//! Who answers for which variable. Each module declares those whose facts it owns, in a
//! `VARIABLES` of its own; the table is put together at the top of the crate, where all
//! modules are known. A variable without an owner, or with two, does not compile.

use site::{Builtin, Geo, Map, SplitClients};

use crate::exchange::cache_facts::CacheFacts;
use crate::exchange::delivery::Delivery;
use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::reply::ReplyHead;
use crate::exchange::request::Request;
use upstream_fetch::Trace;

/// A function that appends the value of one variable; false if it has none. The variant
/// is the type that the value is read from.
#[derive(Clone, Copy)]
pub enum Value {
    Received(fn(&ReceivedRequest, &mut Vec<u8>) -> bool),
    Cache(fn(&CacheFacts, &mut Vec<u8>) -> bool),
    Delivery(fn(&Delivery, &mut Vec<u8>) -> bool),
    /// Read from the request in its current state, or made and remembered with it.
    Request(fn(&Request, &mut Vec<u8>) -> bool),
    /// Read from the response, if there is one.
    Reply(fn(&Request, Option<&ReplyHead>, &mut Vec<u8>) -> bool),
    /// Read from the trace of upstreams; no value if no upstream was asked.
    Upstream(OfTrace),
}

/// A function that reads a value from the trace of upstreams.
pub type OfTrace = fn(&Trace, &mut Vec<u8>) -> bool;

/// The variables of one module.
pub type Variables = &'static [(Builtin, Value)];

/// Values that are looked up by another variable's.
pub struct Tables {
    pub map: fn(&Request, Option<&ReplyHead>, &Map, &mut Vec<u8>),
    pub geo: fn(&Request, Option<&ReplyHead>, &Geo, &mut Vec<u8>),
    pub split_clients: fn(&Request, Option<&ReplyHead>, &SplitClients, &mut Vec<u8>),
}

/// All variables of the server.
pub struct VariableTable {
    builtins: [Value; Builtin::COUNT],
    pub tables: Tables,
}

impl VariableTable {
    /// Builds the table from the declarations of `owners` and of the trace of upstreams.
    pub const fn new(
        owners: &[Variables],
        of_trace: &[(Builtin, OfTrace)],
        tables: Tables,
    ) -> VariableTable {
        let mut found: [Option<Value>; Builtin::COUNT] = [None; Builtin::COUNT];
        let mut owner = 0;
        while owner < owners.len() {
            let declared = owners[owner];
            let mut at = 0;
            while at < declared.len() {
                own(&mut found, declared[at].0, declared[at].1);
                at += 1;
            }
            owner += 1;
        }
        let mut at = 0;
        while at < of_trace.len() {
            own(&mut found, of_trace[at].0, Value::Upstream(of_trace[at].1));
            at += 1;
        }
        let mut builtins = [Value::Request(|_, _| false); Builtin::COUNT];
        let mut index = 0;
        while index < Builtin::COUNT {
            match found[index] {
                Some(value) => builtins[index] = value,
                None => panic!("a variable of site's table has no owner"),
            }
            index += 1;
        }
        VariableTable { builtins, tables }
    }

    #[inline]
    pub fn value(&self, builtin: Builtin) -> Value {
        self.builtins[builtin.index()]
    }
}

const fn own(found: &mut [Option<Value>; Builtin::COUNT], builtin: Builtin, value: Value) {
    let entry = &mut found[builtin.index()];
    assert!(entry.is_none(), "a variable has two owners");
    *entry = Some(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_TABLES: Tables = Tables {
        map: |_, _, _, _| {},
        geo: |_, _, _, _| {},
        split_clients: |_, _, _, _| {},
    };
    const NOTHING: Value = Value::Request(|_, _| false);

    fn all() -> Vec<(Builtin, Value)> {
        let builtins = Builtin::ALL.iter();
        builtins.map(|builtin| (*builtin, NOTHING)).collect()
    }

    #[test]
    fn owners_come_in_any_order() {
        let (one, two) = (all().split_off(7), all()[..7].to_vec());
        VariableTable::new(&[one.leak(), two.leak()], &[], NO_TABLES);
    }

    #[test]
    #[should_panic(expected = "no owner")]
    fn a_variable_without_an_owner_is_refused() {
        VariableTable::new(&[all().split_off(1).leak()], &[], NO_TABLES);
    }

    #[test]
    #[should_panic(expected = "two owners")]
    fn a_variable_with_two_owners_is_refused() {
        let of_trace: OfTrace = |_, _| false;
        VariableTable::new(&[all().leak()], &[(Builtin::Status, of_trace)], NO_TABLES);
    }
}
