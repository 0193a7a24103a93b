//! The name of a page: numbers in the place of its key, its URL, its shape and its zone.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use crate::shape::shape_of;

/// The name of a page: numbers that stand for it, its shape and its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageName {
    pub(crate) page: u64,
    /// That of all variants of the page.
    pub(crate) url: u64,
    pub(crate) shape: u64,
    pub(crate) zone: u64,
}

impl PageName {
    /// The name of the page with this cache key, on a site: the name of its zone, a zero byte, and its host. Hosts of one
    /// zone share the budget for trials, since visitors invent hosts. The key begins with the URL, less the arguments that
    /// do not count, and ends it with a zero byte where more follows.
    #[must_use]
    pub fn new(site: &[u8], key: &[u8]) -> PageName {
        let url = key.split(|&byte| byte == 0).next().unwrap_or_default();
        let after_scheme = url
            .windows(3)
            .position(|it| it == b"://")
            .map_or(0, |at| at + 3);
        let rest = url.get(after_scheme..).unwrap_or_default();
        let path = rest.iter().position(|&byte| byte == b'/').unwrap_or(0);
        let target = rest.get(path..).unwrap_or_default();
        PageName {
            page: hash(key),
            url: hash(url),
            shape: hash(&[site, b"\0", &shape_of(target)].concat()),
            zone: hash(site.split(|&byte| byte == 0).next().unwrap_or_default()),
        }
    }

    /// Stands for the page.
    #[must_use]
    pub fn number(self) -> u64 {
        self.page
    }
}

/// A number for a text that no visitor can compute: one who could would choose addresses with the number of
/// another page.
fn hash(bytes: &[u8]) -> u64 {
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SECRET.hash_one(bytes)
}
