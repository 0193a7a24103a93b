//! Compares a configuration with the directive table: names, contexts, numbers of arguments,
//! duplicates.
//!
//! The result is a tree of [`Node`]s, the only input of the lowering (`lower`). Each node is a
//! directive that exists, may be written in its block, and has as many arguments as the table
//! demands. Everything else is reported.

use std::collections::HashMap;

use nginx_conf::{Ast, Diagnostic, Directive as Written, Span, Word, did_you_mean, either};

use crate::directives::{self, Context, Directive, DirectiveEnding, DirectiveLookup, Effect};

/// A directive that exists, in a block that allows it, with as many arguments as it needs.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub written: &'a Written,
    /// The directives of its block; entries (of `map` and the like) stay in
    /// `written.block`.
    pub children: Vec<Node<'a>>,
}

impl<'a> Node<'a> {
    pub fn name(&self) -> &'a str {
        &self.written.name.text
    }

    pub fn args(&self) -> &'a [Word] {
        &self.written.args
    }

    /// The argument at `index`. The table guarantees that it is there; otherwise the name.
    pub fn arg(&self, index: usize) -> &'a Word {
        self.written.args.get(index).unwrap_or(&self.written.name)
    }

    pub fn span(&self) -> Span {
        self.written.head()
    }

    pub fn entries(&self) -> &'a [Written] {
        self.written.block.as_deref().unwrap_or_default()
    }
}

/// Returns the checked tree. Faulty directives are left out and reported.
pub(crate) fn check<'a>(ast: &'a Ast, diagnostics: &mut Vec<Diagnostic>) -> Vec<Node<'a>> {
    level(&ast.directives, Context::Main, diagnostics)
}

fn level<'a>(
    written: &'a [Written],
    context: Context,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Node<'a>> {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    let mut nodes = Vec::with_capacity(written.len());
    for directive in written {
        let Some(spec) = find(directive, context, diagnostics) else {
            continue;
        };
        if !fits(directive, spec, diagnostics) {
            continue;
        }
        if !spec.repeats
            && let Some(first) = seen.insert(&directive.name.text, directive.head())
        {
            let message = format!("\"{}\" directive is duplicate", directive.name);
            diagnostics.push(
                Diagnostic::error(directive.head(), message)
                    .label("the second at this level")
                    .note_at(first, "the first"),
            );
            continue;
        }
        diagnostics.extend(without_effect(directive, spec));
        let children = match (spec.ending, &directive.block) {
            (DirectiveEnding::Block, Some(block)) => {
                level(block, inside(spec.name, context), diagnostics)
            }
            _ => Vec::new(),
        };
        nodes.push(Node {
            written: directive,
            children,
        });
    }
    nodes
}

/// The context of the block of `name`.
pub(crate) fn inside(name: &str, context: Context) -> Context {
    match name {
        "events" => Context::Events,
        "http" => Context::Http,
        "server" => Context::Server,
        "location" => Context::Location,
        "if" if context == Context::Server => Context::ServerIf,
        "if" => Context::LocationIf,
        "limit_except" => Context::LimitExcept,
        "upstream" => Context::Upstream,
        "php_pool" => Context::PhpPool,
        "acme_issuer" => Context::AcmeIssuer,
        "otel_exporter" => Context::OtelExporter,
        _ => context,
    }
}

fn find(
    directive: &Written,
    context: Context,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<&'static Directive> {
    let name = &directive.name;
    match directives::find(name, context) {
        DirectiveLookup::Directive(spec) => return Some(spec),
        DirectiveLookup::Elsewhere(spec) => {
            let places: Vec<&str> = directives::by_name(name)
                .iter()
                .flat_map(|spec| spec.contexts)
                .map(|context| context.name())
                .collect();
            let mut diagnostic = Diagnostic::error(
                name.span,
                format!("\"{name}\" directive is not allowed here"),
            )
            .label(format!("here is {}", context.name()))
            .hint(format!("it belongs in {}", either(&places)));
            if context == Context::Main && spec.contexts.contains(&Context::Http) {
                diagnostic =
                    diagnostic.note("perhaps a } before this line closes the http block too early");
            }
            diagnostics.push(diagnostic);
        }
        DirectiveLookup::Unknown => diagnostics.push(unknown(name, context)),
    }
    None
}

