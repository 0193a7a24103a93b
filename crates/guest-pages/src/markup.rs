//! Where in a page a place stands, as a browser reads it. Tokens of a session are sent by forms, links and scripts, from a
//! few kinds of places; what is drawn elsewhere is an order number, the address of a picture or the mark of a cart.

use std::ops::Range;

/// What reads a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpotKind {
    /// A person.
    Text,
    Comment,
    /// The server: a hidden field of a form that is sent to this site.
    Hidden,
    /// A person or another site: any other field of a form.
    Field,
    /// The server: an argument of a link or of a form's action, or a text of a script or a `<meta>` whose name is that of
    /// a token.
    Sender,
    /// Something else in a tag or a script.
    Markup,
}

/// Where a place stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub kind: SpotKind,
    pub is_in_form: bool,
    /// It has a name that tokens have.
    pub has_token_name: bool,
    /// Where the value of the attribute begins that it is in.
    pub value_at: Option<usize>,
}

/// Parts of names of tokens, and words that are such names.
const PARTS: [&str; 9] = [
    "token", "csrf", "xsrf", "nonce", "sesc", "session", "secur", "verif", "sesskey",
];
const WORDS: [&str; 7] = [
    "key", "sid", "auth", "sess", "postkey", "formkey", "authkey",
];

/// Elements whose text has no tags.
const RAW: [&[u8]; 4] = [b"script", b"style", b"textarea", b"title"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Text,
    Comment,
    Tag,
    /// The text of an element: its number in `RAW`.
    Raw(usize),
}

/// A tag and where its parts are.
#[derive(Debug, Default)]
struct Tag {
    name: Range<usize>,
    attributes: Vec<Attribute>,
    end: usize,
}

#[derive(Clone, Debug)]
struct Attribute {
    name: Range<usize>,
    value: Range<usize>,
}

/// A tag with its attributes, as they stand there.
pub(crate) struct PageTag<'t> {
    pub name: &'t [u8],
    attributes: Vec<(&'t [u8], &'t [u8])>,
}

impl<'t> PageTag<'t> {
    pub(crate) fn attribute(&self, name: &str) -> Option<&'t [u8]> {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|(it, _)| it.eq_ignore_ascii_case(name.as_bytes()))?;
        Some(found.1)
    }
}

/// The tags of a page, in their order.
pub(crate) fn tags(text: &[u8]) -> impl Iterator<Item = PageTag<'_>> {
    let mut markup = Markup::new(text, b"");
    std::iter::from_fn(move || {
        while markup.piece.end < markup.text.len() {
            markup.read_piece();
            if markup.kind == PieceKind::Tag {
                let attributes = markup.tag.attributes.iter();
                let attributes =
                    attributes.map(|it| (markup.of(it.name.clone()), markup.of(it.value.clone())));
                return Some(PageTag {
                    name: markup.of(markup.tag.name.clone()),
                    attributes: attributes.collect(),
                });
            }
        }
        None
    })
}

/// A page, read up to a place.
pub(crate) struct Markup<'t> {
    text: &'t [u8],
    /// The site's, with its port, as the client names it.
    host: &'t [u8],
    piece: Range<usize>,
    kind: PieceKind,
    tag: Tag,
    /// Inside a form: is it sent to this site?
    form: Option<bool>,
    /// `<base>` leads all links elsewhere.
    has_other_base: bool,
}

