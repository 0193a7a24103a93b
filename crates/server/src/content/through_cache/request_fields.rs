//! The fields of a request by which the cache tells variants apart (`Vary`).

use http_cache::RequestFields;
use http1::RequestHead;
use shared_request::varied;

/// A request's fields as the cache asks for them, to tell variants apart.
#[derive(Clone, Copy)]
pub enum Fields<'a> {
    /// As the client sent them.
    Received(&'a RequestHead),
    /// As the application would be sent them: those that may vary, in their one form.
    Shared(&'a RequestHead),
    /// As it was sent them: those of these names, and Accept, which is always sent.
    Sent(&'a RequestHead, &'a [String]),
}

impl RequestFields for Fields<'_> {
    fn each_value(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        match *self {
            Fields::Received(head) => {
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
