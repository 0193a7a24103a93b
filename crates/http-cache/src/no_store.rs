//! The reasons why a response is not stored, each with a name, a word and a sentence.

macro_rules! no_store {
    ($($(#[$doc:meta])* $variant:ident, $word:literal, $sentence:literal;)*) => {
        /// Why a response is not stored. Each has a word for logs and a sentence for people.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum NoStore { $(#[doc = $sentence] $variant,)* }

        impl NoStore {
            /// All reasons, for documentation and metrics.
            pub const ALL: &[NoStore] = &[$(NoStore::$variant,)*];

            /// The reason as one word for logs and metrics.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(NoStore::$variant => $word,)* }
            }

            /// The reason as a sentence.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(NoStore::$variant => $sentence,)* }
            }
        }
    };
}

no_store! {
    Condition, "condition", "A configured condition says not to store.";
    Method, "method", "Responses to this method are not stored.";
    Status, "status", "Responses of this status cannot be stored.";
    Partial, "partial", "It is a part of a response only.";
    CookieOutsideKey, "cookie", "The response is for one visitor, whose cookies are not in the key.";
    Authorization, "authorization", "The request carries credentials and the response does not allow sharing.";
    SetCookie, "set-cookie", "The response sets a cookie.";
    NoStoreDirective, "no-store", "The response says no-store.";
    NoCache, "no-cache", "The response says no-cache.";
    Private, "private", "The response says private.";
    VaryStar, "vary-star", "The response varies on more than the request's fields.";
    VaryTooLong, "vary-too-long", "The response varies on too many or too long fields.";
    ZeroLifetime, "zero-lifetime", "The response is stale on arrival.";
    NoLifetime, "no-lifetime", "Neither the response nor a rule gives a lifetime.";
    MinUses, "min-uses", "The key was not asked for often enough yet.";
    TooLarge, "too-large", "The response is larger than may be stored.";
    NoRoom, "no-room", "The memory budget has no room for the response.";
    Truncated, "truncated", "The response ended before it was complete.";
    ExcessData, "excess-data", "The upstream sent more than the response says.";
    Purged, "purged", "The key was purged while the response was fetched.";
}
