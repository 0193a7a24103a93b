//! Whose turn a request has at an upstream.

use fair_queue::Assessment;
use upstream::Class;

/// The class of a request by its purpose, and by its client's behaviour.
#[derive(Debug, Default)]
pub struct RequestTurn {
    /// The class of the request or task that its upstream requests are made for.
    pub class: Class,
    /// Found out once, when an upstream is first asked.
    pub assessed: Option<Assessment>,
}