impl<'t> Markup<'t> {
    pub(crate) fn new(text: &'t [u8], host: &'t [u8]) -> Markup<'t> {
        Markup {
            text,
            host,
            piece: 0..0,
            kind: PieceKind::Text,
            tag: Tag::default(),
            form: None,
            has_other_base: false,
        }
    }

    /// Where the place is that begins at `at`. Places are asked for in their order.
    pub(crate) fn spot(&mut self, at: usize) -> Spot {
        while self.piece.end <= at && self.piece.end < self.text.len() {
            self.read_piece();
        }
        let (kind, has_token_name, value_at) = match self.kind {
            PieceKind::Text => (SpotKind::Text, false, None),
            PieceKind::Comment => (SpotKind::Comment, false, None),
            PieceKind::Tag => self.in_tag(at),
            PieceKind::Raw(0) => {
                let before = self.of(self.piece.start..at);
                let is_sender = self.is_named(before, b"");
                (sender(is_sender), is_sender, None)
            }
            PieceKind::Raw(1) => (SpotKind::Markup, false, None),
            PieceKind::Raw(2) => (SpotKind::Field, false, None),
            PieceKind::Raw(_) => (SpotKind::Text, false, None),
        };
        Spot {
            kind,
            is_in_form: self.form.is_some(),
            has_token_name,
            value_at,
        }
    }

    /// The names and values of the hidden fields.
    pub(crate) fn hidden_fields(mut self) -> Vec<(&'t [u8], &'t [u8])> {
        let mut found = Vec::new();
        while self.piece.end < self.text.len() {
            self.read_piece();
            if self.kind == PieceKind::Tag && self.is_hidden() {
                let name = self.attribute(b"name").unwrap_or_default();
                found.push((name, self.attribute(b"value").unwrap_or_default()));
            }
        }
        found
    }

    fn of(&self, range: Range<usize>) -> &'t [u8] {
        self.text.get(range).unwrap_or_default()
    }

    fn read_piece(&mut self) {
        let start = self.piece.end;
        let rest = self.of(start..self.text.len());
        let opened = match self.kind {
            PieceKind::Tag => {
                let name = self.of(self.tag.name.clone());
                RAW.iter().position(|raw| name.eq_ignore_ascii_case(raw))
            }
            _ => None,
        };
        let (kind, length) = if let Some(raw) = opened {
            (
                PieceKind::Raw(raw),
                end_of_raw(rest, RAW.get(raw).copied().unwrap_or_default()),
            )
        } else if rest.starts_with(b"<!--") {
            let end = memchr::memmem::find(rest.get(2..).unwrap_or_default(), b"-->");
            (PieceKind::Comment, end.map_or(rest.len(), |end| end + 5))
        } else if begins_tag(rest) {
            self.tag = read_tag(self.text, start);
            self.note_tag();
            (PieceKind::Tag, self.tag.end - start)
        } else {
            let mut opens = memchr::memchr_iter(b'<', rest);
            let end = opens.find(|at| {
                let rest = rest.get(*at..).unwrap_or_default();
                begins_tag(rest)
            });
            (PieceKind::Text, end.unwrap_or(rest.len()))
        };
        self.kind = kind;
        // The text of an element may be empty; each tag is longer.
        self.piece = start..start + length;
    }

    /// A form may begin or end, and links may lead elsewhere.
    fn note_tag(&mut self) {
        let name = self.of(self.tag.name.clone());
        if name.eq_ignore_ascii_case(b"form") {
            let action = self.attribute(b"action").unwrap_or_default();
            self.form = Some(self.is_of_site(action));
        } else if name.eq_ignore_ascii_case(b"/form") {
            self.form = None;
        } else if name.eq_ignore_ascii_case(b"base") {
            let href = self.attribute(b"href").unwrap_or_default();
            self.has_other_base |= !self.is_of_site(href);
        }
    }

    fn attribute(&self, name: &[u8]) -> Option<&'t [u8]> {
        let mut attributes = self.tag.attributes.iter();
        let found = attributes.find(|it| self.of(it.name.clone()).eq_ignore_ascii_case(name))?;
        Some(self.of(found.value.clone()))
    }

    fn is_hidden(&self) -> bool {
        let is_input = self
            .of(self.tag.name.clone())
            .eq_ignore_ascii_case(b"input");
        let kind = self.attribute(b"type");
        is_input && kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"hidden"))
    }

    fn in_tag(&self, at: usize) -> (SpotKind, bool, Option<usize>) {
        let element = self.of(self.tag.name.clone()).to_ascii_lowercase();
        let mut attributes = self.tag.attributes.iter();
        let has_place = |it: &&Attribute| it.value.contains(&at) || it.name.contains(&at);
        let Some(found) = attributes.find(has_place) else {
            return (SpotKind::Markup, false, None);
        };
        let name = self.of(found.name.clone()).to_ascii_lowercase();
        let is_name = found.name.contains(&at);
        let value_at = Some(found.value.start);
        let before = self.of(found.value.start..at);
        if is_name {
            return (SpotKind::Markup, false, None);
        }
        let field_name = self.attribute(b"name").unwrap_or_default();
        match (&element[..], &name[..]) {
            (b"input", b"value" | b"name") if self.is_hidden() => {
                let kind = match self.form {
                    Some(false) => SpotKind::Field,
                    _ => SpotKind::Hidden,
                };
                (kind, is_token_name(field_name), value_at)
            }
            (b"input" | b"button" | b"option" | b"select" | b"textarea", b"value" | b"name") => {
                (SpotKind::Field, false, value_at)
            }
            (b"meta", b"content") => {
                let named = self.attribute(b"name").or(self.attribute(b"property"));
                let is_sender = named.is_some_and(is_token_name);
                (sender(is_sender), is_sender, value_at)
            }
            (b"a" | b"area", b"href") | (b"form", b"action") | (_, b"formaction") => {
                let target = self.of(found.value.clone());
                let is_argument = before.contains(&b'?') && !has_fragment(before);
                let is_sender = is_argument && self.is_of_site(target) && !self.has_other_base;
                let is_named = is_sender && key_before(before).is_some_and(is_token_name);
                (sender(is_sender), is_named, value_at)
            }
            (_, b"nonce") => (SpotKind::Sender, true, value_at),
            (_, other) if other.starts_with(b"data-") || other.starts_with(b"on") => {
                let own = other.strip_prefix(b"data-").unwrap_or_default();
                let is_sender = self.is_named(before, own);
                (sender(is_sender), is_sender, value_at)
            }
            _ => (SpotKind::Markup, false, value_at),
        }
    }

    /// Has a text of a script the name of a token? `own` is that of the attribute which it may be the whole value of.
    fn is_named(&self, before: &[u8], own: &[u8]) -> bool {
        // An address of another site.
        let quote = before
            .iter()
            .rposition(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        let value = before
            .get(quote.map_or(0, |at| at + 1)..)
            .unwrap_or_default();
        let value: Vec<u8> = value
            .iter()
            .copied()
            .filter(|byte| *byte != b'\\')
            .collect();
        if let Some(slashes) = memchr::memmem::find(&value, b"//")
            && !self.begins_with_host(value.get(slashes + 2..).unwrap_or_default())
        {
            return false;
        }
        match before.trim_ascii().is_empty() {
            true => is_token_name(own),
            false => key_before(before).is_some_and(|key| match key {
                // `session: { id: "..." }`, as LiteCart writes it.
                b"id" | b"value" => key_of_object(before).is_some_and(is_token_name),
                key => is_token_name(key),
            }),
        }
    }

    /// Does a link lead to this site?
    fn is_of_site(&self, target: &[u8]) -> bool {
        let target = target.trim_ascii();
        let is_end = |byte: &u8| matches!(byte, b'/' | b'\\' | b'?' | b'#');
        let end = target.iter().position(is_end).unwrap_or(target.len());
        let begin = target.get(..end).unwrap_or_default();
        let rest = target.get(end..).unwrap_or_default();
        // A letter that is written as its number may be that of a scheme.
        let rest = match begin {
            b"" => rest,
            _ if begin.eq_ignore_ascii_case(b"http:") || begin.eq_ignore_ascii_case(b"https:") => {
                rest
            }
            _ => return !begin.iter().any(|byte| matches!(byte, b':' | b'&')),
        };
        match rest {
            [b'/' | b'\\', b'/' | b'\\', rest @ ..] => self.begins_with_host(rest),
            _ => begin.is_empty(),
        }
    }

    fn begins_with_host(&self, rest: &[u8]) -> bool {
        let Some((begin, rest)) = rest.split_at_checked(self.host.len()) else {
            return false;
        };
        begin.eq_ignore_ascii_case(self.host)
            && rest
                .first()
                .is_none_or(|byte| matches!(byte, b'/' | b'?' | b'#'))
    }
}

