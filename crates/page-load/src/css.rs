//! Reads the parts of a style sheet that can cause requests: imports, font faces, and rules that name
//! addresses, fonts or variables.
//!
//! Blocks whose media query does not ask for the stated screen are left out, and so are rules that cannot
//! be read.

use cssparser::{Delimiter, ParseError, Parser, Token};

use crate::media::Viewport;

/// Rules of one sheet that are kept. The largest frameworks have some thousands.
const MAX_RULES: usize = 20_000;
/// Blocks within blocks; more than any sheet has.
const MAX_DEPTH: u8 = 16;
/// The longest selector that is read.
const MAX_SELECTOR_BYTES: usize = 2048;

/// The imports and resources that a sheet can cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StyleSheet {
    pub imports: Vec<Import>,
    pub faces: Vec<FontFace>,
    pub rules: Vec<Rule>,
}

/// `@import`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub address: String,
    /// Its media query asks for the screen; otherwise it is loaded late.
    pub applies: bool,
}

/// `@font-face`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FontFace {
    /// In small letters.
    pub family: String,
    /// The first source that a browser can read. `None` if that is a font of the machine, or data.
    pub source: Option<String>,
    /// The least and the greatest weight that it is made for.
    pub weights: (f32, f32),
    pub is_italic: bool,
    /// Code points; empty is all.
    pub ranges: Vec<(u32, u32)>,
}

/// Declarations for the elements of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub selector: String,
    pub declarations: Vec<Declaration>,
}

/// `property: value`, as written; the property in small letters unless it is a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub property: String,
    pub value: String,
}

/// Properties whose address is asked for.
const PICTURES: [&str; 14] = [
    "background",
    "background-image",
    "border-image",
    "border-image-source",
    "content",
    "cursor",
    "list-style",
    "list-style-image",
    "mask",
    "mask-image",
    "-webkit-mask",
    "-webkit-mask-image",
    "mask-border-source",
    "shape-outside",
];

impl Declaration {
    fn counts(&self) -> bool {
        let names_picture = self.is_picture() && {
            let value = self.value.to_ascii_lowercase();
            value.contains("url(") || value.contains("var(") || value.contains("image-set(")
        };
        names_picture
            || self.property.starts_with("--")
            || matches!(
                self.property.as_str(),
                "font" | "font-family" | "font-weight" | "font-style"
            )
    }

    /// Its address is asked for.
    #[must_use]
    pub fn is_picture(&self) -> bool {
        PICTURES.contains(&self.property.as_str())
    }
}

type Nothing = Result<(), ParseError<()>>;

impl StyleSheet {
    /// Reads a sheet as shown on a screen.
    #[must_use]
    pub fn parse(text: &str, viewport: Viewport) -> StyleSheet {
        let mut sheet = Reader::new(viewport);
        let mut parser = Parser::new(text);
        sheet.rules(&mut parser, None, MAX_DEPTH);
        sheet.sheet
    }

    /// Reads the attribute `style` of an element: a rule for every element.
    #[must_use]
    pub fn parse_attribute(text: &str, viewport: Viewport) -> StyleSheet {
        let mut sheet = Reader::new(viewport);
        let mut parser = Parser::new(text);
        sheet.rules(&mut parser, Some("*"), 1);
        sheet.sheet
    }
}

struct Reader {
    sheet: StyleSheet,
    viewport: Viewport,
}

impl Reader {
    fn new(viewport: Viewport) -> Reader {
        Reader {
            sheet: StyleSheet::default(),
            viewport,
        }
    }

    /// The rules of a sheet or of a block, and within a style rule its declarations.
    fn rules(&mut self, parser: &mut Parser<'_>, selector: Option<&str>, depth: u8) {
        let mut declarations = Vec::new();
        while !parser.is_exhausted() && self.sheet.rules.len() < MAX_RULES {
            let read = match parser.try_parse(|it| {
                let word = it.next()?;
                match word {
                    Token::AtKeyword(name) => Ok(name.to_ascii_lowercase()),
                    _ => Err(ParseError::<()>::unexpected_token()),
                }
            }) {
                Ok(name) => self.at_rule(parser, &name, selector, depth),
                Err(_) if selector.is_some() && declaration(parser, &mut declarations) => Ok(()),
                Err(_) => self.style_rule(parser, selector, depth),
            };
            // A rule that cannot be read ends at the next semicolon or block, which was passed.
            let _ = read;
        }
        declarations.retain(Declaration::counts);
        if let Some(selector) = selector
            && !declarations.is_empty()
        {
            self.sheet.rules.push(Rule {
                selector: selector.to_owned(),
                declarations,
            });
        }
    }

