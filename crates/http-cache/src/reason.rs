//! The reasons for which a request bypassed the cache or a response was not stored, each with a
//! name, a word and a sentence.
//!
//! The word is the same in `$cache_reason`, in the `detail` of `Cache-Status` (RFC 9211 §2.8), in
//! logs and in the output of commands. It is the word of RFC 9211 §2.2 where that has one.

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident, $when:ident, $word:literal, $sentence:literal;)*) => {
        /// Why the cache had no part in a response. Each has a word for logs and a sentence for
        /// people.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $(#[doc = $sentence] $variant,)* }

        impl Reason {
            /// All reasons, for documentation and metrics.
            pub const ALL: &[Reason] = &[$(Reason::$variant,)*];

            /// The reason as one word for logs and metrics.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Reason::$variant => $word,)* }
            }

            /// The reason as a sentence.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Reason::$variant => $sentence,)* }
            }

            /// Returns the part of a request's life that decides the reason.
            #[must_use]
            pub fn decided_by(self) -> DecidedBy {
                match self { $(Reason::$variant => DecidedBy::$when,)* }
            }
        }
    };
}

/// The part of a request's life that decides a [`Reason`], and so when it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The request and the configuration: known before an upstream is asked.
    Request,
    /// The cache's content and the other requests at this moment.
    Moment,
    /// The head of the response.
    Response,
    /// The body of the response, or an event while it arrived.
    Body,
}

reasons! {
    Off, Request, "off", "No cache is configured for this request.";
    Method, Request, "method", "Responses to this method are not stored.";
    Body, Request, "body", "The request has a body, which is not in the cache key.";
    Upgrade, Request, "upgrade", "The request asks for another protocol.";
    Range, Request, "range", "The range that is asked for begins further back than the cache looks.";
    Bypass, Request, "bypass", "A configured condition says not to look up.";
    OwnWrite, Request, "own-write", "The visitor has written something a moment ago.";
    Accept, Request, "accept", "The request does not accept HTML, so it comes from a program.";
    Argument, Request, "argument", "An argument of the request is personal.";
    Cookie, Request, "cookie", "A cookie of the request is personal, or unknown.";
    Credentials, Request, "credentials", "A field of the request carries credentials or an identity.";
    Override, Request, "override", "A field of the request names another method or another path.";
    Fragment, Request, "fragment", "A script asks for a part of a page.";
    Field, Request, "field", "A field of the request is not known not to matter.";
    Depends, Request, "depends", "The page was seen to depend on something that this visitor's request says.";
    Path, Request, "path", "The path is personal.";
    TooLong, Request, "too-long", "What would have to be in the cache key is too long.";
    Purge, Request, "purge", "The request purges.";
    NoLease, Moment, "no-lease", "The server cannot tell what other nodes have purged (`cache_nodes`), so it uses no stored response.";
    LostLease, Moment, "lost-lease", "The server has lost its lease a moment ago and uses what is stored all the same (`cache_nodes_lost`): a purge on another node may be missing.";
    Unproven, Moment, "unproven", "It was not seen yet that what this visitor's request says does not matter for the page.";
    NotShareable, Moment, "not-shareable", "A trial has found no answer that visitors can share: each of them has one of their own.";
    MinUses, Moment, "min-uses", "The key was not asked for often enough yet.";
    LockTimeout, Moment, "lock-timeout", "Another request fetches the response and takes too long.";
    TooManyVariants, Moment, "too-many-variants", "The key has more variants than are kept.";
    Failed, Response, "failed", "The upstream gave no response that can be used.";
    NoAnswer, Response, "no-answer", "There is no response.";
    AccelRedirect, Response, "accel-redirect", "The response names another location, which answers in its place.";
    Condition, Response, "condition", "A configured condition says not to store.";
    Status, Response, "status", "Responses of this status cannot be stored.";
    Partial, Response, "partial", "It is a part of a response only.";
    CookieOutsideKey, Response, "cookie-outside-key", "The response is for one visitor, whose cookies are not in the cache key.";
    Authorization, Response, "authorization", "The request carries credentials and the response does not allow sharing.";
    SetCookie, Response, "set-cookie", "The response sets a cookie.";
    NoStoreDirective, Response, "no-store", "The response says no-store.";
    NoCache, Response, "no-cache", "The response says no-cache.";
    Private, Response, "private", "The response says private.";
    VaryStar, Response, "vary-star", "The response varies on more than the request's fields.";
    VaryTooLong, Response, "vary-too-long", "The response varies on too many or too long fields.";
    ZeroLifetime, Response, "zero-lifetime", "The response is stale on arrival.";
    UnknownLifetime, Response, "unknown-lifetime", "The lifetime that the response gives cannot be read, so it counts as stale.";
    NoLifetime, Response, "no-lifetime", "Neither the response nor a rule gives a lifetime.";
    TooLarge, Body, "too-large", "The response is larger than may be stored.";
    NoRoom, Body, "no-room", "The memory budget has no room for the response.";
    Truncated, Body, "truncated", "The response ended before it was complete.";
    ExcessData, Body, "excess-data", "The upstream sent more than the response says.";
    AddressDatabase, Body, "address-database", "The page depends on the visitor's address: by a database of addresses, or by a statement that looks it up.";
    OwnCopy, Moment, "own-copy", "The answer is the visitor's own copy: nothing that it was made of has changed.";
    Purged, Body, "purged", "The response was purged while it was fetched.";
    Superseded, Body, "superseded", "A response that was asked for later is stored already.";
}

impl Reason {
    /// Does this reason show that the page itself is not to be stored? Then a stale copy of it is out
    /// of date. A reason that is the request's own does not show it, and a cookie is often set for
    /// first visits only.
    #[must_use]
    pub fn is_of_page(self) -> bool {
        matches!(
            self,
            Reason::Status
                | Reason::NoStoreDirective
                | Reason::NoCache
                | Reason::Private
                | Reason::VaryStar
                | Reason::ZeroLifetime
                | Reason::UnknownLifetime
                | Reason::NoLifetime
        )
    }

    /// Does it depend on the client, so that it does not apply to the next request for the key?
    #[must_use]
    pub fn is_of_one_request(self) -> bool {
        matches!(
            self,
            Reason::Condition
                | Reason::AccelRedirect
                | Reason::CookieOutsideKey
                | Reason::Authorization
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_reason_has_a_word_of_its_own_and_a_sentence() {
        let mut words = HashSet::new();
        for reason in Reason::ALL {
            let (word, sentence) = (reason.word(), reason.sentence());
            assert!(words.insert(word), "{word}");
            // A token (RFC 9110 §5.6.2), so that it needs no quotes in Cache-Status.
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(word.bytes().all(is_plain), "{word}");
            assert!(sentence.ends_with('.'), "{word}");
        }
    }
}
