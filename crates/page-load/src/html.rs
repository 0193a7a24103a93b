//! Finds in arriving HTML the resources that a browser's preload scanner finds.
//!
//! Tokens alone are looked at, so that a resource is found with the bytes that name it. Resources
//! that scripts add are not known. Content of `<template>` and `<noscript>` is not part of the page.

use std::cell::RefCell;

use html5ever::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

use crate::media::Viewport;
use crate::resource::{NamedResource, Priority, ResourceKind, address};
use crate::srcset;

/// Bytes of inline style sheets that are read, together.
const MAX_INLINE_STYLE_BYTES: usize = 4 << 20;
/// Sources of one `<picture>` that are looked at.
const MAX_SOURCES: usize = 32;

/// A resource or fact that the page names, in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Resource(NamedResource),
    /// The text of a `<style>`.
    Style(String),
    /// The value of a `style` attribute.
    StyleAttribute(String),
    /// An image or a frame that a browser loads when it comes into view.
    Lazy(Url),
    /// A script in the page, or one that it names: the resources that they load are not known.
    Script,
}

/// Takes text, gives findings.
pub struct Scanner {
    tokenizer: Tokenizer<Sink>,
    input: BufferQueue,
}

impl Scanner {
    /// For a page at this address.
    #[must_use]
    pub fn new(page: &Url, viewport: Viewport) -> Scanner {
        let sink = Sink {
            state: RefCell::new(ParserState {
                base: page.clone(),
                viewport,
                is_base_set: false,
                is_head: true,
                template_depth: 0,
                text: None,
                inline_bytes: 0,
                picture: None,
                has_icon: false,
                found: Vec::new(),
            }),
        };
        Scanner {
            tokenizer: Tokenizer::new(sink, TokenizerOpts::default()),
            input: BufferQueue::default(),
        }
    }

    /// Reads a piece of text and returns the findings in it.
    pub fn feed(&mut self, text: &str) -> Vec<Finding> {
        self.input.push_back(StrTendril::from(text));
        while !matches!(self.tokenizer.feed(&self.input), TokenizerResult::Done) {}
        self.take()
    }

    /// Returns the findings at the end. A page that names no icon has one at `/favicon.ico`.
    pub fn end(&mut self) -> Vec<Finding> {
        self.tokenizer.end();
        let mut found = self.take();
        let state = self.tokenizer.sink.state.borrow();
        if !state.has_icon
            && let Some(url) = address(&state.base, "/favicon.ico")
        {
            found.push(Finding::Resource(NamedResource {
                url,
                kind: ResourceKind::Icon,
                priority: Priority::Lowest,
                blocks_rendering: false,
            }));
        }
        found
    }

    fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.tokenizer.sink.state.borrow_mut().found)
    }

    /// Returns the base URL of relative addresses in the page's own styles.
    #[must_use]
    pub fn base(&self) -> Url {
        self.tokenizer.sink.state.borrow().base.clone()
    }
}

struct Sink {
    state: RefCell<ParserState>,
}

struct ParserState {
    base: Url,
    viewport: Viewport,
    is_base_set: bool,
    is_head: bool,
    template_depth: u32,
    /// The text of a `<style>` that applies, so far.
    text: Option<String>,
    inline_bytes: usize,
    picture: Option<Picture>,
    has_icon: bool,
    found: Vec<Finding>,
}

/// A `<picture>`: its sources so far that could be taken, each `srcset` and `sizes`.
#[derive(Default)]
struct Picture {
    sources: Vec<(String, Option<String>)>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.state.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => state.start(&Attributes(&tag)),
            Token::TagToken(tag) => {
                state.end(&tag.name);
                TokenSinkResult::Continue
            }
            Token::CharacterTokens(text) => {
                if let Some(style) = &mut state.text {
                    style.push_str(&text);
                }
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

/// A start tag, asked by the names of its attributes.
struct Attributes<'a>(&'a Tag);

impl Attributes<'_> {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.attrs.iter().find(|it| &*it.name.local == name);
        found.map(|it| &*it.value)
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.value(name)
            .is_some_and(|it| it.trim().eq_ignore_ascii_case(value))
    }

    /// One of the words of `rel` and its like.
    fn has_word(&self, name: &str, word: &str) -> bool {
        let value = self.value(name).unwrap_or_default();
        value
            .split_ascii_whitespace()
            .any(|it| it.eq_ignore_ascii_case(word))
    }

    /// Returns the priority after `fetchpriority`.
    fn priority(&self, usual: Priority) -> Priority {
        match () {
            () if self.is("fetchpriority", "high") => usual.min(Priority::High),
            () if self.is("fetchpriority", "low") => usual.max(Priority::Low),
            () => usual,
        }
    }
}

