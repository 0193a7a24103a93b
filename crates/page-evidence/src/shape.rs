//! The evidence about pages whose addresses look alike: a value that did not matter on two of them, seen from two
//! networks, is taken not to matter on the others of them that are shared.
//!
//! A shape is the path without its last segment, and the names of the arguments ([`shape_of`]).

use std::collections::HashMap;

use shared_request::Trait;

/// Values that are remembered of a shape; one that was seen on one page alone gives way to a newcomer.
const MAX_VALUES: usize = 96;
/// Pages on which a value has to have been seen not to matter.
const MIN_PAGES: u16 = 2;
/// Pages on which values of a trait have to have been seen not to matter, and none on which one did, until the
/// trait counts for pages on which none was compared.
const MIN_PAGES_OF_TRAIT: u32 = 8;

/// The evidence about the pages of one shape.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    values: HashMap<u32, SeenValue>,
    traits: [SeenTrait; Trait::ALL.len()],
    /// Pages of it that depend on a trait that a key can hold, by the trait, and the last of them.
    keyed: [(u16, u64); Trait::ALL.len()],
}

/// The pages and networks on which values of a trait did not matter.
#[derive(Debug, Default)]
struct SeenTrait {
    /// A bit for each page, by its number: pages that share a bit count once.
    pages: u64,
    /// One mattered somewhere.
    mattered: bool,
}

/// The pages and networks on which a value did not matter.
#[derive(Debug, Default)]
struct SeenValue {
    /// The number of its trait.
    of: u8,
    pages: u16,
    last_page: u64,
    /// A network from which it was sent; 0: all clients without an address.
    network: u32,
    /// It was sent from two networks.
    is_wide: bool,
}

impl Shape {
    /// Notes that a value did not matter on a page.
    pub(crate) fn note(&mut self, of: Trait, value: u32, page: u64, network: u32) {
        self.traits[of as usize].pages |= 1 << (page % 64);
        if !self.values.contains_key(&value) && self.values.len() >= MAX_VALUES {
            let Some(leaves) = self.leaves(of) else {
                return;
            };
            self.values.remove(&leaves);
        }
        let is_new = !self.values.contains_key(&value);
        let seen = self.values.entry(value).or_default();
        seen.of = of as u8;
        if seen.last_page != page {
            seen.pages = seen.pages.saturating_add(1);
            seen.last_page = page;
        }
        seen.is_wide |= !is_new && seen.network != network;
        seen.network = network;
    }

    /// The value that gives way to one of this trait: one that was seen on one page alone, or else one of the trait of which
    /// there are most. Invented values of one trait push out no value of another.
    fn leaves(&self, newcomer: Trait) -> Option<u32> {
        let narrow = self.values.iter().find(|(_, seen)| !seen.is_enough());
        if let Some((value, _)) = narrow {
            return Some(*value);
        }
        let mut counts = [0; Trait::ALL.len()];
        for seen in self.values.values() {
            counts[usize::from(seen.of)] += 1;
        }
        let most = (0..counts.len()).max_by_key(|it| counts[*it])?;
        let is_full = |(_, seen): &(&u32, &SeenValue)| usize::from(seen.of) == most;
        let value = self.values.iter().find(is_full).map(|(value, _)| *value);
        value.filter(|_| most != newcomer as usize)
    }

    /// Notes that a value mattered on a page: the evidence of other pages about it is dropped.
    pub(crate) fn note_difference(&mut self, of: Trait, value: u32) {
        self.values.remove(&value);
        self.traits[of as usize].mattered = true;
    }

    /// Has the trait mattered on none of many pages?
    pub(crate) fn is_immaterial_trait(&self, of: Trait) -> bool {
        let of = &self.traits[of as usize];
        of.pages.count_ones() >= MIN_PAGES_OF_TRAIT && !of.mattered
    }

    pub(crate) fn is_immaterial(&self, value: u32) -> bool {
        self.values.get(&value).is_some_and(SeenValue::is_enough)
    }

    pub(crate) fn note_keyed(&mut self, it: Trait, page: u64) {
        let (count, last) = &mut self.keyed[it as usize];
        if *count == 0 || *last != page {
            (*count, *last) = (count.saturating_add(1), page);
        }
    }

