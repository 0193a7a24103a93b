//! Lowers the blocks that define variables from other values: `map`, `geo`, `split_clients`,
//! and `charset_map`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use nginx_conf::{Diagnostic, Directive, Word};

use super::Lowering;
use super::level::Level;
use super::server_names::{HostName, parse_name};
use super::values::{bytes, lower_bytes};
use crate::check::Node;
use crate::model::*;

impl Lowering<'_> {
    /// Declares the names first, so that each block may use the others.
    pub fn declare_made_variables(&mut self, level: &Level<'_>) {
        for (index, node) in level.own("map").iter().enumerate() {
            self.declare_made(node, Variable::Map(MapId(index)));
        }
        for (index, node) in level.own("geo").iter().enumerate() {
            self.declare_made(node, Variable::Geo(GeoId(index)));
        }
        for (index, node) in level.own("split_clients").iter().enumerate() {
            self.declare_made(node, Variable::SplitClients(SplitClientsId(index)));
        }
    }

    fn declare_made(&mut self, node: &Node<'_>, variable: Variable) {
        let Some(word) = node.args().last() else {
            return;
        };
        match word.strip_prefix('$').filter(|name| !name.is_empty()) {
            None => self.invalid(word, "variable name", "expected a name with $ before it"),
            Some(name) if Builtin::from_name(&name.to_ascii_lowercase()).is_some() => {
                self.refuse(
                    word.span,
                    format!("the duplicate \"{name}\" variable"),
                    "a built-in variable has this name",
                );
            }
            Some(name) => self.variables.declare(name, variable),
        }
    }

    pub fn variables_from_others(&mut self, level: &Level<'_>) {
        for node in level.own("map") {
            let map = self.map(node);
            self.declared.maps.push(map);
        }
        for node in level.own("geo") {
            let geo = self.geo(node);
            self.declared.geos.push(geo);
        }
        for node in level.own("split_clients") {
            let split = self.split_clients(node);
            self.declared.split_clients.push(split);
        }
        for node in level.own("charset_map") {
            let map = self.charset_map(node);
            self.declared.charset_maps.push(map);
        }
    }

    fn charset_map(&mut self, node: &Node<'_>) -> CharsetMap {
        let mut map = CharsetMap {
            from: bytes(node.arg(0)),
            to: bytes(node.arg(1)),
            pairs: Vec::new(),
        };
        if map.from.eq_ignore_ascii_case(b"utf-8") || map.from.eq_ignore_ascii_case(&map.to) {
            let expected = "expected a charset of single bytes, other than the second";
            self.invalid(node.arg(0), "charset", expected);
        }
        for entry in node.entries() {
            let pair = match entry.args.as_slice() {
                [to] => hex_bytes(&entry.name).zip(hex_bytes(to)),
                _ => None,
            };
            let is_whole = |to: &[u8]| match map.is_to_utf8() {
                true => std::str::from_utf8(to).is_ok_and(|text| text.chars().count() == 1),
                false => to.len() == 1,
            };
            match pair {
                Some((from, to)) if from.len() == 1 && is_whole(&to) => {
                    map.pairs
                        .extend(from.first().map(|&from| (from, to.into())));
                }
                _ => self.bad_entry(entry, "charset_map", "expected two codes in hexadecimal"),
            }
        }
        map
    }

    fn map(&mut self, node: &Node<'_>) -> Map {
        let mut map = Map {
            source: self.template(node.arg(0)),
            volatile: false,
            exact: ByteMap::default(),
            leading_wildcard: Vec::new(),
            trailing_wildcard: Vec::new(),
            hostnames: node
                .entries()
                .iter()
                .any(|it| it.name.text == "hostnames" && it.args.is_empty()),
            patterns: Vec::new(),
            default: Template::default(),
        };
        for entry in node.entries() {
            match (entry.name.text.as_str(), entry.args.as_slice()) {
                ("hostnames", []) => {}
                ("volatile", []) => map.volatile = true,
                ("default", [value]) if !entry.name.quoted => map.default = self.template(value),
                (_, [value]) if entry.block.is_none() => {
                    let value = self.template(value);
                    self.map_entry(&mut map, &entry.name, value);
                }
                _ => self.bad_entry(entry, "map", "expected KEY VALUE;"),
            }
        }
        let longest = |(name, _): &(Box<[u8]>, Template)| std::cmp::Reverse(name.len());
        map.leading_wildcard.sort_by_key(longest);
        map.trailing_wildcard.sort_by_key(longest);
        map
    }

    fn bad_entry(&mut self, entry: &Directive, of: &str, expected: &str) {
        let message = format!("invalid entry \"{}\" in \"{of}\"", entry.name);
        self.report(
            Diagnostic::error(entry.head(), message)
                .label(expected.to_owned())
                .hint("a value with spaces must be in quotes"),
        );
    }

    fn map_entry(&mut self, map: &mut Map, word: &Word, value: Template) {
        if let Some(pattern) = word.strip_prefix("~*") {
            let pattern = self.pattern(word, pattern, true);
            map.patterns.extend(pattern.map(|pattern| (pattern, value)));
            return;
        }
        if let Some(pattern) = word.strip_prefix('~') {
            let pattern = self.pattern(word, pattern, false);
            map.patterns.extend(pattern.map(|pattern| (pattern, value)));
            return;
        }
        // After a backslash, `default` and `~x` are plain keys.
        let key = word.strip_prefix('\\').unwrap_or(word);
        let name = match map.hostnames {
            true => parse_name(&key.to_ascii_lowercase()),
            false => None,
        };
        let is_new = match name {
            Some(HostName::Leading(name)) => add(&mut map.leading_wildcard, &name, value),
            Some(HostName::Trailing(name)) => add(&mut map.trailing_wildcard, &name, value),
            Some(HostName::Both(name)) => {
                let bare = name.strip_prefix('.').unwrap_or(&name);
                let exact = map.exact.insert(bytes(bare), value.clone()).is_none();
                add(&mut map.leading_wildcard, &name, value) && exact
            }
            Some(HostName::Exact(_)) | None => map.exact.insert(lower_bytes(key), value).is_none(),
        };
        if !is_new {
            self.error(word.span, format!("conflicting parameter \"{word}\""));
        }
    }

    fn geo(&mut self, node: &Node<'_>) -> Geo {
        let source = match node.args() {
            [source, _] => match source.strip_prefix('$') {
                Some(name) => self.variable(name, source.span),
                None => {
                    self.invalid(source, "variable name", "expected a name with $ before it");
                    Variable::Builtin(Builtin::RemoteAddr)
                }
            },
            _ => Variable::Builtin(Builtin::RemoteAddr),
        };
        let mut geo = Geo {
            source,
            networks: Vec::new(),
            ranges: Vec::new(),
            default: Box::default(),
            proxies: Vec::new(),
            proxy_recursive: false,
            has_place_for_others: true,
            volatile: false,
        };
        let uses_ranges = node
            .entries()
            .iter()
            .any(|it| it.name.text == "ranges" && it.args.is_empty());
        let mut networks = HashMap::new();
        for entry in node.entries() {
            match (entry.name.text.as_str(), entry.args.as_slice()) {
                ("ranges", []) => {}
                ("volatile", []) => geo.volatile = true,
                ("proxy_recursive", []) => geo.proxy_recursive = true,
                ("default", [value]) => geo.default = bytes(value),
                ("proxy", [network]) => geo.proxies.extend(self.network(network)),
                ("delete", [range]) if uses_ranges => self.geo_range(&mut geo, range, None),
                ("delete", [network]) => {
                    if let Some(network) = self.network(network) {
                        networks.remove(&key(network));
                    }
                }
                (_, [value]) if uses_ranges => self.geo_range(&mut geo, &entry.name, Some(value)),
                (_, [value]) => self.geo_network(&mut networks, &entry.name, value),
                _ => self.bad_entry(entry, "geo", "expected NETWORK VALUE;"),
            }
        }
        let mut keyed: Vec<_> = networks.into_iter().collect();
        // Longest prefix first; then by address, so that the order is always the same.
        keyed.sort_by_key(|(key, _)| (std::cmp::Reverse(key.1), key.0));
        geo.networks = keyed.into_iter().map(|(_, found)| found).collect();
        geo
    }

    /// Gives a range of addresses its value. Without a value (`delete`), the range is removed.
    fn geo_range(&mut self, geo: &mut Geo, range: &Word, value: Option<&Word>) {
        let Some((first, last)) = self.range(range) else {
            return;
        };
        let at = cut(&mut geo.ranges, first, last);
        if let Some(value) = value {
            geo.ranges.insert(at, (first, last, bytes(value)));
        }
    }

    fn geo_network(&mut self, networks: &mut NetworkValues, word: &Word, value: &Word) {
        let Some(network) = self.network(word) else {
            return;
        };
        let old = networks.insert(key(network), (network, bytes(value)));
        if old.is_some_and(|(_, old)| old != bytes(value)) {
            let message = format!("duplicate network \"{word}\", the last value wins");
            self.report(Diagnostic::warning(word.span, message));
        }
    }

    /// `192.0.2.0-192.0.2.255`
    fn range(&mut self, word: &Word) -> Option<(u32, u32)> {
        let address = |text: &str| text.parse::<Ipv4Addr>().ok().map(u32::from);
        let range = word
            .split_once('-')
            .and_then(|(first, last)| Some((address(first)?, address(last)?)))
            .filter(|(first, last)| first <= last);
        if range.is_none() {
            self.invalid(word, "range", "expected ADDRESS-ADDRESS");
        }
        range
    }

    fn split_clients(&mut self, node: &Node<'_>) -> SplitClients {
        let source = self.template(node.arg(0));
        let mut parts = Vec::new();
        let (mut total, mut bound) = (0_u64, 0_u64);
        for entry in node.entries() {
            let [value] = entry.args.as_slice() else {
                self.bad_entry(entry, "split_clients", "expected PERCENT VALUE;");
                continue;
            };
            let value = Template::literal(&value.text);
            if entry.name.text == "*" {
                parts.push((u32::MAX, value));
                continue;
            }
            let Some(hundredths) = percent(&entry.name).filter(|&it| it > 0) else {
                self.invalid(
                    &entry.name,
                    "percent value",
                    "expected a percentage, such as 0.5%, or *",
                );
                continue;
            };
            total += hundredths;
            if total > 10_000 {
                self.error(entry.name.span, "percent total is greater than 100%");
                break;
            }
            bound += hundredths * u64::from(u32::MAX) / 10_000;
            parts.push((u32::try_from(bound).unwrap_or(u32::MAX), value));
        }
        SplitClients { source, parts }
    }
}

