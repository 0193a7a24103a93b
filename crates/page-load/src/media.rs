//! The medium on which a page is shown: a screen of a stated size, and whether a query asks for it.
//!
//! Media Queries 4, without `calc()`. A feature that is not known here is false, as the standard demands.

use cssparser::{BasicParseError, ParseError, Parser, Token};

/// The screen. One pixel of it is one of CSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewport {
    pub width: u32,
    pub height: u32,
}

impl Default for Viewport {
    /// The most usual window of a desktop.
    fn default() -> Self {
        Viewport {
            width: 1366,
            height: 768,
        }
    }
}

type Verdict = Result<bool, ParseError<()>>;

impl Viewport {
    /// Whether a list of media queries asks for this screen. An empty list asks for every medium.
    #[must_use]
    pub fn is_asked_by(self, queries: &str) -> bool {
        let mut parser = Parser::new(queries);
        if parser.is_exhausted() {
            return true;
        }
        // A query that cannot be read is `not all`; the others of its list count.
        let each = parser.parse_comma_separated_ignoring_errors(|it| self.query(it));
        each.contains(&true)
    }

    fn query<'i>(self, parser: &mut Parser<'i>) -> Verdict {
        let word = |parser: &mut Parser<'i>| {
            parser.try_parse(|it| it.expect_ident_cloned().map(|it| it.to_ascii_lowercase()))
        };
        let Ok(mut medium) = word(parser) else {
            return self.condition(parser);
        };
        let is_negated = medium == "not";
        if is_negated || medium == "only" {
            medium = match word(parser) {
                Ok(medium) => medium,
                Err(_) => return Ok(!self.condition(parser)?),
            };
        }
        let mut is_asked = matches!(medium.as_str(), "all" | "screen");
        if parser
            .try_parse(|it| it.expect_ident_matching("and"))
            .is_ok()
        {
            is_asked &= self.condition(parser)?;
        }
        Ok(is_asked != is_negated)
    }

    /// `(...)`, `not (...)`, and chains of them by `and` or `or`.
    fn condition<'i>(self, parser: &mut Parser<'i>) -> Verdict {
        let mut is_true = self.part(parser)?;
        loop {
            if parser
                .try_parse(|it| it.expect_ident_matching("and"))
                .is_ok()
            {
                is_true &= self.part(parser)?;
            } else if parser
                .try_parse(|it| it.expect_ident_matching("or"))
                .is_ok()
            {
                is_true |= self.part(parser)?;
            } else {
                return Ok(is_true);
            }
        }
    }

    fn part<'i>(self, parser: &mut Parser<'i>) -> Verdict {
        let is_negated = parser
            .try_parse(|it| it.expect_ident_matching("not"))
            .is_ok();
        parser.expect_parenthesis_block()?;
        let is_true = parser.parse_nested_block(|it| {
            let whole = it.try_parse(|it| {
                let is_true = self.condition(it)?;
                it.expect_exhausted()?;
                Ok::<_, ParseError<()>>(is_true)
            });
            whole.or_else(|_| self.feature(it))
        })?;
        Ok(is_true != is_negated)
    }

    /// `name`, `name: value`, `name >= value`, `value <= name < value`.
    fn feature<'i>(self, parser: &mut Parser<'i>) -> Verdict {
        let mut terms = Vec::new();
        while !parser.is_exhausted() {
            terms.push(term(parser)?);
        }
        Ok(match terms.as_slice() {
            [Term::Word(name)] => self.has(name),
            [Term::Word(name), Term::Sign(":"), Term::Word(value)] => self.is(name, value),
            [Term::Word(name), Term::Sign(":"), Term::Number(value)] => {
                let (name, sign) = match (name.strip_prefix("min-"), name.strip_prefix("max-")) {
                    (Some(name), _) => (name, ">="),
                    (_, Some(name)) => (name, "<="),
                    _ => (name.as_str(), "="),
                };
                self.compares(name, sign, *value)
            }
            [Term::Word(name), Term::Sign(sign), Term::Number(value)] => {
                self.compares(name, sign, *value)
            }
            [Term::Number(value), Term::Sign(sign), Term::Word(name)] => {
                self.compares(name, turned(sign), *value)
            }
            [
                Term::Number(least),
                Term::Sign(left),
                Term::Word(name),
                Term::Sign(right),
                Term::Number(most),
            ] => self.compares(name, turned(left), *least) && self.compares(name, right, *most),
            _ => false,
        })
    }

    /// The feature as a number: pixels, dots for each pixel, or a ratio.
    fn number(self, name: &str) -> Option<f32> {
        let (width, height) = (self.width as f32, self.height as f32);
        match name {
            "width" | "device-width" => Some(width),
            "height" | "device-height" => Some(height),
            "aspect-ratio" | "device-aspect-ratio" => Some(width / height),
            "resolution" | "-webkit-device-pixel-ratio" => Some(1.0),
            "color" => Some(8.0),
            "color-index" | "monochrome" | "grid" => Some(0.0),
            _ => None,
        }
    }

    fn compares(self, name: &str, sign: &str, value: f32) -> bool {
        let name = name.strip_prefix("-webkit-min-").unwrap_or(name);
        let name = if name == "device-pixel-ratio" {
            "resolution"
        } else {
            name
        };
        let Some(own) = self.number(name) else {
            return false;
        };
        match sign {
            "=" => (own - value).abs() < 0.001,
            ">" => own > value,
            "<" => own < value,
            ">=" => own >= value,
            "<=" => own <= value,
            _ => false,
        }
    }

    /// A feature without a value: is it anything but zero or `none`?
    fn has(self, name: &str) -> bool {
        let is_word = matches!(
            name,
            "orientation"
                | "hover"
                | "any-hover"
                | "pointer"
                | "any-pointer"
                | "prefers-color-scheme"
                | "color-gamut"
                | "update"
                | "scripting"
        );
        is_word || self.number(name).is_some_and(|it| it > 0.0)
    }

    fn is(self, name: &str, value: &str) -> bool {
        match name {
            "orientation" => (value == "landscape") == (self.width > self.height),
            "hover" | "any-hover" => value == "hover",
            "pointer" | "any-pointer" => value == "fine",
            "prefers-color-scheme" => value == "light",
            "prefers-reduced-motion"
            | "prefers-contrast"
            | "prefers-reduced-data"
            | "prefers-reduced-transparency" => value == "no-preference",
            "forced-colors" | "inverted-colors" => value == "none",
            "display-mode" => value == "browser",
            "color-gamut" => value == "srgb",
            "dynamic-range" => value == "standard",
            "scripting" => value == "enabled",
            "update" => value == "fast",
            _ => false,
        }
    }
}