/// Has a link a fragment? `&#038;` is none.
fn has_fragment(link: &[u8]) -> bool {
    let mut places = memchr::memchr_iter(b'#', link);
    places.any(|at| at == 0 || link.get(at - 1) != Some(&b'&'))
}

fn sender(is_one: bool) -> SpotKind {
    match is_one {
        true => SpotKind::Sender,
        false => SpotKind::Markup,
    }
}

fn begins_tag(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'/', next, ..] => next.is_ascii_alphabetic(),
        [b'<', next, ..] => next.is_ascii_alphabetic() || matches!(next, b'!' | b'?'),
        _ => false,
    }
}

/// How long the text of an element is.
fn end_of_raw(rest: &[u8], name: &[u8]) -> usize {
    let mut ends = memchr::memmem::find_iter(rest, b"</");
    let end = ends.find(|at| {
        let begin = at + 2;
        let behind = rest.get(begin + name.len());
        let is_it = rest.get(begin..begin + name.len());
        is_it.is_some_and(|it| it.eq_ignore_ascii_case(name))
            && behind.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'))
    });
    end.unwrap_or(rest.len())
}

/// Reads the tag that begins at `at`.
fn read_tag(text: &[u8], at: usize) -> Tag {
    let while_in = |from: usize, is_in: &dyn Fn(u8) -> bool| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| is_in(**byte)).count()
    };
    let is_in_name = |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>');
    let begin = at + 1;
    let slash = usize::from(text.get(begin) == Some(&b'/'));
    let mut at = while_in(begin + slash, &is_in_name);
    let mut tag = Tag {
        name: begin..at,
        ..Tag::default()
    };
    loop {
        at = while_in(at, &|byte| byte.is_ascii_whitespace() || byte == b'/');
        match text.get(at) {
            None => break,
            Some(b'>') => {
                at += 1;
                break;
            }
            Some(_) => {}
        }
        let start = at;
        at = while_in(at + 1, &|byte| is_in_name(byte) && byte != b'=');
        let name = start..at;
        let equals = while_in(at, &|byte| byte.is_ascii_whitespace());
        let mut value = at..at;
        if text.get(equals) == Some(&b'=') {
            at = while_in(equals + 1, &|byte| byte.is_ascii_whitespace());
            match text.get(at) {
                Some(&quote @ (b'"' | b'\'')) => {
                    let end = while_in(at + 1, &|byte| byte != quote);
                    value = at + 1..end;
                    at = (end + 1).min(text.len());
                }
                _ => {
                    let end = while_in(at, &|byte| !byte.is_ascii_whitespace() && byte != b'>');
                    value = at..end;
                    at = end;
                }
            }
        }
        tag.attributes.push(Attribute { name, value });
    }
    tag.end = at;
    tag
}

