//! Pages that include themselves over the network: a fragment whose location proxies back to this server.
//!
//! A fragment's request over HTTP names this server in `CDN-Loop` (RFC 8586), and proxies on the way keep
//! that field. A page whose request comes with the name asks no upstream for fragments of its own: so a
//! visit costs the budget of its page, and one more page for each of its requests. A client that forges the
//! field loses fragments of its own page; stored pages stay whole.

use std::sync::LazyLock;

use crate::exchange::received_request::ReceivedRequest;
use crate::exchange::request::Request;
use server_base::random;

/// The field's name.
pub const FIELD: &str = "CDN-Loop";

/// The name of this process, so that other servers of the same kind on the way are not mistaken for it.
static OWN_NAME: LazyLock<String> =
    LazyLock::new(|| format!("mayfly-{:032x}", u128::from_be_bytes(random::bytes16())));

/// The name of this server in the field.
pub fn own_name() -> &'static [u8] {
    OWN_NAME.as_bytes()
}

/// Has this server made the request, or one that led to it, for a fragment?
pub fn is_from_own_fragment(received: &ReceivedRequest) -> bool {
    let mut lines = received.head().field_all(b"cdn-loop");
    lines.any(|line| names(line, own_name()))
}

/// Must a fetch for this request name this server?
pub fn is_to_be_named(request: &Request) -> bool {
    let is_fragment = request.route.is_subrequest() && request.fragments.get().is_some();
    is_fragment || is_from_own_fragment(&request.received)
}

/// Is `name` one of the names in a value of the field? Each may have parameters.
fn names(value: &[u8], name: &[u8]) -> bool {
    let mut all = value.split(|&byte| byte == b',');
    all.any(|one| {
        one.split(|&byte| byte == b';')
            .next()
            .unwrap_or(one)
            .trim_ascii()
            == name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_among_others_with_parameters() {
        for (value, is_named) in [
            ("own", true),
            ("other, own", true),
            ("other;a=b,own ; trace=\"c\", more", true),
            ("", false),
            (",;,", false),
            ("owner", false),
            ("other;own", false),
            ("OWN", false),
        ] {
            assert_eq!(names(value.as_bytes(), b"own"), is_named, "{value}");
        }
    }
}
