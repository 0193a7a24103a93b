//! The request fields by which the cache distinguishes variants (`Vary`).

use http_cache::{ONE_COOKIE, RequestFields};
use http_semantics::RequestHead;
use shared_request::{NameSet, cookies, varied};

/// A request's fields as the cache asks for them, to tell variants apart.
#[derive(Clone, Copy)]
pub enum Fields<'a> {
    /// The fields as received.
    Received(&'a RequestHead),
    /// The fields as received, less the cookies that do not count.
    Counted(&'a RequestHead, &'a NameSet),
    /// The fields of the shared request: those that may vary, in their one form.
    Shared(&'a RequestHead),
    /// The fields that were sent: those of these names, and Accept, which is always sent.
    Sent(&'a RequestHead, &'a [String]),
}

impl RequestFields for Fields<'_> {
    fn each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        if let Some(cookie) = name.strip_prefix(ONE_COOKIE) {
            return self.each_cookie(cookie, visit);
        }
        match *self {
            Fields::Counted(head, ignored) if name == "cookie" && !ignored.is_empty() => {
                let mut value = Vec::new();
                if cookies::put_others(head.view(), ignored, &mut value) {
                    visit(&value);
                }
            }
            Fields::Received(head) | Fields::Counted(head, _) => {
                for value in head.field_all(name.as_bytes()) {
                    visit(value);
                }
            }
            Fields::Shared(head) => {
                let mut value = Vec::new();
                if varied::put_value(head.view(), name, &mut value) {
                    visit(&value);
                }
            }
            Fields::Sent(head, varied) => {
                let is_sent = name == "accept" || varied.iter().any(|sent| sent == name);
                if is_sent && let Some(value) = head.field(name) {
                    visit(value);
                }
            }
        }
    }
}

impl Fields<'_> {
    /// The cookies of this name, in any case and as PHP may read it, each with its name.
    fn each_cookie(&self, wanted: &str, visit: &mut dyn FnMut(&[u8])) {
        let (Fields::Received(head)
        | Fields::Counted(head, _)
        | Fields::Shared(head)
        | Fields::Sent(head, _)) = *self;
        let wanted = NameSet::new([wanted.as_bytes()]);
        for (name, value) in cookies::pairs(head.view()) {
            if cookies::is_named(&name.to_ascii_lowercase(), &wanted) {
                visit(&[name, b"=", value].concat());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::head;

    fn values(fields: Fields<'_>, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        fields.each_value(name, &mut |value| {
            values.push(String::from_utf8_lossy(value).into_owned());
        });
        values
    }

    #[test]
    fn a_field_of_which_nothing_counts_has_no_value() {
        let head = head(&["Cookie: seen=1; theme=dark", "Accept-Language: de"]);
        let sets = [&["seen"][..], &["seen", "theme"]];
        let [one, both] = sets.map(|names| NameSet::new(names.iter().map(|name| name.as_bytes())));
        assert_eq!(
            values(Fields::Counted(&head, &one), "cookie"),
            ["theme=dark"]
        );
        assert!(values(Fields::Counted(&head, &both), "cookie").is_empty());
        assert_eq!(values(Fields::Shared(&head), "accept-language"), ["de"]);
        assert!(values(Fields::Shared(&head), "x-absent").is_empty());
        assert!(values(Fields::Shared(&head), "cookie").is_empty());
    }
}
