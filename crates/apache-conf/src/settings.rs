//! What a server, a folder or some files are given: fields, lifetimes, types, limits of access and plain lines.

use std::collections::BTreeMap;

use nginx_conf::text::quoted;

use crate::access::AccessLines;

/// A field that responses get or lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLine {
    pub name: String,
    /// As an argument; `None` where the field is only removed.
    pub value: Option<String>,
    /// Errors have it as well.
    pub is_always: bool,
}

/// What some files, or all, are given.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub access: AccessLines,
    pub fields: Vec<FieldLine>,
    /// Fields of PHP and of servers behind this one that are not passed on.
    pub hidden: Vec<String>,
    /// The argument of `expires`.
    pub expires: Option<String>,
    /// A media type.
    pub media_type: Option<String>,
    pub charset: Option<String>,
    /// Lines that are nginx's already.
    pub lines: Vec<String>,
    /// PHP does not run here.
    pub is_without_php: bool,
}

impl Settings {
    /// Nothing but access.
    pub fn only_limits(&self) -> bool {
        self.fields.is_empty()
            && self.hidden.is_empty()
            && self.expires.is_none()
            && self.media_type.is_none()
            && self.charset.is_none()
            && self.lines.is_empty()
            && !self.is_without_php
    }

    /// Takes the place of what is said of a field before.
    pub fn set_field(&mut self, name: &str, value: Option<String>, is_always: bool) {
        self.fields.retain(|it| !it.name.eq_ignore_ascii_case(name));
        self.hide(name);
        self.fields.push(FieldLine {
            name: name.to_owned(),
            value,
            is_always,
        });
    }

    pub fn add_field(&mut self, name: &str, value: String, is_always: bool) {
        self.fields.push(FieldLine {
            name: name.to_owned(),
            value: Some(value),
            is_always,
        });
    }

    fn hide(&mut self, name: &str) {
        if !self.hidden.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            self.hidden.push(name.to_owned());
        }
    }

    /// What `inner` says, on top of these.
    pub fn over(&self, inner: &Settings) -> Settings {
        let mut both = self.clone();
        for field in &inner.hidden {
            both.hide(field);
        }
        for field in &inner.fields {
            if inner
                .hidden
                .iter()
                .any(|it| it.eq_ignore_ascii_case(&field.name))
            {
                both.fields
                    .retain(|it| !it.name.eq_ignore_ascii_case(&field.name));
            }
        }
        both.fields.extend(inner.fields.iter().cloned());
        both.expires = inner.expires.clone().or(both.expires);
        both.media_type = inner.media_type.clone().or(both.media_type);
        both.charset = inner.charset.clone().or(both.charset);
        both.lines.extend(inner.lines.iter().cloned());
        both.is_without_php |= inner.is_without_php;
        both
    }

    /// The lines of `add_header`.
    pub fn field_lines(&self) -> Vec<String> {
        let lines = self.fields.iter().filter_map(|field| {
            let value = field.value.as_deref()?;
            let always = if field.is_always { " always" } else { "" };
            Some(format!(
                "add_header {} {}{always};",
                field.name,
                quoted(value)
            ))
        });
        lines.collect()
    }

    /// Does a field say how long it is fresh?
    pub fn says_cache_control(&self) -> bool {
        self.fields
            .iter()
            .any(|it| it.name.eq_ignore_ascii_case("cache-control") && it.value.is_some())
    }
}

/// What `<Files>` and `<FilesMatch>` choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    All,
    /// Without their dot, and whether case does not count.
    Extensions(Vec<String>, bool),
    Literal(String),
    /// A regular expression for the name.
    Pattern(String),
}

/// Files, and what they are given.
#[derive(Clone, Debug)]
pub struct NamedSettings {
    pub names: Names,
    pub settings: Settings,
    pub item: htaccess::item::Item,
}

/// Settings of single extensions.
pub type Extensions = BTreeMap<String, Settings>;
