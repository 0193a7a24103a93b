//! The pictures and fonts that a document needs because of its style sheets.
//!
//! An address in a sheet is asked for where a rule that names it has an element in the document. A font
//! is asked for where such a rule, or a variable that it uses, names its family, and the document has a
//! character of its range. This is an estimate: it does not decide which of two rules wins, nor which
//! elements are hidden, so that a page may be given a little more than a browser would ask for.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Instant;

use scraper::{ElementRef, Html, Selector};
use url::Url;

use crate::css::{self, Declaration, FontFace, StyleSheet};
use crate::resource::address;

/// Elements of a document that rules are tried on: the largest pages have some ten thousand.
const MAX_ELEMENTS: usize = 100_000;
/// Variables that refer to variables.
const MAX_VARIABLE_DEPTH: usize = 8;
/// Values of variables, together: values may name each other often.
const MAX_VALUES: usize = 10_000;
/// Elements between two looks at the clock.
const TRIED_AT_ONCE: usize = 256;

/// A sheet, with the address that its own are relative to.
#[derive(Clone, Debug)]
pub struct LoadedSheet {
    pub base: Url,
    pub sheet: StyleSheet,
    /// It is for this screen, and no alternative that a visitor could choose.
    pub applies: bool,
}

/// The files that a document needs because of its style sheets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeededFiles {
    pub pictures: BTreeSet<Url>,
    pub fonts: BTreeSet<Url>,
    /// There was no time for all rules.
    pub is_cut: bool,
}

/// Looks at each rule until `deadline`.
#[must_use]
pub fn needed(html: &str, sheets: &[LoadedSheet], deadline: Instant) -> NeededFiles {
    let document = Html::parse_document(html);
    let elements = elements(&document);
    let mut needed = NeededFiles::default();
    let mut declared = DeclaredProperties::default();
    let sheets = || sheets.iter().filter(|it| it.applies);
    for loaded in sheets() {
        for rule in &loaded.sheet.rules {
            match has_element(&rule.selector, &elements, deadline) {
                None => needed.is_cut = true,
                Some(false) => {}
                Some(true) => declared.add(&loaded.base, &rule.declarations),
            }
        }
    }
    for (base, value) in declared.expanded(Declaration::is_picture) {
        let (addresses, _) = css::addresses_and_variables(value);
        let urls = addresses.iter().filter_map(|it| address(base, it));
        needed.pictures.extend(urls);
    }
    let letters = Letters::new(&declared, &elements, &document);
    let faces = sheets().flat_map(|loaded| {
        let faces = loaded.sheet.faces.iter();
        faces.map(|face| (&loaded.base, face))
    });
    let faces: Vec<(&Url, &FontFace)> = faces.collect();
    for family in &letters.families {
        let of_family: Vec<_> = faces.iter().filter(|it| it.1.family == *family).collect();
        for (base, face) in &of_family {
            let candidates = of_family.iter().map(|it| it.1);
            if letters.need(face, candidates)
                && let Some(source) = &face.source
            {
                needed.fonts.extend(address(base, source));
            }
        }
    }
    needed
}

/// Returns the elements of the page itself, not of its templates.
fn elements(document: &Html) -> Vec<ElementRef<'_>> {
    let mut found = Vec::new();
    let mut open = vec![document.root_element()];
    while let Some(element) = open.pop() {
        if found.len() < MAX_ELEMENTS {
            found.push(element);
        }
        if element.value().name() != "template" {
            open.extend(element.child_elements());
        }
    }
    found
}

