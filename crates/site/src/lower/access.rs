//! Lowers the directives for access and for the client's address: `allow`, `deny`,
//! `auth_basic`, `set_real_ip_from`, `trusted_proxy`, `valid_referers`.

use std::net::IpAddr;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::level::Level;
use super::values::{bytes, lower_bytes};
use crate::directives::constants::*;
use crate::model::*;

impl Lowering<'_> {
    pub fn access_rules(&mut self, level: &Level<'_>) -> Vec<AccessRule> {
        let mut rules = Vec::new();
        for node in level.list(&["allow", "deny"]) {
            let network = self.network(node.arg(0));
            rules.extend(network.map(|network| AccessRule {
                network,
                allow: node.name() == "allow",
            }));
        }
        rules
    }

    /// `all`, `unix:`, an address, or an address with `/BITS` or `/MASK`.
    pub fn network(&mut self, word: &Word) -> Option<Network> {
        match word.text.as_str() {
            "all" => return Some(Network::All),
            "unix:" => return Some(Network::Unix),
            _ => {}
        }
        let network = parse_network(word);
        match network {
            None => {
                self.refuse(
                    word.span,
                    format!("invalid parameter \"{word}\""),
                    "expected an address, a network such as 192.0.2.0/24, unix: or all",
                );
            }
            Some((_, true)) => {
                let message = format!("low address bits of {word} are meaningless");
                self.report(Diagnostic::warning(word.span, message));
            }
            Some(_) => {}
        }
        network.map(|(network, _)| network)
    }

    pub fn auth(&mut self, level: &Level<'_>) -> Option<AuthBasic> {
        let user_file = level.word("auth_basic_user_file");
        let file = user_file.map(|word| {
            let mut template = self.template(word);
            if !word.starts_with(['/', '$']) {
                let mut folder = self.options.conf_folder.to_string_lossy().into_owned();
                folder.push('/');
                let start = Template::literal(folder);
                template.parts.splice(0..0, start.parts);
            }
            template
        });
        let node = level.unless_off("auth_basic")?;
        let word = node.arg(0);
        let realm = self.template(word);
        if file.is_none() {
            self.report(
                Diagnostic::warning(
                    node.span(),
                    "\"auth_basic\" without \"auth_basic_user_file\"",
                )
                .label("without a file of users, everybody is let in without a password")
                .hint("name the file with the users"),
            );
        }
        Some(AuthBasic {
            realm,
            user_file: file?,
            folder: self.options.conf_folder.clone(),
        })
    }

    pub fn real_ip(&mut self, level: &Level<'_>) -> RealIp {
        if let Some(trusted) = self.trusted_proxy(level) {
            return trusted;
        }
        let nodes = level.all("set_real_ip_from").to_vec();
        let mut from = Vec::new();
        for node in nodes {
            let word = node.arg(0);
            if word.text == "all" {
                self.invalid(word, "parameter", "expected an address, a network or unix:");
                continue;
            }
            if parse_network(word).is_none() && word.text != "unix:" {
                // A host name: all its addresses.
                if let Ok(found) = (self.options.resolve)(word, 0) {
                    from.extend(found.iter().map(|it| whole(it.ip())));
                    continue;
                }
            }
            from.extend(self.network(word));
        }
        let header = match level.word("real_ip_header") {
            Some(word) if word.text == "proxy_protocol" => RealIpHeader::ProxyProtocol,
            Some(word) => RealIpHeader::Field(lower_bytes(word)),
            None => RealIpHeader::Field(bytes("x-real-ip")),
        };
        RealIp {
            from,
            header,
            recursive: self.value(level, REAL_IP_RECURSIVE),
            believes_forwarded: false,
        }
    }

    fn trusted_proxy(&mut self, level: &Level<'_>) -> Option<RealIp> {
        let nodes = level.all("trusted_proxy").to_vec();
        if nodes.is_empty() {
            return None;
        }
        let others = ["set_real_ip_from", "real_ip_header", "real_ip_recursive"];
        for node in others.iter().filter_map(|name| level.find(name)) {
            self.report(
                Diagnostic::error(
                    node.span(),
                    format!("\"{}\" cannot stand beside \"trusted_proxy\"", node.name()),
                )
                .label("trusted_proxy says already which proxies are trusted and which fields they send")
                .hint("keep one of the two"),
            );
        }
        let mut from = Vec::new();
        for word in nodes.iter().flat_map(|node| node.args()) {
            match word.text.as_str() {
                "all" => self.invalid(word, "parameter", "expected an address, a network or unix:"),
                _ => from.extend(self.network(word)),
            }
        }
        Some(RealIp {
            from,
            header: RealIpHeader::Field(bytes("x-forwarded-for")),
            recursive: true,
            believes_forwarded: true,
        })
    }

    pub fn valid_referers(&mut self, level: &Level<'_>) -> Option<ValidReferers> {
        let nodes = level.all("valid_referers").to_vec();
        if nodes.is_empty() {
            return None;
        }
        let mut referers = ValidReferers {
            none: false,
            blocked: false,
            names: Vec::new(),
            patterns: Vec::new(),
            host_patterns: Vec::new(),
        };
        for word in nodes.iter().flat_map(|node| node.args()) {
            match word.text.as_str() {
                "none" => referers.none = true,
                "blocked" => referers.blocked = true,
                "server_names" => self.push_own_names(word, &mut referers),
                text => match text.strip_prefix('~') {
                    Some(pattern) => referers.patterns.extend(self.pattern(word, pattern, true)),
                    None if text.contains("://") => {
                        self.invalid(word, "referer", "expected a name without its scheme");
                    }
                    None => push_referer(&mut referers.names, text),
                },
            }
        }
        Some(referers)
    }

    /// The names of the server, of which some may be patterns.
    fn push_own_names(&mut self, word: &Word, referers: &mut ValidReferers) {
        for name in self.server_names.clone() {
            match name.strip_prefix('~') {
                Some(pattern) => {
                    let pattern = self.pattern(word, pattern, true);
                    referers.host_patterns.extend(pattern);
                }
                None => push_referer(&mut referers.names, &name),
            }
        }
    }

    /// Lowers `secure_link*`: the nearest level that has one of its lines decides between
    /// the two forms.
    pub fn secure_link(&mut self, level: &Level<'_>) -> Option<SecureLink> {
        let names = ["secure_link", "secure_link_md5", "secure_link_secret"];
        let lines = level.list(&names);
        let secret = lines
            .iter()
            .find(|node| node.name() == "secure_link_secret");
        let Some(secret) = secret else {
            let link = self.optional_template(level, "secure_link");
            let text = self.optional_template(level, "secure_link_md5");
            return Some(SecureLink::Signed {
                link: link?,
                text: text?,
            });
        };
        if let Some(other) = lines.iter().find(|node| node.name() != secret.name()) {
            let message = format!(
                "\"secure_link_secret\" cannot be mixed with \"{}\"",
                other.name()
            );
            self.report(Diagnostic::error(other.span(), message).hint("keep one of the two forms"));
        }
        Some(SecureLink::Secret(bytes(&secret.arg(0).text)))
    }
}