    fn style_rule<'i>(
        &mut self,
        parser: &mut Parser<'i>,
        parent: Option<&str>,
        depth: u8,
    ) -> Nothing {
        // Text that is no declaration ends within a block at a semicolon.
        let end = match parent {
            None => Delimiter::CurlyBracketBlock,
            Some(_) => Delimiter::CurlyBracketBlock | Delimiter::Semicolon,
        };
        let selector = until(parser, end);
        let selector = nested(parent, selector.trim());
        parser.expect_curly_bracket_block()?;
        parser.parse_nested_block(|it| {
            if depth > 0 && selector.len() <= MAX_SELECTOR_BYTES {
                self.rules(it, Some(&selector), depth - 1);
            }
            pass(it)
        })
    }

    fn at_rule<'i>(
        &mut self,
        parser: &mut Parser<'i>,
        name: &str,
        selector: Option<&str>,
        depth: u8,
    ) -> Nothing {
        let prelude = until(parser, Delimiter::CurlyBracketBlock | Delimiter::Semicolon);
        match parser.next() {
            Ok(Token::CurlyBracketBlock) => {}
            _ if name == "import" && selector.is_none() => {
                self.sheet.imports.extend(import(prelude, self.viewport));
                return Ok(());
            }
            _ => return Ok(()),
        }
        parser.parse_nested_block(|it| {
            match name {
                "media" if !self.viewport.is_asked_by(prelude) => {}
                "media" | "supports" | "layer" | "container" | "scope" | "starting-style"
                    if depth > 0 =>
                {
                    self.rules(it, selector, depth - 1);
                }
                "font-face" => self.sheet.faces.extend(face(it)),
                _ => {}
            }
            pass(it)
        })
    }
}

/// A rule within a rule: `&` is the outer one's selector.
fn nested(parent: Option<&str>, selector: &str) -> String {
    let Some(parent) = parent else {
        return selector.to_owned();
    };
    if selector.contains('&') {
        return selector.replace('&', &format!(":is({parent})"));
    }
    let parts = selector.split(',');
    let each: Vec<String> = parts
        .map(|part| format!(":is({parent}) {}", part.trim()))
        .collect();
    each.join(", ")
}

/// Reads `property: value;` where there is one.
fn declaration(parser: &mut Parser<'_>, declarations: &mut Vec<Declaration>) -> bool {
    let read = parser.try_parse(|it| {
        let name = it.expect_ident_cloned()?;
        it.expect_colon()?;
        let is_variable = name.starts_with("--");
        let start = it.position();
        // Not beyond a block, or the rest of the sheet would be read again for each.
        let end = match is_variable {
            true => Delimiter::Semicolon,
            false => Delimiter::Semicolon | Delimiter::CurlyBracketBlock,
        };
        let _ = it.parse_until_before(end, pass);
        if it.try_parse(Parser::expect_curly_bracket_block).is_ok() {
            return Err(ParseError::<()>::unexpected_token());
        }
        let value = it.slice_from(start).trim();
        let _ = it.try_parse(Parser::expect_semicolon);
        Ok(Declaration {
            property: match is_variable {
                true => name.to_string(),
                false => name.to_ascii_lowercase(),
            },
            value: value.to_owned(),
        })
    });
    match read {
        Ok(declaration) => {
            declarations.push(declaration);
            true
        }
        // An empty one.
        Err(_) => parser.try_parse(Parser::expect_semicolon).is_ok(),
    }
}

fn until<'i>(parser: &mut Parser<'i>, end: cssparser::Delimiters) -> &'i str {
    parser.skip_whitespace();
    let start = parser.position();
    let _ = parser.parse_until_before(end, pass);
    parser.slice_from(start)
}

fn pass<'i>(parser: &mut Parser<'i>) -> Nothing {
    while parser.next_including_whitespace().is_ok() {}
    Ok(())
}

/// `url(a.css) layer(base) supports(...) screen`.
fn import(prelude: &str, viewport: Viewport) -> Option<Import> {
    let mut parser = Parser::new(prelude);
    let address = parser.expect_url_or_string().ok()?.to_string();
    for name in ["layer", "supports"] {
        let _ = parser.try_parse(|it| {
            it.expect_function_matching(name)?;
            it.parse_nested_block(pass)
        });
        let _ = parser.try_parse(|it| it.expect_ident_matching(name));
    }
    let start = parser.position();
    let _ = pass(&mut parser);
    Some(Import {
        address,
        applies: viewport.is_asked_by(parser.slice_from(start)),
    })
}

