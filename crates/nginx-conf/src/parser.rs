//! Tokens of one source to directives.
//!
//! Keeps a stack of open blocks instead of recursing. After a mistake it goes
//! on as if the author had written the expected text, so that independent mistakes
//! are all found and few are invented.

use crate::ast::{Directive, Word};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Lexer, QuoteProblem, Token, TokenKind};
use crate::source::{Origin, Source, SourceId, Span};

/// How deep blocks may nest. nginx's own contexts reach about eight; the bound
/// keeps every walk over the tree within a small stack.
pub const MAX_BLOCK_DEPTH: usize = 64;

/// After this many diagnostics of the grammar parsing stops: the rest is most
/// likely no configuration at all.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Errors and warnings so far.
fn counts(diagnostics: &[Diagnostic]) -> (usize, usize) {
    let errors = diagnostics.iter().filter(|it| it.is_error()).count();
    (errors, diagnostics.len() - errors)
}

/// Parses one source. `include` is left as a directive.
pub(crate) fn parse_source(
    id: SourceId,
    source: &Source,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Directive> {
    let mut parser = Parser {
        id,
        source,
        diagnostics,
        words: Vec::new(),
        directives: Vec::new(),
        open: Vec::new(),
        misplaced: None,
        stopped: false,
    };
    let start = text_start(source.text());
    if start > 0 {
        parser.diagnostics.push(
            Diagnostic::warning(Span::new(id, 0, start), "byte order mark is ignored")
                .label("expected the first directive")
                .hint("save the file without it: nginx takes it for part of the first word"),
        );
    }
    for token in Lexer::starting_at(source.text(), start) {
        parser.token(token);
        // Only errors end it: a warning for a word that was not UTF-8 is gone when
        // the kept text is read again, and both must give the same tree.
        let (errors, warnings) = counts(parser.diagnostics);
        if warnings > MAX_DIAGNOSTICS {
            parser.diagnostics.pop_if(|last| !last.is_error());
        }
        if errors >= MAX_DIAGNOSTICS {
            parser
                .diagnostics
                .push(Diagnostic::error_without_span("too many errors"));
            parser.stopped = true;
        }
        if parser.stopped {
            break;
        }
    }
    parser.finish()
}

/// Returns the start of the text behind a byte order mark.
pub(crate) fn text_start(text: &str) -> usize {
    if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    }
}

/// A block whose `}` has not come yet.
struct OpenBlock {
    head: Head,
    brace: Span,
    /// The directives before it, in the block around it.
    before: Vec<Directive>,
}

/// The words before a `{`.
struct Head {
    /// Empty when the `{` had no name: the block is parsed, then dropped.
    words: Vec<Word>,
    start: Span,
}

struct Parser<'a> {
    id: SourceId,
    source: &'a Source,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// Words since the last `;`, `{` or `}`.
    words: Vec<Word>,
    /// Directives of the innermost open block.
    directives: Vec<Directive>,
    open: Vec<OpenBlock>,
    /// The first block whose `}` has another indentation than its line: where
    /// a brace is missing, if one turns out to be.
    misplaced: Option<Span>,
    /// Whether the rest was given up, so that its end is not checked.
    stopped: bool,
}

