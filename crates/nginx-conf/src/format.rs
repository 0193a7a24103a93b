//! Indents configuration text: from a tree, or from a text whose comments and line breaks are kept.
//!
//! Either way parsing the result gives the same tree again.

use crate::ast::{Ast, Directive, Word};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Lexer, TokenKind};
use crate::load::parse;
use crate::parser::text_start;

const INDENT: &str = "    ";

/// The tree as text: a directive a line, four spaces a block, quotes where the
/// word had them or needs them.
pub fn format(ast: &Ast) -> String {
    let mut text = String::new();
    write_all(&mut text, &ast.directives, 0);
    guard_start(&mut text);
    text
}

/// A word may begin with U+FEFF, which at the very start of a text would be
/// taken for a byte order mark.
fn guard_start(text: &mut String) {
    if text_start(text) > 0 {
        text.insert(0, '\n');
    }
}

fn write_all(text: &mut String, directives: &[Directive], depth: usize) {
    let mut after_block = false;
    for directive in directives {
        if after_block {
            text.push('\n');
        }
        text.push_str(&INDENT.repeat(depth));
        write_word(text, &directive.name);
        for arg in &directive.args {
            text.push(' ');
            write_word(text, arg);
        }
        match &directive.block {
            None => text.push_str(";\n"),
            Some(block) => {
                text.push_str(" {\n");
                write_all(text, block, depth + 1);
                text.push_str(&INDENT.repeat(depth));
                text.push_str("}\n");
            }
        }
        after_block = directive.block.is_some();
    }
}

fn write_word(text: &mut String, word: &Word) {
    let bare = if word.quoted { None } else { bare(&word.text) };
    text.push_str(&bare.unwrap_or_else(|| quoted(&word.text)));
}

/// The value as an unquoted word, if it can be written as one.
fn bare(value: &str) -> Option<String> {
    let mut written = String::with_capacity(value.len());
    let mut chars = value.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            '\n' => written.push_str("\\n"),
            '"' | '\'' if written.is_empty() => {
                written.push('\\');
                written.push(char);
            }
            '\\' => {
                written.push('\\');
                match chars.peek().copied() {
                    // Would stand for something else, so the backslash itself
                    // is escaped; `$` must stay free to protect a `{`.
                    None | Some('"' | '\'' | '\\' | 't' | 'r' | 'n' | '\t' | '\r' | '\n' | '$') => {
                        written.push('\\');
                    }
                    Some(next) => {
                        written.push(next);
                        chars.next();
                    }
                }
            }
            other => written.push(other),
        }
    }
    let mut tokens = Lexer::new(&written);
    let is_the_word = matches!(
        tokens.next()?.kind,
        TokenKind::Word { text, quoted: false, .. } if text == value
    );
    (is_the_word && tokens.next().is_none()).then_some(written)
}

fn quoted(value: &str) -> String {
    let quote = if value.contains('"') && !value.contains('\'') {
        '\''
    } else {
        '"'
    };
    let mut written = String::with_capacity(value.len() + 2);
    written.push(quote);
    let mut chars = value.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                written.push('\\');
                // Only where it would stand for something else: `\.` stays.
                if matches!(
                    chars.peek(),
                    None | Some('"' | '\'' | '\\' | 't' | 'r' | 'n')
                ) {
                    written.push('\\');
                }
            }
            char if char == quote => {
                written.push('\\');
                written.push(char);
            }
            other => written.push(other),
        }
    }
    written.push(quote);
    written
}

/// The text with its indentation and spacing put in order. Words, comments and
/// line breaks between words stay; of several empty lines one stays.
///
/// # Errors
///
/// The diagnostics, when the text has errors: then nothing is certain.
pub fn reformat(name: &str, text: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse(name, text.as_bytes());
    if parsed.has_errors() {
        return Err(parsed.diagnostics);
    }
    let mut writer = Writer {
        out: String::new(),
        depth: 0,
        in_directive: false,
    };
    let mut last_end = text_start(text);
    for token in Lexer::starting_at(text, last_end) {
        let gap = text.get(last_end..token.range.start).unwrap_or_default();
        let written = text.get(token.range.clone()).unwrap_or_default();
        writer.token(&token.kind, written, gap.matches('\n').count());
        last_end = token.range.end;
    }
    if !writer.out.is_empty() {
        writer.out.push('\n');
    }
    guard_start(&mut writer.out);
    Ok(writer.out)
}

struct Writer {
    out: String,
    depth: usize,
    in_directive: bool,
}

impl Writer {
    fn token(&mut self, kind: &TokenKind, written: &str, breaks: usize) {
        match kind {
            TokenKind::Word { .. } => {
                let breaks = if self.in_directive || self.out.is_empty() {
                    breaks
                } else {
                    breaks.max(1)
                };
                self.separate(breaks, " ");
                self.in_directive = true;
            }
            TokenKind::Comment => self.separate(breaks, " "),
            TokenKind::End => {
                self.separate(usize::from(self.after_comment()), "");
                self.in_directive = false;
            }
            TokenKind::Open => {
                self.separate(usize::from(self.after_comment()), " ");
                self.in_directive = false;
                self.depth += 1;
            }
            TokenKind::Close => {
                self.depth = self.depth.saturating_sub(1);
                self.separate(1, "");
            }
        }
        self.out.push_str(written);
    }

    fn after_comment(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        Lexer::new(line)
            .last()
            .is_some_and(|token| token.kind == TokenKind::Comment)
    }

    fn separate(&mut self, breaks: usize, same_line: &str) {
        if self.out.is_empty() {
            return;
        }
        if breaks == 0 {
            self.out.push_str(same_line);
            return;
        }
        let after_open = self.out.ends_with('{');
        self.out.push_str(if breaks > 1 && !after_open {
            "\n\n"
        } else {
            "\n"
        });
        let continued = usize::from(self.in_directive);
        self.out.push_str(&INDENT.repeat(self.depth + continued));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_written_with_indentation_and_the_quotes_it_needs() {
        let text = "a  'b c' \"it's\"   \\.php$ ${x}{c d;e{ } f \"\\n\\.\";}g;";
        let ast = parse("x", text.as_bytes()).ast;
        let expected = "a \"b c\" \"it's\" \\.php$ ${x} {\n    c d;\n    e {\n    }\n\n    f \"\n\\.\";\n}\n\ng;\n";
        assert_eq!(format(&ast), expected);
    }

    #[test]
    fn tidying_keeps_comments_line_breaks_and_quotes() {
        let text = "# top\n\n\n\nhttp{ # here\n log_format a 'x'\n 'y'; # end\nserver { listen 80 # why\n; }\n\n\n# last\n}";
        let expected = "\
# top

http { # here
    log_format a 'x'
        'y'; # end
    server {
        listen 80 # why
            ;
    }

    # last
}
";
        assert_eq!(reformat("x", text).unwrap(), expected);
    }

    #[test]
    fn a_text_with_errors_is_not_tidied() {
        assert_eq!(reformat("x", "a").unwrap_err().len(), 1);
    }
}