enum Term {
    Word(String),
    Number(f32),
    Sign(&'static str),
}

fn term<'i>(parser: &mut Parser<'i>) -> Result<Term, BasicParseError> {
    let token = parser.next()?.clone();
    let signed = |parser: &mut Parser<'i>, plain, with_equal| {
        let equal = parser.try_parse(|it| it.expect_delim('='));
        Term::Sign(if equal.is_ok() { with_equal } else { plain })
    };
    Ok(match token {
        Token::Ident(word) => Term::Word(word.to_ascii_lowercase()),
        Token::Colon => Term::Sign(":"),
        Token::Delim('=') => Term::Sign("="),
        Token::Delim('<') => signed(parser, "<", "<="),
        Token::Delim('>') => signed(parser, ">", ">="),
        Token::Number { value, .. } => {
            let below = parser.try_parse(|it| {
                it.expect_delim('/')?;
                it.expect_number()
            });
            Term::Number(value / below.unwrap_or(1.0))
        }
        Token::Dimension { value, unit, .. } => match pixels(value, &unit) {
            Some(value) => Term::Number(value),
            None => return Err(BasicParseError::unexpected_token()),
        },
        _ => return Err(BasicParseError::unexpected_token()),
    })
}

/// A length in pixels, or a resolution in dots for each pixel. `em` is 16 pixels, as it is in media queries.
fn pixels(value: f32, unit: &str) -> Option<f32> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "px" | "dppx" | "x" => value,
        "em" | "rem" => value * 16.0,
        "pt" => value * 4.0 / 3.0,
        "cm" => value * 96.0 / 2.54,
        "mm" => value * 96.0 / 25.4,
        "in" => value * 96.0,
        "dpi" => value / 96.0,
        "dpcm" => value * 2.54 / 96.0,
        _ => return None,
    })
}

fn turned(sign: &str) -> &str {
    match sign {
        "<" => ">",
        ">" => "<",
        "<=" => ">=",
        ">=" => "<=",
        _ => sign,
    }
}

/// A length of `sizes`, in pixels: `480px`, `50vw`, `calc(100vw - 2em)`.
#[must_use]
pub fn length(viewport: Viewport, text: &str) -> Option<f32> {
    let mut parser = Parser::new(text);
    sum(viewport, &mut parser).ok()
}