/// The name that a text of a script, of JSON or of a link's arguments has: before a `=` or a `:`.
pub(crate) fn key_before(before: &[u8]) -> Option<&[u8]> {
    let before = without_quotes(before);
    let (last, before) = before.split_last()?;
    if !matches!(last, b'=' | b':') {
        return None;
    }
    let before = without_quotes(before);
    let before = without_quotes(before.strip_suffix(b"]").unwrap_or(before));
    let is_in_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-' | b'.');
    let length = before
        .iter()
        .rev()
        .take_while(|byte| is_in_name(byte))
        .count();
    before.get(before.len() - length..)
}

/// The name that the object has whose values a place is among, if no other object stands before it there.
fn key_of_object(before: &[u8]) -> Option<&[u8]> {
    let at = memchr::memrchr2(b'{', b'}', before)?;
    let is_opened = before.get(at) == Some(&b'{');
    is_opened.then(|| key_before(before.get(..at)?))?
}

/// The text without quotes at its end, in each writing.
fn without_quotes(text: &[u8]) -> &[u8] {
    let quotes: [&[u8]; 9] = [
        b"\"", b"'", b"`", b"\\", b"&quot;", b"&#34;", b"&#39;", b"&#039;", b"\\u0022",
    ];
    let mut text = text.trim_ascii_end();
    while let Some(less) = quotes.iter().find_map(|quote| text.strip_suffix(*quote)) {
        text = less;
    }
    text.trim_ascii_end()
}

