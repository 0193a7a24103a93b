//! Whose turn a request has at an upstream.

use fair_queue::Assessment;
use upstream::Class;

/// The class of a request by what it is made for, and what its client's behaviour makes of it.
#[derive(Debug, Default)]
pub struct RequestTurn {
    /// Who waits for what upstreams are asked on its behalf.
    pub class: Class,
    /// Found out once, when an upstream is first asked.
    pub assessed: Option<Assessment>,
}