fn sum<'i>(viewport: Viewport, parser: &mut Parser<'i>) -> Result<f32, ParseError<()>> {
    let mut value = product(viewport, parser)?;
    loop {
        match parser.next() {
            Err(_) => return Ok(value),
            Ok(Token::Delim('+')) => value += product(viewport, parser)?,
            Ok(Token::Delim('-')) => value -= product(viewport, parser)?,
            Ok(_) => return Err(ParseError::unexpected_token()),
        }
    }
}

fn product<'i>(viewport: Viewport, parser: &mut Parser<'i>) -> Result<f32, ParseError<()>> {
    let mut value = factor(viewport, parser)?;
    loop {
        if parser.try_parse(|it| it.expect_delim('*')).is_ok() {
            value *= factor(viewport, parser)?;
        } else if parser.try_parse(|it| it.expect_delim('/')).is_ok() {
            value /= factor(viewport, parser)?;
        } else {
            return Ok(value);
        }
    }
}

fn factor<'i>(viewport: Viewport, parser: &mut Parser<'i>) -> Result<f32, ParseError<()>> {
    let (width, height) = (viewport.width as f32, viewport.height as f32);
    let token = parser.next()?.clone();
    let known = match token {
        Token::Number { value, .. } => Some(value),
        Token::Dimension { value, unit, .. } => match unit.to_ascii_lowercase().as_str() {
            "vw" | "svw" | "lvw" | "dvw" | "vi" => Some(width * value / 100.0),
            "vh" | "svh" | "lvh" | "dvh" | "vb" => Some(height * value / 100.0),
            "vmin" => Some(width.min(height) * value / 100.0),
            "vmax" => Some(width.max(height) * value / 100.0),
            unit => pixels(value, unit),
        },
        Token::ParenthesisBlock => Some(parser.parse_nested_block(|it| sum(viewport, it))?),
        Token::Function(name) => {
            let each =
                parser.parse_nested_block(|it| it.parse_comma_separated(|it| sum(viewport, it)))?;
            match name.to_ascii_lowercase().as_str() {
                "min" => each.iter().copied().reduce(f32::min),
                "max" => each.iter().copied().reduce(f32::max),
                "calc" => each.first().copied(),
                "clamp" => match each.as_slice() {
                    [least, value, most] => Some(value.min(*most).max(*least)),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    };
    known.ok_or_else(ParseError::unexpected_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_queries_ask_for_the_stated_screen() {
        let viewport = Viewport::default();
        for (queries, expected) in [
            ("", true),
            ("all", true),
            ("screen", true),
            ("Screen", true),
            ("print", false),
            ("print, screen", true),
            ("not print", true),
            ("not screen", false),
            ("only screen and (min-width: 600px)", true),
            ("(max-width: 600px)", false),
            ("(min-width: 60em) and (max-width: 100em)", true),
            ("(width >= 600px)", true),
            ("(600px <= width < 1366px)", false),
            ("(600px <= width <= 1366px)", true),
            ("(orientation: landscape)", true),
            ("(orientation: portrait)", false),
            ("(prefers-color-scheme: dark)", false),
            ("(prefers-reduced-motion: reduce)", false),
            ("not (min-width: 600px)", false),
            ("not all and (max-width: 600px)", true),
            ("(hover) and (pointer: fine)", true),
            (
                "(min-resolution: 2dppx), (-webkit-min-device-pixel-ratio: 2)",
                false,
            ),
            ("(min-aspect-ratio: 16/9)", true),
            (
                "((min-width: 1px) and (not (max-width: 2px))) or (print)",
                true,
            ),
            ("(unknown: yes)", false),
            ("(((", false),
            ("screen and", false),
            ("&&&, screen", true),
        ] {
            assert_eq!(viewport.is_asked_by(queries), expected, "{queries}");
        }
    }

    #[test]
    fn lengths_are_pixels_of_the_stated_screen() {
        let viewport = Viewport {
            width: 1000,
            height: 500,
        };
        for (text, expected) in [
            ("480px", Some(480.0)),
            ("50vw", Some(500.0)),
            ("10vh", Some(50.0)),
            ("20em", Some(320.0)),
            ("calc(100vw - 2rem)", Some(968.0)),
            ("calc((100vw - 20px) / 2)", Some(490.0)),
            ("min(100vw, 620px)", Some(620.0)),
            ("clamp(1px, 50vw, 200px)", Some(200.0)),
            ("auto", None),
            ("50%", None),
            ("calc(", None),
        ] {
            assert_eq!(length(viewport, text), expected, "{text}");
        }
    }
}
