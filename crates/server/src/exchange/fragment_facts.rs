//! The state of a page of fragments, or of a part of one. Other requests have none.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::exchange::page_budget::{FetchTurn, PageBudget};

pub struct FragmentFacts {
    /// The budget that the page and its parts share.
    pub budget: Arc<PageBudget>,
    /// Variables that SSI commands have set.
    pub ssi: OnceLock<SharedSsiValues>,
    /// Its turn to ask an upstream.
    pub turn: Mutex<Option<FetchTurn>>,
}

impl FragmentFacts {
    pub fn new(budget: Arc<PageBudget>) -> Box<FragmentFacts> {
        Box::new(FragmentFacts {
            budget,
            ssi: OnceLock::new(),
            turn: Mutex::new(None),
        })
    }
}

/// Variables set by the commands of a page with server side includes; parts share them with the
/// page.
#[derive(Debug, Default)]
pub struct SsiValues {
    variables: HashMap<Vec<u8>, Vec<u8>>,
    /// Names and values together.
    bytes: usize,
    /// Groups of the last pattern that matched.
    pub groups: Vec<Option<Vec<u8>>>,
}

/// Names and values of a page's variables: a value is made of others, so each command may double it.
const MAX_SSI_VALUES_BYTES: usize = 1024 * 1024;

impl SsiValues {
    pub fn variable(&self, name: &[u8]) -> Option<&Vec<u8>> {
        self.variables.get(name)
    }

    /// Sets a variable; false if there is no room for it.
    pub fn set(&mut self, name: &[u8], value: Vec<u8>) -> bool {
        let before = self
            .variables
            .get(name)
            .map_or(0, |it| name.len() + it.len());
        let bytes = self.bytes - before + name.len() + value.len();
        if bytes > MAX_SSI_VALUES_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.variables.insert(name.to_vec(), value);
        true
    }
}

pub type SharedSsiValues = Arc<Mutex<SsiValues>>;