/// Host in lower case, and the path from its first slash. `.example.org` is
/// the name itself and all below it.
fn push_referer(names: &mut Vec<RefererName>, text: &str) {
    let at = text.find('/').unwrap_or(text.len());
    let (host, path) = text.split_at_checked(at).unwrap_or((text, ""));
    if let Some(bare) = host.strip_prefix('.') {
        names.push((lower_bytes(bare), bytes(path)));
        names.push((lower_bytes(&format!("*{host}")), bytes(path)));
    } else {
        names.push((lower_bytes(host), bytes(path)));
    }
}

fn whole(address: IpAddr) -> Network {
    let address = address.to_canonical();
    let prefix_bits = if address.is_ipv4() { 32 } else { 128 };
    Network::Block {
        address,
        prefix_bits,
    }
}

/// The network, and whether bits below its mask were set (they are cleared).
pub(crate) fn parse_network(text: &str) -> Option<(Network, bool)> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match mask {
        None => most,
        Some(mask) => match mask.parse::<u8>() {
            Ok(bits) => bits,
            Err(_) => mask_bits(mask, &address)?,
        },
    };
    if bits > most {
        return None;
    }
    let cleared = match address {
        IpAddr::V4(it) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(it) & mask).into())
        }
        IpAddr::V6(it) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(it) & mask).into())
        }
    };
    Some((
        Network::Block {
            address: cleared,
            prefix_bits: bits,
        },
        cleared != address,
    ))
}

/// `255.255.255.0`
fn mask_bits(mask: &str, address: &IpAddr) -> Option<u8> {
    let mask: std::net::Ipv4Addr = mask.parse().ok().filter(|_| address.is_ipv4())?;
    let mask = u32::from(mask);
    let ones = mask.leading_ones();
    (mask.count_ones() == ones).then(|| u8::try_from(ones).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_addresses_with_bits_or_a_mask() {
        let block = |address: &str, prefix_bits| Network::Block {
            address: address.parse().unwrap(),
            prefix_bits,
        };
        let cases = [
            ("192.0.2.1", Some((block("192.0.2.1", 32), false))),
            ("192.0.2.0/24", Some((block("192.0.2.0", 24), false))),
            ("192.0.2.7/24", Some((block("192.0.2.0", 24), true))),
            (
                "192.0.2.0/255.255.255.0",
                Some((block("192.0.2.0", 24), false)),
            ),
            ("0.0.0.0/0", Some((block("0.0.0.0", 0), false))),
            ("2001:db8::/32", Some((block("2001:db8::", 32), false))),
            ("::/0", Some((block("::", 0), false))),
            ("192.0.2.0/33", None),
            ("192.0.2.0/255.0.255.0", None),
            ("example.org", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_network(text), expected, "{text}");
        }
    }
}
