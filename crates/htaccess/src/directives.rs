//! Single lines of a `.htaccess`, and the meaning of the sections around them.

use std::sync::Arc;

use crate::access::{AddressAccess, Order, Source};
use crate::address::Network;
use crate::alias::{AliasRedirect, From};
use crate::environment::{EnvironmentCondition, Subject};
use crate::expression::Expression;
use crate::item::Item;
use crate::lifetimes::lifetime;
use crate::media::{self, is_charset, is_media_type};
use crate::mistake::LineMistake;
use crate::modules;
use crate::names::{Methods, NameTest};
use crate::pattern::Pattern;
use crate::require::{Logic, Question, Requirement};
use crate::response::{FieldLine, FieldLineError, ResponseSettings, error_document};
use crate::rewriting::{Inheritance, RewriteOptions, Rewriting};
use crate::settings::{Conditional, LinkOptions, Settings};

/// The place of a line.
#[derive(Clone, Default)]
pub struct Place {
    pub methods: Methods,
    /// In `<Files>` or `<If>`.
    pub is_inner: bool,
    /// It is not known whether Apache would read the lines: only lines that close hold.
    pub is_doubtful: bool,
}

/// The outcome of reading a line.
pub enum LineOutcome {
    Yes,
    /// Apache does not take the line.
    Mistake(LineMistake),
    /// It cannot be obeyed, and may limit access.
    Closes(&'static str),
    /// It has no effect here, and opens nothing by that.
    Without(&'static str),
}

/// Directives whose work Mayfly does by itself, or that concern no visitor.
pub const OWN_WORK: [&str; 13] = [
    "addoutputfilter",
    "addencoding",
    "addlanguage",
    "brotli",
    "deflate",
    "filter",
    "fileetag",
    "serversignature",
    "limitrequest",
    "enable",
    "defaultlanguage",
    "languagepriority",
    "cachedisable",
];

const NO_EFFECT: &str = "the line has no effect here";
const NO_LISTINGS: &str = "folders are listed only with `autoindex on` in the server";

/// Known directives without effect, with the reason.
pub const WITHOUT_EFFECT: [(&str, &str); 11] = [
    ("acceptpathinfo", NO_EFFECT),
    ("addalt", NO_LISTINGS),
    ("adddescription", NO_LISTINGS),
    ("addicon", NO_LISTINGS),
    ("addinputfilter", NO_EFFECT),
    ("contentdigest", NO_EFFECT),
    ("index", NO_EFFECT),
    (
        "php_",
        "PHP-FPM would keep the setting for other requests; write it into .user.ini, or into php_pool",
    ),
    ("requestheader", NO_EFFECT),
    ("setinputfilter", NO_EFFECT),
    ("setoutputfilter", NO_EFFECT),
];

/// The name of a directive, short enough for a note. The file may be one of another account.
pub fn shown_name(item: &Item) -> String {
    let letters = item
        .name
        .chars()
        .filter(|it| it.is_ascii_alphanumeric() || *it == '_');
    letters.take(40).collect()
}

fn closes(settings: &Settings) -> bool {
    settings.closed.is_some()
        || settings.require.is_some()
        || settings.access.is_some()
        || settings.conditional.iter().any(|it| it.closes)
        || settings.redirects.iter().any(|it| it.status >= 400)
        || !settings.scripts.by_extension.is_empty()
        || settings.scripts.engine == Some(false)
        || settings.scripts.handler == Some(false)
}

/// The lines of a conditional section that hold.
pub enum SectionUse {
    All,
    None,
    /// It is not known whether Apache has the module: those that close.
    Closing,
}

pub fn section_use(item: &Item) -> SectionUse {
    let holds = modules::holds(item) == Some(modules::SectionVerdict::Yes);
    let name = item.lower(0);
    let is_known = match item.name.as_str() {
        "ifmodule" => is_usual(&name) || holds == name.starts_with('!'),
        "iffile" | "ifdirective" | "ifsection" => false,
        _ => true,
    };
    match (is_known, holds) {
        (false, _) => SectionUse::Closing,
        (true, true) => SectionUse::All,
        (true, false) => SectionUse::None,
    }
}

/// A line that only takes away: a refusal, scripts that do not run, rules (among which others refuse).
pub fn closes_by_itself(item: &Item) -> bool {
    let takes_scripts = [
        "php_flag",
        "php_value",
        "sethandler",
        "removehandler",
        "removetype",
        "forcetype",
    ];
    item.denies() || takes_scripts.contains(&item.name.as_str())
}

pub type Branch = (Option<Expression>, Arc<Settings>);

pub fn end_chain(chain: &mut Vec<Branch>, settings: &mut Settings) {
    if chain.is_empty() {
        return;
    }
    let branches = std::mem::take(chain);
    let closes = branches.iter().any(|(_, settings)| closes(settings));
    settings.conditional.push(Arc::new(Conditional {
        names: None,
        branches,
        closes,
    }));
}

/// Modules that every Apache 2.4 for such sites has.
fn is_usual(name: &str) -> bool {
    let name = name.trim_start_matches('!');
    #[rustfmt::skip]
    let usual = [
        "access_compat", "alias", "auth_basic", "authn_core", "authn_file", "authz_core", "authz_host",
        "authz_user", "autoindex", "deflate", "dir", "env", "expires", "filter", "headers", "mime", "negotiation",
        "rewrite", "setenvif", "version",
    ];
    let name = name.trim_start_matches("mod_").trim_end_matches(".c");
    usual.contains(&name.trim_end_matches("_module"))
}

/// Whether a line lets visitors in.
pub fn grants(item: &Item) -> bool {
    let is_own = match item.name.as_str() {
        "require" => !item.denies() || item.lower(0) != "all",
        "allow" => true,
        "satisfy" => item.lower(0) == "any",
        _ => false,
    };
    is_own || item.block.iter().flatten().any(grants)
}

/// The names of `<Files>` and `<FilesMatch>`.
pub fn names(item: &Item) -> Option<NameTest> {
    match (item.name.as_str(), &item.args[..]) {
        ("files", [tilde, regex, ..]) if tilde == "~" => {
            Pattern::new(regex, false).map(NameTest::Pattern)
        }
        ("filesmatch", [regex, ..]) => Pattern::new(regex, false).map(NameTest::Pattern),
        ("files", [glob, ..]) => Some(NameTest::Glob(glob.clone())),
        _ => None,
    }
}

pub fn add(settings: &mut Settings, requirement: Requirement) {
    let all = settings
        .require
        .get_or_insert_with(|| Requirement::section(Logic::Any, false, Vec::new()));
    all.push(requirement);
}

pub fn require(item: &Item, place: &Place) -> Result<Requirement, LineMistake> {
    let (is_negated, words) = match &item.args[..] {
        [first, words @ ..] if first.eq_ignore_ascii_case("not") => (true, words),
        words => (false, words),
    };
    let [kind, words @ ..] = words else {
        return Err("it needs to say who is let in".into());
    };
    let question = match kind.to_ascii_lowercase().as_str() {
        "all" => match words.first().map(|it| it.to_ascii_lowercase()).as_deref() {
            Some("granted") => Question::All(true),
            Some("denied") => Question::All(false),
            _ => return Err("write granted or denied behind all".into()),
        },
        "ip" => {
            let networks: Option<Vec<Network>> = words.iter().map(|it| Network::of(it)).collect();
            let networks = networks.filter(|it| !it.is_empty());
            Question::Networks(networks.ok_or("an address cannot be read")?)
        }
        "local" => Question::Local,
        "valid-user" => Question::ValidUser,
        "user" => Question::Users(words.to_vec()),
        "group" => Question::Groups(words.to_vec()),
        "env" => Question::Variables(words.to_vec()),
        "method" => Question::Methods(Methods::named(words)),
        "expr" => {
            let text = item.text.trim();
            let at = text.to_ascii_lowercase().find("expr").unwrap_or(0) + "expr".len();
            let whole = words.first().filter(|_| words.len() == 1);
            let expression = whole.and_then(|it| Expression::of(it));
            let expression = expression.or_else(|| Expression::of(&text[at..]));
            expression.map_or(Question::Unknown, |it| Question::Expression(Arc::new(it)))
        }
        _ => Question::Unknown,
    };
    Ok(Requirement::line(
        is_negated,
        place.methods.clone(),
        question,
    ))
}

pub fn address_line(item: &Item, access: &mut AddressAccess, place: &Place) -> LineOutcome {
    let first = item.lower(0);
    let methods = || place.methods.clone();
    match item.name.as_str() {
        "order" => {
            let order = match (first.as_str(), item.args.len()) {
                ("allow,deny", 1) => Order::AllowDeny,
                ("deny,allow", 1) => Order::DenyAllow,
                ("mutual-failure", 1) => Order::MutualFailure,
                _ => {
                    return LineOutcome::Mistake(
                        "write deny,allow or allow,deny without a space".into(),
                    );
                }
            };
            access.orders.push((methods(), order));
        }
        "satisfy" => match first.as_str() {
            "any" => access.satisfies_any.push((methods(), true)),
            "all" => access.satisfies_any.push((methods(), false)),
            _ => return LineOutcome::Mistake("write any or all".into()),
        },
        name => {
            if first != "from" || item.args.len() < 2 {
                return LineOutcome::Mistake("write from and whom".into());
            }
            let lines = match name {
                "allow" => &mut access.allows,
                _ => &mut access.denies,
            };
            for word in &item.args[1..] {
                let Some(source) = source(word) else {
                    return LineOutcome::Mistake("an address cannot be read".into());
                };
                lines.push((methods(), source));
            }
        }
    }
    LineOutcome::Yes
}

fn source(word: &str) -> Option<Source> {
    let lower = word.to_ascii_lowercase();
    if let Some(name) = lower.strip_prefix("env=") {
        let (is_negated, name) = match name.starts_with('!') {
            true => (true, &word[5..]),
            false => (false, &word[4..]),
        };
        let name = name.to_owned();
        return Some(Source::Variable { name, is_negated });
    }
    match (lower.as_str(), Network::of(word)) {
        ("all", _) => Some(Source::All),
        ("localhost", _) => Some(Source::Loopback),
        (_, Some(network)) => Some(Source::Network(network)),
        _ if word.contains(['/', '#']) => None,
        _ => Some(Source::Host),
    }
}

pub fn authentication(item: &Item, settings: &mut Settings) -> LineOutcome {
    let own = &mut settings.authentication;
    let first = item.args.first().cloned();
    match item.name.as_str() {
        "authtype" => own.kind = Some(item.lower(0)),
        "authname" => own.realm = first,
        "authuserfile" => own.user_file = first,
        "authgroupfile" => own.group_file = first,
        "authbasicprovider" => own.has_other_provider = Some(item.all_lower() != ["file"]),
        "authzsendforbiddenonfailure" => own.refuses_with_403 = Some(item.lower(0) == "on"),
        "authbasicauthoritative" | "authuserfileauthoritative" | "authgroupfileauthoritative" => {}
        _ => {
            return LineOutcome::Closes(
                "names and passwords are asked for with AuthType Basic and AuthUserFile only",
            );
        }
    }
    LineOutcome::Yes
}

pub fn options(item: &Item, settings: &mut Settings, is_of_server: bool) -> LineOutcome {
    let lists = &mut settings.folder.lists;
    let links = settings.links.get_or_insert(LinkOptions {
        follows: None,
        follows_of_owner: None,
    });
    let is_absolute = |word: &String| !word.starts_with(['+', '-']);
    if item.args.iter().any(is_absolute) {
        links.follows = Some(false);
        links.follows_of_owner = Some(false);
        *lists = Some(false);
    }
    let mut outcome = LineOutcome::Yes;
    for word in item.all_lower() {
        let is_on = !word.starts_with('-');
        match word.trim_start_matches(['+', '-']) {
            "followsymlinks" => links.follows = Some(is_on),
            "symlinksifownermatch" => links.follows_of_owner = Some(is_on),
            "all" => {
                links.follows = Some(is_on);
                *lists = Some(is_on);
            }
            "none" => {
                *lists = Some(false);
                links.follows = Some(false);
                links.follows_of_owner = Some(false);
            }
            "indexes" => {
                *lists = Some(is_on);
                if is_on && !is_of_server {
                    outcome = LineOutcome::Without(NO_LISTINGS);
                }
            }
            "multiviews" if is_on => {
                outcome = LineOutcome::Without("no file is looked for under another name");
            }
            "multiviews" | "execcgi" | "includes" | "includesnoexec" => {}
            _ => return LineOutcome::Mistake("there is no such option".into()),
        }
    }
    outcome
}

pub fn by_extension(settings: &mut Settings, extensions: Option<&[String]>, runs: bool) {
    for extension in extensions.into_iter().flatten() {
        let extension = extension.trim_start_matches('.').to_ascii_lowercase();
        let is_script = extension.starts_with("ph");
        if is_script {
            settings.scripts.by_extension.push((extension, runs));
        }
    }
}

/// `Header`, `ErrorDocument`, `Expires*` and the types of files.
pub fn response(item: &Item, settings: &mut ResponseSettings) -> LineOutcome {
    let args = &item.args[..];
    let first = item.lower(0);
    let behind = args.get(1..).unwrap_or_default();
    let media = &mut settings.media;
    let refused = |error| match error {
        FieldLineError::Mistake(why) => LineOutcome::Mistake(why.into()),
        FieldLineError::Without(why) => LineOutcome::Without(why),
    };
    const NO_LIFETIME: &str = "write a time as in \"access plus 1 month\"";
    match item.name.as_str() {
        "header" => match FieldLine::of(args) {
            Ok(line) => settings.fields.push(Arc::new(line)),
            Err(error) => return refused(error),
        },
        "errordocument" => match error_document(args) {
            Ok(document) => settings.error_documents.push(document),
            Err(error) => return refused(error),
        },
        "expiresactive" => match first.as_str() {
            "on" | "off" => settings.expires.is_active = Some(first == "on"),
            _ => return LineOutcome::Mistake("write on or off".into()),
        },
        "expiresdefault" => match lifetime(args) {
            Some(lifetime) => settings.expires.default = Some(lifetime),
            None => return LineOutcome::Mistake(NO_LIFETIME.into()),
        },
        "expiresbytype" => match lifetime(behind) {
            Some(lifetime) => settings.expires.by_type.push((first, lifetime)),
            None => return LineOutcome::Mistake(NO_LIFETIME.into()),
        },
        "forcetype" if first == "none" => media.forced = Some(String::new()),
        "forcetype" if is_media_type(&first) => media.forced = args.first().cloned(),
        "addtype" if is_media_type(&first) => {
            let of_type = args.first().map(String::as_str);
            media.types.extend(media::by_extension(behind, of_type));
        }
        "removetype" => media.types.extend(media::by_extension(args, None)),
        "addcharset" if is_charset(&first) => {
            let charset = args.first().map(String::as_str);
            media.charsets.extend(media::by_extension(behind, charset));
        }
        "removecharset" => media.charsets.extend(media::by_extension(args, None)),
        "adddefaultcharset" => {
            media.default_charset = match first.as_str() {
                "off" => Some(String::new()),
                "on" => Some("iso-8859-1".to_owned()),
                charset if is_charset(charset) => args.first().cloned(),
                _ => return LineOutcome::Mistake("write on, off or a charset".into()),
            }
        }
        _ => return LineOutcome::Without("this is no media type, or no charset"),
    }
    LineOutcome::Yes
}

pub fn environment_condition(item: &Item) -> Result<EnvironmentCondition, LineMistake> {
    let is_caseless = item.name.ends_with("nocase");
    let args = &item.args[..];
    let (subject, pattern, sets) = match item.name.as_str() {
        "setenvifexpr" => {
            let [text, sets @ ..] = args else {
                return Err("it needs a condition and variables".into());
            };
            let expression = Expression::of(text).unwrap_or_else(Expression::unknown);
            (Subject::Expression(Arc::new(expression)), None, sets)
        }
        "browsermatch" | "browsermatchnocase" => {
            let [pattern, sets @ ..] = args else {
                return Err("it needs a pattern and variables".into());
            };
            (
                Subject::Attribute("User-Agent".to_owned()),
                Some(pattern),
                sets,
            )
        }
        _ => {
            let [name, pattern, sets @ ..] = args else {
                return Err("it needs an attribute, a pattern and variables".into());
            };
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            let subject = match name.bytes().all(is_name) {
                true => Subject::Attribute(name.clone()),
                false => {
                    let names = Pattern::new(name, true).ok_or("the attribute cannot be read")?;
                    Subject::Fields(names)
                }
            };
            (subject, Some(pattern), sets)
        }
    };
    if sets.is_empty() {
        return Err("it needs a variable".into());
    }
    let pattern = match pattern {
        Some(text) => Some(Pattern::new(text, is_caseless).ok_or("the pattern cannot be read")?),
        None => None,
    };
    let set = |word: &String| match (word.strip_prefix('!'), word.split_once('=')) {
        (Some(name), _) => (name.to_owned(), None),
        (None, Some((name, value))) => (name.to_owned(), Some(value.to_owned())),
        (None, None) => (word.clone(), Some("1".to_owned())),
    };
    Ok(EnvironmentCondition {
        subject,
        pattern,
        sets: sets.iter().map(set).collect(),
    })
}

pub fn redirect(item: &Item) -> Result<AliasRedirect, LineMistake> {
    let (mut status, mut args) = match item.name.as_str() {
        "redirectpermanent" => (301, &item.args[..]),
        _ => (302, &item.args[..]),
    };
    if let [first, rest @ ..] = args
        && item.name.len() <= "redirectmatch".len()
        && !first.starts_with(['/', '^', '(', '.'])
    {
        let named = match first.to_ascii_lowercase().as_str() {
            "permanent" => Some(301),
            "temp" => Some(302),
            "seeother" => Some(303),
            "gone" => Some(410),
            text => text.parse().ok().filter(|it| (100..600).contains(it)),
        };
        if let Some(named) = named {
            (status, args) = (named, rest);
        }
    }
    let is_redirect = (300..400).contains(&status);
    let (from, to) = match (args, is_redirect) {
        ([from, to], true) => (from, to.clone()),
        ([from], false) => (from, String::new()),
        _ => return Err("it needs a path and, for a redirect, where it leads".into()),
    };
    let from = match item.name.as_str() {
        "redirectmatch" => {
            From::Pattern(Pattern::new(from, false).ok_or("the pattern cannot be read")?)
        }
        _ if from.starts_with('/') => From::Prefix(from.clone()),
        _ => return Err("the path begins with a slash".into()),
    };
    Ok(AliasRedirect { from, status, to })
}

pub fn rewrite_options(item: &Item, rewriting: &mut Rewriting) {
    let options: &mut RewriteOptions = rewriting.options.get_or_insert_default();
    for word in item.all_lower() {
        match word.as_str() {
            "inherit" => options.inherit = Some(Inheritance::After),
            "inheritbefore" => options.inherit = Some(Inheritance::Before),
            "inheritdown" => options.inherit_down = Some(Inheritance::After),
            "inheritdownbefore" => options.inherit_down = Some(Inheritance::Before),
            "ignoreinherit" => options.ignores_inherited = true,
            "allownoslash" => options.allows_no_slash = true,
            "mergebase" => options.merges_base = true,
            _ => {}
        }
    }
}

/// Returns how many patterns a line and its block compare for each request.
pub fn patterns(item: &Item) -> usize {
    let names = [
        "rewriterule",
        "rewritecond",
        "redirectmatch",
        "setenvif",
        "setenvifnocase",
        "browsermatch",
        "browsermatchnocase",
        "setenvifexpr",
        "filesmatch",
        "files",
        "if",
        "elseif",
        "require",
    ];
    let inner = item.block.iter().flatten().map(patterns);
    usize::from(names.contains(&item.name.as_str())) + inner.sum::<usize>()
}