impl ParserState {
    fn start(&mut self, tag: &Attributes<'_>) -> TokenSinkResult<()> {
        let name = tag.name();
        if name == "template" {
            self.template_depth += 1;
        }
        if self.template_depth == 0 {
            self.look_at(tag);
        }
        match name {
            "style" => {
                let applies = self.template_depth == 0
                    && self.inline_bytes < MAX_INLINE_STYLE_BYTES
                    && self
                        .viewport
                        .is_asked_by(tag.value("media").unwrap_or_default());
                self.text = applies.then(String::new);
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "noscript" | "noframes" | "xmp" | "iframe" | "noembed" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "template" => self.template_depth = self.template_depth.saturating_sub(1),
            "head" => self.is_head = false,
            "picture" => self.picture = None,
            "style" => {
                if let Some(text) = self.text.take() {
                    self.inline_bytes += text.len();
                    self.found.push(Finding::Style(text));
                }
            }
            _ => {}
        }
    }

    fn look_at(&mut self, tag: &Attributes<'_>) {
        if let Some(style) = tag.value("style")
            && style.contains("url(")
            && self.inline_bytes < MAX_INLINE_STYLE_BYTES
        {
            self.inline_bytes += style.len();
            self.found.push(Finding::StyleAttribute(style.to_owned()));
        }
        match tag.name() {
            "base" if !self.is_base_set => {
                if let Some(url) = tag.value("href").and_then(|it| address(&self.base, it)) {
                    self.base = url;
                    self.is_base_set = true;
                }
            }
            "body" => {
                self.is_head = false;
                self.want(
                    tag.value("background"),
                    ResourceKind::Image,
                    Priority::Low,
                    false,
                );
            }
            "link" => self.link(tag),
            "script" => self.script(tag),
            "picture" => self.picture = Some(Picture::default()),
            "source" => self.source(tag),
            "img" => self.image(tag),
            "image" | "feImage" => {
                let href = tag.value("href").or(tag.value("xlink:href"));
                self.want(href, ResourceKind::Image, Priority::Low, false);
            }
            "use" => {
                let href = tag.value("href").or(tag.value("xlink:href"));
                self.want(href, ResourceKind::Image, Priority::Low, false);
            }
            "input" if tag.is("type", "image") => {
                self.want(tag.value("src"), ResourceKind::Image, Priority::Low, false);
            }
            "video" => self.want(
                tag.value("poster"),
                ResourceKind::Image,
                Priority::Low,
                false,
            ),
            "iframe" | "frame" => self.lazily(tag, tag.value("src"), ResourceKind::Frame),
            "embed" => self.want(tag.value("src"), ResourceKind::Other, Priority::Low, false),
            "object" => self.want(tag.value("data"), ResourceKind::Other, Priority::Low, false),
            _ => {}
        }
    }

    fn want(&mut self, text: Option<&str>, kind: ResourceKind, priority: Priority, blocks: bool) {
        if let Some(url) = text.and_then(|it| address(&self.base, it)) {
            self.found.push(Finding::Resource(NamedResource {
                url,
                kind,
                priority,
                blocks_rendering: blocks,
            }));
        }
    }

    /// Adds a resource that may be lazy.
    fn lazily(&mut self, tag: &Attributes<'_>, text: Option<&str>, kind: ResourceKind) {
        if !tag.is("loading", "lazy") {
            self.want(text, kind, tag.priority(Priority::Low), false);
        } else if let Some(url) = text.and_then(|it| address(&self.base, it)) {
            self.found.push(Finding::Lazy(url));
        }
    }

    fn link(&mut self, tag: &Attributes<'_>) {
        let href = tag.value("href");
        let applies = self
            .viewport
            .is_asked_by(tag.value("media").unwrap_or_default());
        let is = |word: &str| tag.has_word("rel", word);
        if is("stylesheet") {
            let is_css = tag
                .value("type")
                .is_none_or(|it| it.is_empty() || it.trim().eq_ignore_ascii_case("text/css"));
            if !is_css || tag.has("disabled") {
                return;
            }
            let applies = applies && !is("alternate");
            let priority = match applies {
                true => tag.priority(Priority::Highest),
                false => Priority::Lowest,
            };
            self.want(href, ResourceKind::Style, priority, applies);
        } else if is("preload") && applies {
            self.preload(tag, href);
        } else if is("modulepreload") {
            self.want(
                href,
                ResourceKind::Script,
                tag.priority(Priority::High),
                false,
            );
        } else if is("icon") {
            self.has_icon = true;
            self.want(href, ResourceKind::Icon, Priority::Lowest, false);
        }
    }

    fn preload(&mut self, tag: &Attributes<'_>, href: Option<&str>) {
        let kind = tag.value("as").unwrap_or_default().trim();
        let Some((kind, priority)) = preloaded(kind) else {
            return;
        };
        let chosen = srcset::chosen(
            self.viewport,
            tag.value("imagesrcset"),
            tag.value("imagesizes"),
            href,
        );
        self.want(chosen.as_deref(), kind, tag.priority(priority), false);
    }

    fn script(&mut self, tag: &Attributes<'_>) {
        let kind = tag.value("type").unwrap_or_default().trim();
        let kind = kind.to_ascii_lowercase();
        let is_module = kind == "module";
        let is_classic = kind.is_empty()
            || matches!(
                kind.as_str(),
                "text/javascript"
                    | "application/javascript"
                    | "text/ecmascript"
                    | "application/ecmascript"
                    | "application/x-javascript"
            );
        if !is_module && (!is_classic || tag.has("nomodule")) {
            return;
        }
        self.found.push(Finding::Script);
        let waits = !is_module && !tag.has("async") && !tag.has("defer");
        let priority = match (waits, self.is_head) {
            (true, true) => Priority::High,
            (true, false) => Priority::Medium,
            (false, _) => Priority::Low,
        };
        let blocks = waits && self.is_head || tag.has_word("blocking", "render");
        let priority = tag.priority(priority);
        self.want(tag.value("src"), ResourceKind::Script, priority, blocks);
    }

    fn source(&mut self, tag: &Attributes<'_>) {
        let Some(picture) = &mut self.picture else {
            return;
        };
        let applies = self
            .viewport
            .is_asked_by(tag.value("media").unwrap_or_default())
            && tag.value("type").is_none_or(is_shown);
        if let Some(srcset) = tag.value("srcset")
            && applies
            && picture.sources.len() < MAX_SOURCES
        {
            let sizes = tag.value("sizes").map(str::to_owned);
            picture.sources.push((srcset.to_owned(), sizes));
        }
    }

    fn image(&mut self, tag: &Attributes<'_>) {
        let sources = self.picture.take().map(|it| it.sources).unwrap_or_default();
        let of_picture = sources.iter().find_map(|(srcset, sizes)| {
            srcset::chosen(self.viewport, Some(srcset), sizes.as_deref(), None)
        });
        let chosen = of_picture.or_else(|| {
            srcset::chosen(
                self.viewport,
                tag.value("srcset"),
                tag.value("sizes"),
                tag.value("src"),
            )
        });
        self.lazily(tag, chosen.as_deref(), ResourceKind::Image);
    }
}

/// Returns the kind and priority for a value of `as`, in HTML and in the field `Link`.
#[must_use]
pub fn preloaded(kind: &str) -> Option<(ResourceKind, Priority)> {
    Some(match kind.to_ascii_lowercase().as_str() {
        "style" => (ResourceKind::Style, Priority::Highest),
        "font" => (ResourceKind::Font, Priority::High),
        "script" => (ResourceKind::Script, Priority::High),
        "image" => (ResourceKind::Image, Priority::Low),
        "fetch" => (ResourceKind::Other, Priority::High),
        _ => return None,
    })
}

/// Types of images that browsers of today show.
fn is_shown(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    matches!(
        kind.as_str(),
        "" | "image/avif"
            | "image/webp"
            | "image/apng"
            | "image/png"
            | "image/jpeg"
            | "image/jpg"
            | "image/gif"
            | "image/svg+xml"
            | "image/bmp"
            | "image/x-icon"
    )
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