/// `D18E`: the bytes of a character; four at most.
fn hex_bytes(word: &Word) -> Option<Vec<u8>> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let digits: Option<Vec<u8>> = word.as_bytes().iter().map(digit).collect();
    let digits = digits.filter(|digits| matches!(digits.len(), 1 | 2 | 4 | 6 | 8))?;
    Some(
        digits
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect(),
    )
}

fn add(list: &mut Vec<(Box<[u8]>, Template)>, name: &str, value: Template) -> bool {
    if list.iter().any(|(known, _)| **known == *name.as_bytes()) {
        return false;
    }
    list.push((bytes(name), value));
    true
}

/// Hundredths of a percent in `0.5%`.
fn percent(text: &str) -> Option<u64> {
    let text = text.strip_suffix('%')?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 2 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|&whole| whole <= 100)?;
    let fraction: u64 = format!("{fraction:0<2}").parse().ok()?;
    Some(whole * 100 + fraction)
}

/// The networks of a `geo` and their values.
type NetworkValues = HashMap<NetworkKey, (Network, Box<[u8]>)>;

/// Address and prefix of a network; no address for `unix:`.
type NetworkKey = (Option<IpAddr>, u8);

fn key(network: Network) -> NetworkKey {
    match network {
        Network::Block {
            address,
            prefix_bits,
        } => (Some(address), prefix_bits),
        Network::All => (Some(Ipv4Addr::UNSPECIFIED.into()), 0),
        Network::Unix => (None, 0),
    }
}

