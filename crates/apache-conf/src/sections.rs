//! Sections and directives of servers: folders, locations and proxies.

use crate::collect::{Collector, Scope};
use crate::directives::Judged;
use crate::item::Item;

/// A section that is none of files.
pub fn section(_collector: &mut Collector, _item: &Item, _block: &[Item], scope: &Scope) -> Judged {
    match scope.is_server {
        true => Judged::Not("this section has no counterpart".to_owned()),
        false => {
            Judged::Not("this section may stand in the configuration of a server only".to_owned())
        }
    }
}

/// A directive of servers.
pub fn server_directive(_collector: &mut Collector, item: &Item, _scope: &Scope) -> Judged {
    Judged::Not(format!("{} has no counterpart", item.name))
}