/// A warning about a line that is accepted and has no effect, although the operator may rely on the
/// effect.
fn without_effect(directive: &Written, spec: &Directive) -> Option<Diagnostic> {
    let Effect::Missing(why) = spec.effect else {
        return None;
    };
    if asks_for_nothing(directive) {
        return None;
    }
    let message = format!("\"{}\" has no effect", directive.name);
    Some(
        Diagnostic::warning(directive.head(), message)
            .label(why)
            .cause(why),
    )
}

/// Does its value ask for no effect?
pub(crate) fn asks_for_nothing(directive: &Written) -> bool {
    matches!(directive.args.as_slice(), [value] if ["off", "auto"].contains(&value.text.as_str()))
}

fn unknown(name: &Word, context: Context) -> Diagnostic {
    if let Some(unsupported) = directives::unsupported(name) {
        return Diagnostic::error(name.span, format!("unsupported directive \"{name}\""))
            .label(unsupported.origin.label())
            .hint(unsupported.advice)
            .cause(unsupported.cause());
    }
    let diagnostic = Diagnostic::error(name.span, format!("unknown directive \"{name}\""));
    let here: Vec<String> = directives::all()
        .filter(|spec| spec.contexts.contains(&context))
        .flat_map(Directive::names)
        .collect();
    let anywhere: Vec<String> = directives::all().flat_map(Directive::names).collect();
    let meant = did_you_mean(name, here.iter().map(String::as_str))
        .or_else(|| did_you_mean(name, anywhere.iter().map(String::as_str)));
    match meant {
        Some(meant) => diagnostic
            .label("no directive of this name")
            .hint(format!("did you mean \"{meant}\"?")),
        None if name.contains(['{', '}', '=', '$', ':', '/']) => diagnostic
            .label("expected the name of a directive")
            .hint("is the ; missing at the end of the line before?"),
        None => diagnostic.label("no directive of this name"),
    }
}

/// Has the directive the block and the number of arguments that its table entry demands?
fn fits(directive: &Written, spec: &Directive, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let name = &directive.name;
    let usage = match spec.ending {
        DirectiveEnding::Semicolon => format!("{name} {};", spec.syntax).replace(" ;", ";"),
        _ => format!("{name} {}", spec.syntax),
    };
    match (&directive.block, spec.ending) {
        (Some(_), DirectiveEnding::Semicolon) => {
            diagnostics.push(
                Diagnostic::error(
                    directive.head(),
                    format!("directive \"{name}\" is not terminated by \";\""),
                )
                .label("expected ; and no block")
                .hint(format!("the form is: {usage}")),
            );
            return false;
        }
        (None, DirectiveEnding::Block | DirectiveEnding::Entries) => {
            diagnostics.push(
                Diagnostic::error(
                    directive.head(),
                    format!("directive \"{name}\" has no opening \"{{\""),
                )
                .label("expected a block")
                .hint(format!("the form is: {usage}")),
            );
            return false;
        }
        _ => {}
    }
    let (fewest, most) = spec.arguments;
    let count = directive.args.len();
    if (fewest..=most).contains(&count) {
        return true;
    }
    let expected = match (fewest, most) {
        (0, 0) => "no arguments".to_owned(),
        (1, 1) => "one argument".to_owned(),
        (fewest, most) if fewest == most => format!("{fewest} arguments"),
        (fewest, usize::MAX) => format!("at least {fewest} arguments"),
        (fewest, most) => format!("{fewest} to {most} arguments"),
    };
    let mut diagnostic = Diagnostic::error(
        directive.head(),
        format!("invalid number of arguments in \"{name}\" directive"),
    )
    .label(format!("expected {expected}, found {count}"))
    .hint(format!("the form is: {usage}"));
    // Without `;`, the next line becomes arguments of this one.
    if let Some(swallowed) = directive
        .args
        .iter()
        .skip(fewest)
        .find(|word| is_directive(word))
    {
        diagnostic = diagnostic.note_at(swallowed.span, "is the ; missing before this?");
    }
    diagnostics.push(diagnostic);
    false
}

fn is_directive(word: &Word) -> bool {
    !word.quoted && word.contains('_') && !directives::by_name(word).is_empty()
        || matches!(
            word.text.as_str(),
            "root" | "index" | "listen" | "include" | "location" | "return"
        )
}