/// Removes `first..=last` from the ranges, and returns the index for a new range.
fn cut(ranges: &mut Vec<(u32, u32, Box<[u8]>)>, first: u32, last: u32) -> usize {
    let from = ranges.partition_point(|(_, end, _)| *end < first);
    let to = ranges.partition_point(|(start, _, _)| *start <= last);
    if from >= to {
        return from;
    }
    let mut kept = Vec::with_capacity(2);
    let mut before = 0;
    for (start, end, value) in ranges.drain(from..to) {
        if start < first {
            kept.push((start, first - 1, value.clone()));
            before = 1;
        }
        if end > last {
            kept.push((last + 1, end, value));
        }
    }
    ranges.splice(from..from, kept);
    from + before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_two_decimals_at_most() {
        let cases = [
            ("50%", Some(5000)),
            ("0.5%", Some(50)),
            ("0.05%", Some(5)),
            ("100%", Some(10_000)),
            ("0.005%", None),
            ("50", None),
            ("%", None),
            ("-1%", None),
        ];
        for (text, expected) in cases {
            assert_eq!(percent(text), expected, "{text}");
        }
    }

    #[test]
    fn later_ranges_win_and_none_overlap() {
        let mut ranges = Vec::new();
        for (first, last, value) in [(10, 20, "a"), (30, 40, "b"), (15, 35, "c"), (17, 18, "d")] {
            let at = cut(&mut ranges, first, last);
            ranges.insert(at, (first, last, bytes(value)));
        }
        let shown: Vec<String> = ranges
            .iter()
            .map(|(first, last, value)| format!("{first}-{last}{}", String::from_utf8_lossy(value)))
            .collect();
        assert_eq!(shown.join(" "), "10-14a 15-16c 17-18d 19-35c 36-40b");
    }
}
