//! The choice of a browser among an image's sources (HTML, "Images", source sets).

use crate::media::{Viewport, length};

/// Candidates of one `srcset` that are read: more than any image has.
const MAX_CANDIDATES: usize = 64;

/// The address that is chosen from `srcset`, `sizes` and `src`, each as written.
#[must_use]
pub fn chosen(
    viewport: Viewport,
    srcset: Option<&str>,
    sizes: Option<&str>,
    src: Option<&str>,
) -> Option<String> {
    let mut candidates = candidates(srcset.unwrap_or_default());
    let has_widths = candidates
        .iter()
        .any(|it| matches!(it.size, Size::Width(_)));
    if let Some(src) = src.filter(|it| !it.trim().is_empty())
        && !has_widths
        && !candidates.iter().any(|it| it.size == Size::Density(1.0))
    {
        candidates.push(Candidate {
            address: src.to_owned(),
            size: Size::Density(1.0),
        });
    }
    let slot = slot(viewport, sizes.unwrap_or_default()).max(1.0);
    let mut known: Vec<(f32, &str)> = candidates
        .iter()
        .map(|it| {
            let density = match it.size {
                Size::Density(density) => density,
                Size::Width(width) => width / slot,
            };
            (density, it.address.as_str())
        })
        .collect();
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    Some(nearest(&known)?.to_owned())
}

/// Returns the least dense image that has a dot for each pixel; without such a one, the densest. The first of
/// equal ones counts.
fn nearest<'a>(known: &[(f32, &'a str)]) -> Option<&'a str> {
    let enough = known.iter().find(|it| it.0 >= 1.0);
    let densest = known.last()?.0;
    let found = enough.or_else(|| known.iter().find(|it| it.0 == densest));
    found.map(|(_, address)| *address)
}

/// The width at which the image is shown, in pixels.
fn slot(viewport: Viewport, sizes: &str) -> f32 {
    for size in split_outside_brackets(sizes) {
        let size = size.trim();
        // The length is the last word; the words before it are a media condition.
        let at = last_word(size);
        let (condition, text) = size.split_at(at);
        if viewport.is_asked_by(condition)
            && let Some(length) = length(viewport, text)
        {
            return length;
        }
    }
    viewport.width as f32
}

fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|it| {
        match it {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        it == ',' && depth <= 0
    })
    .collect()
}

fn last_word(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, character) in text.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ if depth == 0 && character.is_ascii_whitespace() => return at + 1,
            _ => {}
        }
    }
    0
}

#[derive(Debug, PartialEq)]
enum Size {
    Width(f32),
    Density(f32),
}

struct Candidate {
    address: String,
    size: Size,
}

/// Addresses may have commas within, not at their ends.
fn candidates(srcset: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut rest = srcset;
    while found.len() < MAX_CANDIDATES {
        rest = rest.trim_start_matches(|it: char| it.is_ascii_whitespace() || it == ',');
        if rest.is_empty() {
            break;
        }
        let end = rest.find(|it: char| it.is_ascii_whitespace());
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        let address = word.trim_end_matches(',');
        let descriptor = if address.len() < word.len() {
            rest = after;
            ""
        } else {
            let end = after.find(',').unwrap_or(after.len());
            let (descriptor, after) = after.split_at(end);
            rest = after;
            descriptor.trim()
        };
        if let Some(size) = size(descriptor) {
            found.push(Candidate {
                address: address.to_owned(),
                size,
            });
        }
    }
    found
}

fn size(descriptor: &str) -> Option<Size> {
    // `640w 480h`: the height does not count.
    let word = descriptor
        .split_ascii_whitespace()
        .find(|it| !it.ends_with('h'));
    let Some(word) = word else {
        return Some(Size::Density(1.0));
    };
    let number = word.get(..word.len() - 1).and_then(|it| it.parse().ok());
    let number = number.filter(|it: &f32| it.is_finite() && *it > 0.0)?;
    match word.as_bytes().last() {
        Some(b'w') => Some(Size::Width(number)),
        Some(b'x') => Some(Size::Density(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, `srcset`, `sizes`, `src`, and the chosen source.
    type Case<'a> = (
        &'a str,
        Option<&'a str>,
        Option<&'a str>,
        Option<&'a str>,
        Option<&'a str>,
    );

    #[test]
    fn the_source_that_fits_the_stated_screen_is_chosen() {
        let widths = "s.jpg 300w, m.jpg 1024w, l.jpg 2048w";
        #[rustfmt::skip]
        let cases: &[Case<'_>] = &[
            ("src alone", None, None, Some("a.png"), Some("a.png")),
            ("nothing", None, None, None, None),
            ("empty", Some(""), None, Some(" "), None),
            ("densities", Some("b.png 2x"), None, Some("a.png"), Some("a.png")),
            ("only a denser one", Some("b.png 2x"), None, None, Some("b.png")),
            ("widths, whole screen", Some(widths), None, Some("a.jpg"), Some("l.jpg")),
            ("widths, small slot", Some(widths), Some("300px"), None, Some("s.jpg")),
            ("the condition holds", Some(widths), Some("(min-width: 600px) 250px, 100vw"), None, Some("s.jpg")),
            ("the condition fails", Some(widths), Some("(max-width: 600px) 250px, 2000px"), None, Some("l.jpg")),
            ("WordPress", Some(widths), Some("(max-width: 1024px) 100vw, 1024px"), Some("m.jpg"), Some("m.jpg")),
            ("auto before it", Some(widths), Some("auto, (max-width: 1024px) 100vw, 1024px"), None, Some("m.jpg")),
            ("calc", Some(widths), Some("calc(100vw - (300px + 2em))"), None, Some("l.jpg")),
            ("commas within", Some("a,b.png, c.png 2x"), None, None, Some("a,b.png")),
            ("no blank", Some("a.png,"), None, None, Some("a.png")),
            ("wrong descriptors", Some("a.png -1x, b.png 0w, c.png q"), None, Some("d.png"), Some("d.png")),
        ];
        for (name, srcset, sizes, src, expected) in cases {
            let found = chosen(Viewport::default(), *srcset, *sizes, *src);
            assert_eq!(found.as_deref(), *expected, "{name}");
        }
    }
}