impl Parser<'_> {
    fn span(&self, range: &std::ops::Range<usize>) -> Span {
        Span::new(self.id, range.start, range.end)
    }

    fn token(&mut self, token: Token) {
        let span = self.span(&token.range);
        match token.kind {
            TokenKind::Comment => {}
            TokenKind::Word {
                text,
                quoted,
                problem,
            } => {
                if let Some(problem) = problem {
                    self.quote_problem(span, problem);
                }
                if self.source.has_replacement(token.range) {
                    self.diagnostics.push(
                        Diagnostic::warning(span, "bytes that are not UTF-8 are replaced")
                            .label("expected text in UTF-8")
                            .hint("save the file in UTF-8"),
                    );
                }
                self.words.push(Word { text, span, quoted });
            }
            TokenKind::End => self.end(span),
            TokenKind::Open => self.open_block(span),
            TokenKind::Close => self.close_block(span),
        }
    }

    fn quote_problem(&mut self, word: Span, problem: QuoteProblem) {
        let quote = self
            .source
            .text()
            .get(word.range())
            .and_then(|text| text.chars().next());
        let quote = quote.unwrap_or('"');
        let unclosed = || {
            Diagnostic::error(word, format!("missing terminating {quote} character"))
                .label(format!("expected a closing {quote}"))
        };
        let diagnostic = match problem {
            QuoteProblem::Unclosed => unclosed(),
            QuoteProblem::ClosedElsewhere(range) => {
                unclosed().note_at(self.span(&range), format!("the next {quote} is here"))
            }
            QuoteProblem::Trailing(junk) => {
                let span = self.span(&junk);
                let first = self
                    .source
                    .text()
                    .get(span.range())
                    .and_then(|t| t.chars().next());
                Diagnostic::error(span, format!("unexpected \"{}\"", first.unwrap_or(quote)))
                    .label(format!(
                        "expected a space, ; or {{ after the closing {quote}"
                    ))
                    .hint("quote the whole word, or write a backslash before a quote inside it")
            }
        };
        self.diagnostics.push(diagnostic);
    }

    fn end(&mut self, span: Span) {
        if self.words.is_empty() {
            let diagnostic = Diagnostic::error(span, "unexpected \";\"")
                .label("expected a directive before it")
                .hint("remove this ;");
            self.diagnostics.push(diagnostic);
            return;
        }
        self.push_directive(span, None);
    }

    fn push_directive(&mut self, end: Span, block: Option<Vec<Directive>>) {
        let words = std::mem::take(&mut self.words);
        push(&mut self.directives, words, end, block);
    }

    fn open_block(&mut self, brace: Span) {
        if self.words.is_empty() {
            let diagnostic = Diagnostic::error(brace, "unexpected \"{\"")
                .label("expected a directive's name before it");
            self.diagnostics.push(diagnostic);
        }
        if self.open.len() >= MAX_BLOCK_DEPTH {
            let message = format!("blocks are nested more than {MAX_BLOCK_DEPTH} deep");
            self.diagnostics
                .push(Diagnostic::error(brace, message).label("one too many"));
            self.stopped = true;
            return;
        }
        let words = std::mem::take(&mut self.words);
        let start = words.first().map_or(brace, |word| word.span);
        self.open.push(OpenBlock {
            head: Head { words, start },
            brace,
            before: std::mem::take(&mut self.directives),
        });
    }

    fn close_block(&mut self, brace: Span) {
        if let Some(last) = self.words.last() {
            let after = Span {
                start: last.span.end,
                ..last.span
            };
            let diagnostic = Diagnostic::error(brace, "unexpected \"}\"")
                .label("expected ; before it")
                .note_at(last.span, "the directive that ends here has no ;");
            self.diagnostics.push(diagnostic);
            self.push_directive(after, None);
        }
        let Some(block) = self.open.last() else {
            let diagnostic = Diagnostic::error(brace, "unexpected \"}\"")
                .label("no block is open here")
                .hint("remove this }, or find the block that was closed too early above");
            self.diagnostics.push(diagnostic);
            return;
        };
        if self.misplaced.is_none() && self.is_misplaced(block.head.start, brace) {
            self.misplaced = Some(block.head.start.to(block.brace));
        }
        self.pop_block(brace);
    }

    /// Whether the `}` begins its line, at another indentation than the line
    /// of the directive it closes.
    fn is_misplaced(&self, head: Span, brace: Span) -> bool {
        let indent = |span: Span| {
            let (_, line) = self.source.line_at(span.range().start);
            let text = self.source.text().get(line.clone()).unwrap_or_default();
            let width = text.len() - text.trim_start_matches([' ', '\t']).len();
            (
                line.start + width == span.range().start,
                text.get(..width).unwrap_or_default(),
            )
        };
        let (head_first, head_indent) = indent(head);
        let (brace_first, brace_indent) = indent(brace);
        head_first && brace_first && head_indent != brace_indent
    }

    fn pop_block(&mut self, end: Span) {
        let Some(block) = self.open.pop() else {
            return;
        };
        let inside = std::mem::replace(&mut self.directives, block.before);
        push(&mut self.directives, block.head.words, end, Some(inside));
    }

    fn finish(mut self) -> Vec<Directive> {
        // The last line with text; nginx names the line after it.
        let end = self.source.text().trim_ascii_end().len();
        let end = Span::new(self.id, end, end);
        if !self.stopped {
            self.complain_about_the_end(end);
        }
        self.push_directive(end, None);
        while !self.open.is_empty() {
            self.pop_block(end);
        }
        self.directives
    }

    fn complain_about_the_end(&mut self, end: Span) {
        let (what, expected) = match self.source.origin() {
            Origin::File => ("file", "\";\" or \"}\""),
            Origin::Argument => ("parameter", "\";\""),
        };
        if let Some(last) = self.words.last() {
            let message = format!("unexpected end of {what}, expecting {expected}");
            let diagnostic = Diagnostic::error(last.span, message).label("expected ; after this");
            self.diagnostics.push(diagnostic);
        }
        let Some(block) = self.open.last() else {
            return;
        };
        let head = block.head.start.to(block.brace);
        let message = format!("unexpected end of {what}, expecting \"}}\"");
        let mut diagnostic = Diagnostic::error(end, message)
            .label("expected }")
            .note_at(head, "this block is not closed");
        if let Some(brace) = self.misplaced.filter(|brace| *brace != head) {
            let message = "the } that closes this block has another indentation";
            diagnostic = diagnostic.note_at(brace, message);
        }
        self.diagnostics.push(diagnostic);
    }
}

fn push(into: &mut Vec<Directive>, words: Vec<Word>, end: Span, block: Option<Vec<Directive>>) {
    let mut words = words.into_iter();
    if let Some(name) = words.next() {
        let span = name.span.to(end);
        into.push(Directive {
            name,
            args: words.collect(),
            block,
            span,
        });
    }
}
