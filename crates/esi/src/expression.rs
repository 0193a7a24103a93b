//! The conditions of `<esi:when test="...">`
//! (<https://www.w3.org/TR/esi-lang/>, section 5).
//!
//! ```text
//! or      = and *( "|" and )
//! and     = not *( "&" not )
//! not     = "!" not | "(" or ")" | operand [ ( "==" | "!=" | "<=" | ">=" | "<" | ">" ) operand ]
//! operand = "'" text "'" | number | variable
//! ```

use crate::expand::{Values, variable};
use std::cmp::Ordering;

/// Parentheses and negations within each other.
const MAX_DEPTH: usize = 32;

/// A text that is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {at}")]
pub struct InvalidExpression {
    /// How many bytes of it could be read.
    pub at: usize,
    expected: &'static str,
}

/// Returns whether `text` holds.
///
/// A comparison with a variable that has no value never does. Two whole numbers are compared as
/// such, everything else byte by byte. An operand by itself holds if it is neither empty nor
/// `false`.
///
/// # Errors
/// It is no expression.
pub fn evaluate(text: &[u8], values: &dyn Values) -> Result<bool, InvalidExpression> {
    let mut reader = Reader {
        text,
        at: 0,
        values,
    };
    let holds = reader.or(0)?;
    match reader.rest().is_empty() {
        true => Ok(holds),
        false => Err(reader.expected("an operator or the end")),
    }
}

/// Whether a comparison with this result holds.
type OrderingTest = fn(Ordering) -> bool;

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    values: &'a dyn Values,
}

impl Reader<'_> {
    fn rest(&mut self) -> &[u8] {
        let blank = self.text[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace());
        self.at += blank.count();
        &self.text[self.at..]
    }

    /// Reads `token` if it comes next.
    fn takes(&mut self, token: &[u8]) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn expected(&self, expected: &'static str) -> InvalidExpression {
        InvalidExpression {
            at: self.at,
            expected,
        }
    }

    fn or(&mut self, depth: usize) -> Result<bool, InvalidExpression> {
        let mut holds = self.and(depth)?;
        while self.takes(b"|") {
            // Some write it twice.
            self.takes(b"|");
            // All of it is read, so that mistakes are found.
            holds |= self.and(depth)?;
        }
        Ok(holds)
    }

    fn and(&mut self, depth: usize) -> Result<bool, InvalidExpression> {
        let mut holds = self.not(depth)?;
        while self.takes(b"&") {
            self.takes(b"&");
            holds &= self.not(depth)?;
        }
        Ok(holds)
    }

    fn not(&mut self, depth: usize) -> Result<bool, InvalidExpression> {
        if depth > MAX_DEPTH {
            return Err(self.expected("fewer parentheses"));
        }
        if self.rest().starts_with(b"!") && !self.rest().starts_with(b"!=") {
            self.at += 1;
            return Ok(!self.not(depth + 1)?);
        }
        if self.takes(b"(") {
            let holds = self.or(depth + 1)?;
            return match self.takes(b")") {
                true => Ok(holds),
                false => Err(self.expected("`)`")),
            };
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<bool, InvalidExpression> {
        const OPERATORS: [(&[u8], OrderingTest); 6] = [
            (b"==", Ordering::is_eq),
            (b"!=", Ordering::is_ne),
            (b"<=", Ordering::is_le),
            (b">=", Ordering::is_ge),
            (b"<", Ordering::is_lt),
            (b">", Ordering::is_gt),
        ];
        let left = self.operand()?;
        for (operator, holds) in OPERATORS {
            if self.takes(operator) {
                let right = self.operand()?;
                return Ok(match (left, right) {
                    (Some(left), Some(right)) => holds(compare(&left, &right)),
                    _ => false,
                });
            }
        }
        Ok(left.is_some_and(|value| !value.is_empty() && value != b"false"))
    }

    /// `None` for a variable without a value.
    fn operand(&mut self) -> Result<Option<Vec<u8>>, InvalidExpression> {
        let rest = self.rest();
        if let Some(quoted) = rest.strip_prefix(b"'") {
            let Some(end) = memchr::memchr(b'\'', quoted) else {
                return Err(self.expected("`'` at the end of the text"));
            };
            let text = quoted[..end].to_vec();
            self.at += end + 2;
            return Ok(Some(text));
        }
        if rest.starts_with(b"$(") {
            let at = self.at;
            let Some((variable, length)) = variable(&self.text[at..]) else {
                return Err(self.expected("a variable as $(NAME) or $(NAME{KEY})"));
            };
            self.at += length;
            let value = variable.value_or_default(self.values);
            return Ok((!value.is_empty()).then_some(value));
        }
        let sign = usize::from(rest.starts_with(b"-"));
        let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit());
        let length = sign + digits.count();
        if length == sign {
            return Err(self.expected("'text', a number or a variable"));
        }
        let number = rest[..length].to_vec();
        self.at += length;
        Ok(Some(number))
    }
}

fn compare(left: &[u8], right: &[u8]) -> Ordering {
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.cmp(right),
    }
}

fn number(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::tests::Visitor;
    use proptest::prelude::*;

    #[test]
    fn conditions_hold_or_not() {
        for (text, wanted) in [
            ("$(HTTP_COOKIE{group})=='Advanced'", true),
            ("$(HTTP_COOKIE{group}) != 'Advanced'", false),
            ("'a' < 'b'", true),
            ("10 > 9", true),
            ("'10' > '9'", true),
            ("'10' > '9a'", false),
            ("-1 < 0", true),
            ("$(HTTP_COOKIE{count}) >= 7", true),
            ("$(HTTP_COOKIE{none}) == ''", false),
            ("$(HTTP_COOKIE{none}) != 'x'", false),
            ("!($(HTTP_COOKIE{none}) == 'x')", true),
            ("$(HTTP_COOKIE{none}|'x') == 'x'", true),
            ("$(HTTP_ACCEPT_LANGUAGE{de})", true),
            ("$(HTTP_ACCEPT_LANGUAGE{fr})", false),
            ("1==1 & 1==2 | 1==1", true),
            ("1==2 & (1==2 | 1==1)", false),
            ("(1==1) && !(1==2) || 1==2", true),
            ("!1==1", false),
        ] {
            assert_eq!(evaluate(text.as_bytes(), &Visitor), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, wanted) in [
            ("", "expected 'text', a number or a variable at byte 0"),
            ("1 == ", "expected 'text', a number or a variable at byte 5"),
            ("(1==1", "expected `)` at byte 5"),
            ("1==1 x", "expected an operator or the end at byte 5"),
            ("'a", "expected `'` at the end of the text at byte 0"),
            (
                "$(a",
                "expected a variable as $(NAME) or $(NAME{KEY}) at byte 0",
            ),
        ] {
            let error = evaluate(text.as_bytes(), &Visitor).expect_err(text);
            assert_eq!(error.to_string(), wanted, "{text}");
        }
        let deep = "(".repeat(5000);
        let error = evaluate(deep.as_bytes(), &Visitor).expect_err("too deep");
        assert!(error.to_string().contains("fewer parentheses"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[$(){}|&!=<>'a1 -]{0,60}") {
            let _ = evaluate(text.as_bytes(), &Visitor);
        }
    }
}