/// Has a name a word that names of tokens have?
pub(crate) fn is_token_name(name: &[u8]) -> bool {
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    let mut was_lower = false;
    for byte in name {
        let begins_word = was_lower && byte.is_ascii_uppercase();
        if begins_word || !byte.is_ascii_alphanumeric() {
            words.push(Vec::new());
        }
        was_lower = byte.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| byte.is_ascii_alphanumeric()) {
            word.push(byte.to_ascii_lowercase());
        }
    }
    words.iter().any(|word| {
        let has = |part: &str| memchr::memmem::find(word, part.as_bytes()).is_some();
        PARTS.iter().any(|part| has(part)) || WORDS.iter().any(|it| it.as_bytes() == &word[..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(text: &str) -> Spot {
        let at = text.find("DRAWN").expect("a place");
        Markup::new(text.as_bytes(), b"www.shop.test").spot(at)
    }

    #[test]
    fn tokens_are_sent_from_some_places_alone() {
        use SpotKind::*;
        for (text, kind) in [
            ("<form><input type=hidden name=x value='DRAWN'>", Hidden),
            (
                "<input value=\"DRAWN\" name=x a='>' TYPE = Hidden />",
                Hidden,
            ),
            (
                "<form><input type=\"hidden\" name=\"DRAWN\" value=\"1\">",
                Hidden,
            ),
            (
                "<form action='https://pay.test/'><input type=hidden value='DRAWN'>",
                Field,
            ),
            (
                "<form action='https://pay.test/'></form><input type=hidden value=DRAWN>",
                Hidden,
            ),
            ("<input name=code value=DRAWN readonly>", Field),
            ("<textarea><b x='DRAWN'></textarea>", Field),
            ("<option value=DRAWN>", Field),
            ("<meta name=\"csrf-token\" content=\"DRAWN\">", Sender),
            (
                "<meta content=\"DRAWN\" property=\"app:csrfToken\">",
                Sender,
            ),
            ("<meta name=\"visitor\" content=\"DRAWN\">", Markup),
            ("<a href=\"/logout?k=DRAWN\">", Sender),
            ("<a href=\"?f1=1&amp;DRAWN=2\">", Sender),
            ("<a href='http://WWW.shop.test/x?k=DRAWN'>", Sender),
            ("<a href='//www.shop.test?k=DRAWN'>", Sender),
            ("<form action=\"/login?login_token=DRAWN\">", Sender),
            ("<button formaction=\"/x?t=DRAWN\">", Sender),
            ("<a href='/x?a=1&#038;k=DRAWN'>", Sender),
            ("<a href='/order/DRAWN'>", Markup),
            ("<a href='/order?x=1#DRAWN'>", Markup),
            ("<a href='http://www.shop.test.evil/x?k=DRAWN'>", Markup),
            ("<a href='//files.test/x?k=DRAWN'>", Markup),
            ("<a href='/\\files.test/x?k=DRAWN'>", Markup),
            ("<a href='bitcoin:x?k=DRAWN'>", Markup),
            ("<a href='mailto&#58;x?k=DRAWN'>", Markup),
            ("<base href='//cdn.test/'><a href='/x?k=DRAWN'>", Markup),
            ("<img src='/captcha?token=DRAWN'>", Markup),
            ("<script src='/x.js?token=DRAWN'></script>", Markup),
            ("<link href='/x?token=DRAWN'>", Markup),
            ("<iframe src='/x?token=DRAWN'>", Markup),
            ("<div data-hash=\"DRAWN\">", Markup),
            ("<div data-e-token=DRAWN>", Sender),
            ("<div data-state='{\"cart\":\"DRAWN\"}'>", Markup),
            ("<div data-session='{\"cart\":\"DRAWN\"}'>", Markup),
            (
                "<div data-page=\"{&quot;csrf_token&quot;:&quot;DRAWN\">",
                Sender,
            ),
            ("<div id=DRAWN>", Markup),
            ("<script nonce=\"DRAWN\">", Sender),
            ("<script>const cart=\"DRAWN\"</script>", Markup),
            ("<script>var my_post_key = 'DRAWN'</script>", Sender),
            ("<script>smf_session_var = \"DRAWN\"</script>", Sender),
            ("<script>x({\"csrf.token\":\"DRAWN\"})</script>", Sender),
            ("<script>h['X-XSRF-Token'] = 'DRAWN'</script>", Sender),
            ("<script>u = '/x?sid=DRAWN'</script>", Sender),
            (
                "<script>e = {\"session\":{\"id\":\"DRAWN\"</script>",
                Sender,
            ),
            (
                "<script>csrf = {name: 'a', value: 'DRAWN'}</script>",
                Sender,
            ),
            (
                "<div data-e='{&quot;session&quot;:{&quot;id&quot;:&quot;DRAWN'>",
                Sender,
            ),
            ("<script>e = {\"cart\":{\"id\":\"DRAWN\"</script>", Markup),
            (
                "<script>e = {\"session\":{\"cart\":{\"id\":\"DRAWN\"</script>",
                Markup,
            ),
            (
                "<script>e = {session: {cart: {}, id: 'DRAWN'</script>",
                Markup,
            ),
            ("<script>session = {cart: 'DRAWN'}</script>", Markup),
            ("<script>session(); id = 'DRAWN'</script>", Markup),
            (
                "<script>u = 'https:\\/\\/api.test\\/x?sid=DRAWN'</script>",
                Markup,
            ),
            ("<script>author = 'DRAWN'; hash = 1</script>", Markup),
            ("<script>go('DRAWN')</script>", Markup),
            ("<script>a = '<!--'; token = 'DRAWN'</script>", Sender),
            ("<a onclick=\"go('/x?my_post_key=DRAWN')\">", Sender),
            ("<!-- token = DRAWN -->", Comment),
            ("<!--><input><b>DRAWN", Text),
            ("1 < 2 token=DRAWN", Text),
            ("<script>x</script><p>token=DRAWN", Text),
            ("<title><a href='?token=DRAWN'></title>", Text),
            ("{\"token\":\"DRAWN\"}", Text),
        ] {
            assert_eq!(spot(text).kind, kind, "{text}");
        }
        assert!(spot("<input type=hidden name=my_post_key value=DRAWN>").has_token_name);
        assert!(!spot("<input type=hidden name=hash value=DRAWN>").has_token_name);
        assert!(spot("<form><p>DRAWN").is_in_form);
        assert!(!spot("<form></form><p>DRAWN").is_in_form);
    }

    #[test]
    fn names_of_tokens_have_their_words() {
        for (name, is_one) in [
            ("_token", true),
            ("__RequestVerificationToken", true),
            ("SECURITYTOKEN", true),
            ("sSessionId", true),
            ("form_key", true),
            ("wpnonce", true),
            ("phpbb_sid", true),
            ("author", false),
            ("inside", false),
            ("keyword", false),
            ("monkey", false),
            ("cartHash", false),
            ("code", false),
            ("id", false),
            ("", false),
        ] {
            assert_eq!(is_token_name(name.as_bytes()), is_one, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "[<>a/!\"'= -]{0,60}", at in 0..60_usize) {
            let mut markup = Markup::new(text.as_bytes(), b"a.test");
            let _ = markup.spot(at);
            let _ = markup.spot(text.len());
            proptest::prop_assert!(markup.piece.end <= text.len());
            let _ = Markup::new(text.as_bytes(), b"a.test").hidden_fields();
        }
    }
}
