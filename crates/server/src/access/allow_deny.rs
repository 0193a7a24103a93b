//! `allow` and `deny`: the first rule that holds the client's address decides
//! (<https://nginx.org/en/docs/http/ngx_http_access_module.html>).

use site::AccessRule;

use crate::exchange::request::Request;

/// Do `allow` and `deny` let this request in? The first rule that holds the
/// client's address decides; without one it is let in.
pub fn is_allowed(request: &Request) -> bool {
    decision(request).unwrap_or(true)
}

/// The first rule that holds the client's address; `None` if none does.
pub fn decision(request: &Request) -> Option<bool> {
    AccessRule::decision(&request.settings().access, request.received.client_ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use site::Network;

    fn network(text: &str) -> Network {
        match text {
            "all" => Network::All,
            "unix:" => Network::Unix,
            _ => {
                let (address, bits) = text.split_once('/').unwrap();
                Network::Block {
                    address: address.parse().unwrap(),
                    prefix_bits: bits.parse().unwrap(),
                }
            }
        }
    }

    #[test]
    fn the_first_rule_that_holds_the_address_decides() {
        let rules = |texts: &[&str]| -> Vec<AccessRule> {
            texts
                .iter()
                .map(|text| {
                    let (verb, block) = text.split_once(' ').unwrap();
                    AccessRule {
                        network: network(block),
                        allow: verb == "allow",
                    }
                })
                .collect()
        };
        let inside: &[&str] = &[
            "deny 10.0.0.1/32",
            "allow 10.0.0.0/8",
            "allow fd00::/8",
            "deny all",
        ];
        for (rules_text, address, wanted) in [
            (inside, Some("10.0.0.1"), false),
            (inside, Some("10.0.0.2"), true),
            (inside, Some("::ffff:10.0.0.2"), true),
            (inside, Some("fd00::1"), true),
            (inside, Some("11.0.0.1"), false),
            (inside, None, false),
            (&["allow unix:", "deny all"], None, true),
            (&["deny unix:"], None, false),
            (&["deny unix:"], Some("127.0.0.1"), true),
            (&["deny 127.0.0.0/8"], None, true),
            (&[], Some("127.0.0.1"), true),
        ] {
            let address = address.map(|text| text.parse().unwrap());
            assert_eq!(
                AccessRule::decision(&rules(rules_text), address).unwrap_or(true),
                wanted,
                "{rules_text:?} {address:?}"
            );
        }
    }
}