fn face(parser: &mut Parser<'_>) -> Option<FontFace> {
    let mut declarations = Vec::new();
    while !parser.is_exhausted() && declarations.len() < 64 {
        if !declaration(parser, &mut declarations) {
            let _ = parser.next();
        }
    }
    let value = |name: &str| {
        let found = declarations.iter().rev().find(|it| it.property == name);
        found.map(|it| it.value.as_str())
    };
    let weights: Vec<f32> = value("font-weight")
        .unwrap_or("400")
        .split_ascii_whitespace()
        .filter_map(weight)
        .collect();
    let least = *weights.first().unwrap_or(&400.0);
    Some(FontFace {
        family: families(value("font-family")?).into_iter().next()?,
        source: source(value("src")?),
        weights: (least, *weights.get(1).unwrap_or(&least)),
        is_italic: value("font-style").is_some_and(is_slanted),
        ranges: value("unicode-range").map(ranges).unwrap_or_default(),
    })
}

/// Returns the number of a `font-weight` word.
#[must_use]
pub fn weight(word: &str) -> Option<f32> {
    match word {
        "normal" => Some(400.0),
        "bold" | "bolder" => Some(700.0),
        "lighter" => Some(300.0),
        _ => word.parse().ok().filter(|it| (1.0..=1000.0).contains(it)),
    }
}

/// Whether `font-style`, or `font`, asks for slanted letters.
#[must_use]
pub fn is_slanted(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    value
        .split_ascii_whitespace()
        .any(|it| it == "italic" || it == "oblique")
}

/// The first source of `src` that a browser of today can read.
fn source(value: &str) -> Option<String> {
    let mut parser = Parser::new(value);
    let each = parser.parse_comma_separated_ignoring_errors(|it| {
        let Ok(address) = it.expect_url() else {
            // `local(...)`: whether the machine has it is not known; browsers rarely find it.
            return pass(it).map(|()| None);
        };
        let address = address.to_string();
        let format = it.try_parse(|it| {
            it.expect_function_matching("format")?;
            it.parse_nested_block(|it| {
                let word = it.expect_ident_or_string()?.to_ascii_lowercase();
                pass(it).map(|()| word)
            })
        });
        pass(it)?;
        let ending = address.split(['?', '#']).next().unwrap_or_default();
        let is_readable = match &format {
            Ok(format) => !matches!(format.as_str(), "embedded-opentype" | "svg"),
            Err(_) => !ending.ends_with(".eot") && !ending.ends_with(".svg"),
        };
        Ok::<_, ParseError<()>>(is_readable.then_some(address))
    });
    each.into_iter().flatten().next()
}

/// `U+0000-00FF, U+4??`.
fn ranges(value: &str) -> Vec<(u32, u32)> {
    let mut parser = Parser::new(value);
    parser.parse_comma_separated_ignoring_errors(|it| {
        let range = cssparser::UnicodeRange::parse(it)?;
        Ok::<_, ParseError<()>>((range.start, range.end))
    })
}

/// The names that `font-family`, or the end of `font`, lists, in small letters.
#[must_use]
pub fn families(value: &str) -> Vec<String> {
    let mut parser = Parser::new(value);
    parser.parse_comma_separated_ignoring_errors(|it| {
        let mut words = Vec::new();
        while let Ok(token) = it.next() {
            match token {
                Token::QuotedString(name) => words = vec![name.to_ascii_lowercase()],
                Token::Ident(word) => words.push(word.to_ascii_lowercase()),
                // `font: bold 12px/1.5 Some Name`: words before the size are not the name.
                _ => words.clear(),
            }
        }
        Ok::<_, ParseError<()>>(words.join(" "))
    })
}

/// Returns the addresses and variables that a value names. `image-set()` counts with its first address
/// alone.
#[must_use]
pub fn addresses_and_variables(value: &str) -> (Vec<String>, Vec<String>) {
    let mut parser = Parser::new(value);
    let mut found = (Vec::new(), Vec::new());
    collect(&mut parser, &mut found, MAX_DEPTH);
    found
}

fn collect(parser: &mut Parser<'_>, found: &mut (Vec<String>, Vec<String>), depth: u8) {
    while let Ok(token) = parser.next() {
        let name = match token {
            Token::UnquotedUrl(address) => {
                found.0.push(address.to_string());
                continue;
            }
            Token::Function(name) => name.to_ascii_lowercase(),
            Token::ParenthesisBlock => String::new(),
            _ => continue,
        };
        let _ = parser.parse_nested_block(|it| {
            match name.as_str() {
                "url" => found
                    .0
                    .extend(it.expect_string().ok().map(ToString::to_string)),
                "image-set" | "-webkit-image-set" => {
                    let first = it.expect_url_or_string().ok();
                    found.0.extend(first.map(|it| it.to_string()));
                }
                "var" => {
                    found
                        .1
                        .extend(it.expect_ident().ok().map(ToString::to_string));
                    // The fallback is used if there is no such variable.
                }
                _ if depth > 0 => collect(it, found, depth - 1),
                _ => {}
            }
            pass(it)
        });
    }
}

#[cfg(test)]
#[path = "css_tests.rs"]
mod tests;