    /// Do enough pages depend on the trait to assume it of pages that are not known yet?
    pub(crate) fn is_keyed(&self, it: Trait) -> bool {
        self.keyed[it as usize].0 >= MIN_PAGES
    }
}

impl SeenValue {
    fn is_enough(&self) -> bool {
        self.pages >= MIN_PAGES && self.is_wide
    }
}

/// Returns the bytes of an address that name its shape: all up to the last `/` of the path, and the names of the
/// arguments.
#[must_use]
pub fn shape_of(target: &[u8]) -> Vec<u8> {
    let mut halves = target.splitn(2, |&byte| byte == b'?');
    let path = halves.next().unwrap_or_default();
    let args = halves.next().unwrap_or_default();
    let trimmed = path.strip_suffix(b"/").unwrap_or(path);
    let folder = trimmed
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |at| at + 1);
    let mut shape = match trimmed.get(..folder) {
        None | Some([]) => b"/".to_vec(),
        Some(folder) => folder.to_vec(),
    };
    if !args.is_empty() {
        // A script with arguments is a program of its own; its arguments name the page.
        shape = path.to_vec();
    }
    let mut names: Vec<&[u8]> = args
        .split(|byte| matches!(byte, b'&' | b';'))
        .map(|argument| {
            argument
                .split(|&byte| byte == b'=')
                .next()
                .unwrap_or_default()
        })
        .collect();
    names.sort_unstable();
    for name in names {
        shape.push(b'?');
        shape.extend_from_slice(name);
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Trait = Trait::Referer;

    #[test]
    fn a_trait_needs_eight_pages_and_none_on_which_it_mattered() {
        let mut shape = Shape::default();
        for page in 1..=8 {
            assert!(!shape.is_immaterial_trait(OF), "{page}");
            shape.note(OF, 7, page, 0);
            shape.note(OF, 8, page, 0);
        }
        assert!(shape.is_immaterial_trait(OF));
        assert!(!shape.is_immaterial_trait(Trait::Agent));
        shape.note_difference(OF, 9);
        assert!(!shape.is_immaterial_trait(OF));
    }

    #[test]
    fn a_value_needs_two_pages_and_two_networks() {
        let mut shape = Shape::default();
        shape.note(OF, 7, 1, 100);
        shape.note(OF, 7, 1, 200);
        assert!(!shape.is_immaterial(7), "one page");
        shape.note(OF, 7, 2, 200);
        assert!(shape.is_immaterial(7));
        shape.note(OF, 8, 1, 100);
        shape.note(OF, 8, 2, 100);
        assert!(!shape.is_immaterial(8), "one network");
        shape.note(OF, 9, 1, 0);
        shape.note(OF, 9, 2, 0);
        assert!(
            !shape.is_immaterial(9),
            "clients without an address are of one network"
        );
        shape.note_difference(OF, 7);
        assert!(!shape.is_immaterial(7));
    }

    #[test]
    fn values_that_one_page_has_seen_give_way() {
        let mut shape = Shape::default();
        for page in 1..=2 {
            shape.note(OF, 1, page, page as u32);
        }
        for value in 2..1000 {
            shape.note(OF, value, 1, 0);
        }
        assert!(shape.is_immaterial(1));
        assert_eq!(shape.values.len(), MAX_VALUES);
    }

    #[test]
    fn addresses_of_one_folder_and_one_script_look_alike() {
        let of = |target: &str| String::from_utf8(shape_of(target.as_bytes())).unwrap();
        assert_eq!(of("/2026/05/hello/"), of("/2026/05/bye"));
        assert_eq!(of("/hello"), of("/bye/"));
        assert_eq!(of("/"), of("/about/"));
        assert_ne!(of("/2026/05/hello/"), of("/2026/06/hello/"));
        assert_ne!(of("/hello"), of("/hello?magic=1"));
        assert_eq!(of("/index.php?a=1&b=2"), of("/index.php?b=3&a=4"));
        assert_ne!(of("/index.php?a=1"), of("/member.php?a=1"));
    }
}
