//! The rules for addresses of the configuration in force.

use std::cell::RefCell;
use std::rc::Rc;

use cache_decision::address::AddressRules;

use crate::exchange::active_configuration::ActiveConfiguration;

thread_local! {
    /// The rules of the configuration with this serial number.
    static LAST: RefCell<Option<(u64, Rc<AddressRules>)>> = const { RefCell::new(None) };
}

/// Returns the address rules of a configuration; each thread computes them once.
pub fn of(configuration: &ActiveConfiguration) -> Rc<AddressRules> {
    LAST.with_borrow_mut(|last| match last {
        Some((serial, rules)) if *serial == configuration.serial => rules.clone(),
        _ => {
            let rules = Rc::new(AddressRules::of_site(&configuration.site));
            *last = Some((configuration.serial, rules.clone()));
            rules
        }
    })
}
