//! How variables see a request: as it is, or as the cache does, for which some arguments
//! and cookies do not count.

use std::sync::{Arc, LazyLock};

use shared_request::NameSet;

/// How variables see a request.
#[derive(Clone, Default)]
pub enum View {
    /// The request unchanged.
    #[default]
    Plain,
    /// The request as the cache sees it: without the arguments and cookies that do not
    /// count.
    Cache(Arc<site::CacheRules>),
}

impl View {
    /// Do all arguments count?
    #[inline]
    pub fn counts_all_arguments(&self) -> bool {
        match self {
            View::Plain => true,
            View::Cache(rules) => rules.ignored_arguments.is_empty(),
        }
    }

    /// The arguments that do not count.
    pub fn ignored_arguments(&self) -> &NameSet {
        static NONE: LazyLock<NameSet> = LazyLock::new(NameSet::default);
        match self {
            View::Plain => &NONE,
            View::Cache(rules) => &rules.ignored_arguments,
        }
    }
}