/// Whether a selector has an element; `None` if the time is over.
fn has_element(selector: &str, elements: &[ElementRef<'_>], deadline: Instant) -> Option<bool> {
    let selectors = readable(selector);
    for selector in &selectors {
        for some in elements.chunks(TRIED_AT_ONCE) {
            if Instant::now() >= deadline {
                return None;
            }
            if some.iter().any(|it| selector.matches(it)) {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// Words after a colon that are true of every element, or of every link, when a page has been loaded.
const TRUE_AT_LOAD: [&str; 4] = [":any-link", ":link", ":enabled", ":defined"];
/// Parts of an element, whose pictures and fonts are asked for with it.
const PARTS: [&str; 6] = [
    "::before",
    "::after",
    ":before",
    ":after",
    "::marker",
    "::first-letter",
];

/// Returns the selectors of a list that can be tried. A selector that depends on a visitor (`:hover`)
/// has no element, and `:has()` is left out, since its work grows with the square of the document.
fn readable(list: &str) -> Vec<Selector> {
    if let Some(whole) = parsed(list) {
        return vec![whole];
    }
    let parts = split_list(list);
    parts.into_iter().filter_map(parsed).collect()
}

fn parsed(selector: &str) -> Option<Selector> {
    if selector.contains(":has(") {
        return None;
    }
    let mut text = selector.trim().to_owned();
    for word in PARTS.iter().chain(&TRUE_AT_LOAD) {
        if text.contains(word) {
            text = text.replace(word, "");
        }
    }
    // `::before` alone is of every element.
    let text = match text.trim() {
        "" => "*",
        text => text,
    };
    Selector::parse(text).ok()
}

/// At the commas outside of brackets.
fn split_list(list: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = list.split(|it| {
        match it {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        it == ',' && depth <= 0
    });
    parts.collect()
}

/// The declarations of the rules that match elements.
#[derive(Default)]
struct DeclaredProperties<'a> {
    plain: Vec<(&'a Url, &'a Declaration)>,
    variables: BTreeMap<&'a str, Vec<(&'a Url, &'a str)>>,
}

impl<'a> DeclaredProperties<'a> {
    fn add(&mut self, base: &'a Url, declarations: &'a [Declaration]) {
        for declaration in declarations {
            if declaration.property.starts_with("--") {
                let values = self.variables.entry(&declaration.property).or_default();
                values.push((base, &declaration.value));
            } else {
                self.plain.push((base, declaration));
            }
        }
    }

    /// The values of some declarations, and of the variables that they use.
    fn expanded(&self, which: impl Fn(&Declaration) -> bool) -> Vec<(&'a Url, &'a str)> {
        let chosen = self.plain.iter().filter(|it| which(it.1));
        let mut values: Vec<(&Url, &str)> = chosen.map(|it| (it.0, it.1.value.as_str())).collect();
        let mut from = 0;
        let mut seen = HashSet::new();
        for _ in 0..MAX_VARIABLE_DEPTH {
            let latest = values.iter().skip(from);
            let names = latest.flat_map(|it| css::addresses_and_variables(it.1).1);
            let names: Vec<String> = names.collect();
            from = values.len();
            for name in names {
                let known = self.variables.get_key_value(name.as_str());
                let known = known.filter(|(name, _)| seen.insert(**name));
                if values.len() < MAX_VALUES {
                    values.extend(known.into_iter().flat_map(|it| it.1));
                }
            }
        }
        values
    }
}

/// How the text of a document is set.
struct Letters {
    families: BTreeSet<String>,
    weights: Vec<f32>,
    has_italic: bool,
    characters: HashSet<u32>,
}

impl Letters {
    fn new(
        declared: &DeclaredProperties<'_>,
        elements: &[ElementRef<'_>],
        document: &Html,
    ) -> Letters {
        let is = |names: &'static [&'static str]| {
            move |it: &Declaration| names.contains(&it.property.as_str())
        };
        let named = declared.expanded(is(&["font", "font-family"]));
        let families = named.iter().flat_map(|it| css::families(it.1)).collect();
        let has = |names: &[&str]| elements.iter().any(|it| names.contains(&it.value().name()));
        let slanted = declared.expanded(is(&["font", "font-style"]));
        let has_italic = has(&["em", "i", "cite", "dfn", "var", "address"])
            || slanted.iter().any(|it| css::is_slanted(it.1));
        let mut weights = vec![400.0];
        if has(&["b", "strong", "th", "h1", "h2", "h3", "h4", "h5", "h6"]) {
            weights.push(700.0);
        }
        for (_, value) in declared.expanded(is(&["font", "font-weight"])) {
            weights.extend(value.split_ascii_whitespace().find_map(css::weight));
        }
        let text = document.root_element().text();
        let characters = text.flat_map(str::chars).map(u32::from).collect();
        Letters {
            families,
            weights,
            has_italic,
            characters,
        }
    }

    /// Whether a face is needed, beside the others of its family.
    fn need<'a>(
        &self,
        face: &FontFace,
        family: impl Iterator<Item = &'a FontFace> + Clone,
    ) -> bool {
        let has_upright = family.clone().any(|it| !it.is_italic);
        if face.is_italic && !self.has_italic && has_upright {
            return false;
        }
        let has_character = face.ranges.is_empty()
            || self.characters.iter().any(|it| {
                let mut ranges = face.ranges.iter();
                ranges.any(|(start, end)| (start..=end).contains(&it))
            });
        let alike = family.filter(|it| it.is_italic == face.is_italic);
        let distances: Vec<&FontFace> = alike.collect();
        has_character
            && self.weights.iter().any(|weight| {
                let own = distance(face, *weight);
                distances.iter().all(|it| own <= distance(it, *weight))
            })
    }
}

/// How far a weight is from those that a face is made for.
fn distance(face: &FontFace, weight: f32) -> f32 {
    let (least, most) = face.weights;
    (least - weight).max(weight - most).max(0.0)
}

#[cfg(test)]
#[path = "style_tests.rs"]
mod tests;
