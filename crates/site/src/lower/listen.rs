//! Lowers `listen`: addresses, options of sockets, and the default server of each address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use nginx_conf::{Diagnostic, Span, Word};

use super::Lowering;
use super::values::{parameter, to_u32};
use crate::check::Node;
use crate::model::*;

/// The largest number of ports in one `listen 8000-8100`.
const MAX_PORT_RANGE: u16 = 1024;

/// A line of a server, for one of its addresses.
struct ListenLine {
    address: ListenAddress,
    options: ListenOptions,
    /// Options of the socket were given.
    sets_options: bool,
    is_default: bool,
    span: Option<Span>,
}

/// A listener while lines of several servers are added to it.
struct ListenerDraft {
    listener: Listener,
    default: Option<Span>,
    options: Option<Span>,
    /// The servers behind the address, in order.
    servers: Vec<ServerId>,
    /// `ssl` or `http2` was given, on the lines so far.
    has_protocol: bool,
}

const PARAMETERS: &str = "default_server backlog reuseport deferred rcvbuf sndbuf ipv6only \
    so_keepalive proxy_protocol ssl http2 quic bind";

impl Lowering<'_> {
    /// One listener for each distinct address, with the names behind it.
    pub fn listeners(&mut self, servers: &[&Node<'_>], lowered: &[Server]) -> Vec<Listener> {
        let mut drafts: Vec<ListenerDraft> = Vec::new();
        let mut indexes = std::collections::HashMap::new();
        for (index, server) in servers.iter().enumerate() {
            let id = ServerId(index);
            let names = self.names_of(server);
            for listen in self.listens(server) {
                let span = listen.span.unwrap_or_else(|| server.span());
                let at = *indexes.entry(listen.address.clone()).or_insert_with(|| {
                    drafts.push(ListenerDraft {
                        listener: Listener {
                            address: listen.address.clone(),
                            options: ListenOptions::default(),
                            default_server: id,
                            names: ServerNames::default(),
                        },
                        default: None,
                        options: None,
                        servers: Vec::new(),
                        has_protocol: false,
                    });
                    drafts.len() - 1
                });
                if let Some(draft) = drafts.get_mut(at)
                    && self.join(draft, listen, id, span)
                {
                    self.add_names(&mut draft.listener, &names, id);
                }
            }
        }
        let has_tls =
            |draft: &&ListenerDraft| draft.listener.options.ssl || draft.listener.options.quic;
        for draft in drafts.iter().filter(has_tls) {
            self.needs_certificates(draft, servers, lowered);
        }
        drafts.into_iter().map(|draft| draft.listener).collect()
    }

    /// The default server of an address with `ssl` must have a certificate. If it rejects
    /// handshakes instead, the others must.
    fn needs_certificates(
        &mut self,
        draft: &ListenerDraft,
        servers: &[&Node<'_>],
        lowered: &[Server],
    ) {
        let tls_of = |id: ServerId| {
            let id = lowered.get(id.0).and_then(|server| server.tls);
            id.map(|id| &self.declared.server_tls[id.0])
        };
        let kind = if draft.listener.options.quic {
            "quic"
        } else {
            "ssl"
        };
        let default = draft.listener.default_server;
        if draft.listener.options.quic
            && tls_of(default).is_some_and(|tls| !tls.tls13)
            && let Some(node) = servers.get(default.0)
        {
            let message =
                "\"ssl_protocols\" must enable TLSv1.3 for the \"listen ... quic\" directive";
            self.refuse(node.span(), message, "in this server");
            return;
        }
        let without = match tls_of(default) {
            None => Some(default),
            Some(tls)
                if tls.rejects_handshake
                    && tls.certificates.is_empty()
                    && tls.named_certificates.is_empty() =>
            {
                let mut others = draft.servers.iter();
                others.find(|id| tls_of(**id).is_none()).copied()
            }
            Some(_) => None,
        };
        if let Some(node) = without.and_then(|id| servers.get(id.0)) {
            self.refuse(
                node.span(),
                format!(
                    "no \"ssl_certificate\" is defined for the \"listen ... {kind}\" directive"
                ),
                "this server needs one",
            );
        }
    }

    /// Adds a line of server `id`; false if the server has this address already.
    fn join(
        &mut self,
        draft: &mut ListenerDraft,
        listen: ListenLine,
        id: ServerId,
        span: Span,
    ) -> bool {
        let shown = show(&listen.address);
        if draft.servers.last() == Some(&id) {
            self.error(span, format!("a duplicate listen {shown}"));
            return false;
        }
        draft.servers.push(id);
        if listen.is_default {
            if let Some(first) = draft.default {
                self.report(
                    Diagnostic::error(span, format!("a duplicate default server for {shown}"))
                        .label("the second")
                        .note_at(first, "the first"),
                );
            } else {
                draft.default = Some(span);
                draft.listener.default_server = id;
            }
        }
        self.join_protocols(draft, &listen, span);
        if listen.sets_options {
            if let Some(first) = draft.options {
                self.report(
                    Diagnostic::error(span, format!("duplicate listen options for {shown}"))
                        .label("options of a socket are written once")
                        .note_at(first, "they are given here"),
                );
            } else {
                let ListenOptions {
                    proxy_protocol,
                    ssl,
                    http2,
                    quic,
                    ..
                } = draft.listener.options;
                draft.options = Some(span);
                draft.listener.options = ListenOptions {
                    proxy_protocol,
                    ssl,
                    http2,
                    quic,
                    ..listen.options
                };
            }
        }
        true
    }

    /// Joins the protocols of an address: one server's options hold for all servers behind
    /// it.
    fn join_protocols(&mut self, draft: &mut ListenerDraft, listen: &ListenLine, span: Span) {
        let (known, new) = (&mut draft.listener.options, &listen.options);
        let has_protocol = new.ssl || new.http2;
        if draft.has_protocol && has_protocol && (known.ssl, known.http2) != (new.ssl, new.http2) {
            let message = format!("protocol options redefined for {}", show(&listen.address));
            self.report(
                Diagnostic::warning(span, message)
                    .label("the options of all servers of this address hold")
                    .cause("protocol options redefined"),
            );
        }
        draft.has_protocol |= has_protocol;
        known.proxy_protocol |= new.proxy_protocol;
        known.ssl |= new.ssl;
        known.http2 |= new.http2;
        known.quic |= new.quic;
    }

    fn listens(&mut self, server: &Node<'_>) -> Vec<ListenLine> {
        let mut lines = self.listen_lines(server);
        if self.says_ssl_on(server) {
            let tcp = lines.iter_mut().filter(|line| !line.options.quic);
            tcp.for_each(|line| line.options.ssl = true);
        }
        lines
    }

    /// `ssl on`, which nginx had before `listen ... ssl` and removed in 1.25.1.
    fn says_ssl_on(&mut self, server: &Node<'_>) -> bool {
        let Some(node) = server.children.iter().find(|node| node.name() == "ssl") else {
            return false;
        };
        let message =
            "the \"ssl\" directive is deprecated, use the \"listen ... ssl\" directive instead";
        self.report(
            Diagnostic::warning(node.span(), message)
                .label("nginx 1.25.1 has removed it")
                .cause("ssl on"),
        );
        match node.arg(0).text.as_str() {
            "on" => true,
            "off" => false,
            _ => {
                self.invalid(node.arg(0), "value", "expected on or off");
                false
            }
        }
    }

    fn listen_lines(&mut self, server: &Node<'_>) -> Vec<ListenLine> {
        let lines: Vec<&Node<'_>> = server
            .children
            .iter()
            .filter(|node| node.name() == "listen")
            .collect();
        if lines.is_empty() {
            let port = if self.options.privileged { 80 } else { 8000 };
            return vec![ListenLine {
                address: ListenAddress::Tcp((Ipv4Addr::UNSPECIFIED, port).into()),
                options: ListenOptions::default(),
                sets_options: false,
                is_default: false,
                span: None,
            }];
        }
        lines
            .into_iter()
            .flat_map(|node| self.listen(node))
            .collect()
    }

    fn listen(&mut self, node: &Node<'_>) -> Vec<ListenLine> {
        let mut addresses = self.listen_addresses(node.arg(0));
        let mut options = ListenOptions::default();
        let mut sets_options = false;
        let mut is_default = false;
        for word in node.args().iter().skip(1) {
            match word.text.as_str() {
                "default_server" | "default" => is_default = true,
                "proxy_protocol" => options.proxy_protocol = true,
                "ssl" => options.ssl = true,
                "quic" => options.quic = true,
                "http2" => {
                    options.http2 = true;
                    self.report(
                        Diagnostic::warning(
                            word.span,
                            "the \"listen ... http2\" directive is deprecated, use the \"http2\" directive instead",
                        )
                        .label("it works for all servers of this address")
                        .cause("listen ... http2"),
                    );
                }
                _ => sets_options |= self.listen_option(word, &mut options),
            }
        }
        if options.quic && !self.make_udp(node, &mut addresses, &options) {
            return Vec::new();
        }
        addresses
            .into_iter()
            .map(|address| ListenLine {
                address,
                options: options.clone(),
                sets_options,
                is_default,
                span: Some(node.span()),
            })
            .collect()
    }

    /// The addresses of a line with `quic`, which is over UDP; false if that cannot be.
    fn make_udp(
        &mut self,
        node: &Node<'_>,
        addresses: &mut [ListenAddress],
        options: &ListenOptions,
    ) -> bool {
        let conflicts = [
            ("ssl", options.ssl),
            ("http2", options.http2),
            ("proxy_protocol", options.proxy_protocol),
        ];
        if let Some((other, _)) = conflicts.iter().find(|(_, is_set)| *is_set) {
            let message = format!("\"quic\" parameter is incompatible with \"{other}\"");
            let hint = "write another \"listen\" for it";
            self.report(Diagnostic::error(node.span(), message).hint(hint));
            return false;
        }
        for address in addresses {
            match address {
                ListenAddress::Tcp(at) => *address = ListenAddress::Udp(*at),
                _ => {
                    let message = "\"quic\" needs an address with a port";
                    self.error(node.span(), message);
                    return false;
                }
            }
        }
        true
    }

    /// Reads one parameter; true if it is an option of the socket.
    fn listen_option(&mut self, word: &Word, options: &mut ListenOptions) -> bool {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.text.as_str(), None),
        };
        match (name, value) {
            ("bind", None) => {}
            ("reuseport", None) => options.reuseport = true,
            ("backlog", Some("-1")) => {}
            ("backlog", Some(text)) => options.backlog = self.number_in(word, text).map(to_u32),
            ("rcvbuf", Some(text)) => options.rcvbuf = self.size_in(word, text),
            ("sndbuf", Some(text)) => options.sndbuf = self.size_in(word, text),
            ("ipv6only", Some("on")) => options.ipv6only = Some(true),
            ("ipv6only", Some("off")) => options.ipv6only = Some(false),
            ("so_keepalive", Some("on")) => options.so_keepalive = Some(true),
            ("so_keepalive", Some("off")) => options.so_keepalive = Some(false),
            ("so_keepalive", Some(text)) if text.split(':').count() == 3 => {
                options.so_keepalive = Some(true);
            }
            ("fastopen" | "setfib" | "accept_filter", Some(_))
            | ("multipath" | "deferred", None) => {
                let message = format!("parameter \"{name}\" of \"listen\" is ignored");
                self.report(Diagnostic::warning(word.span, message));
            }
            ("spdy", None) => {
                let why = "there is no SPDY; write \"http2 on\"";
                self.report(
                    Diagnostic::warning(word.span, "parameter \"spdy\" of \"listen\" is ignored")
                        .label(why)
                        .cause(why),
                );
                return false;
            }
            _ => {
                self.unknown_parameter(word, name, "listen", PARAMETERS);
                return false;
            }
        }
        true
    }

    fn listen_addresses(&mut self, word: &Word) -> Vec<ListenAddress> {
        if let Some(path) = word.strip_prefix("unix:") {
            if path.is_empty() {
                self.invalid(word, "address", "expected unix:/path");
                return Vec::new();
            }
            return vec![ListenAddress::Unix(PathBuf::from(path))];
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) && port_range(word).is_none() {
            self.invalid(word, "port", "expected 1 to 65535");
            return Vec::new();
        }
        let Some((host, ports)) = split_address(word) else {
            self.invalid(word, "address", "expected PORT, ADDRESS:PORT or unix:/path");
            return Vec::new();
        };
        let Some(hosts) = self.listen_hosts(word, host) else {
            return Vec::new();
        };
        let mut addresses = Vec::new();
        for host in hosts {
            for port in ports.clone() {
                addresses.push(ListenAddress::Tcp(SocketAddr::new(host, port)));
            }
        }
        addresses
    }

    fn listen_hosts(&mut self, word: &Word, host: &str) -> Option<Vec<IpAddr>> {
        if host.is_empty() || host == "*" {
            return Some(vec![Ipv4Addr::UNSPECIFIED.into()]);
        }
        if let Some(inner) = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            if let Ok(address) = inner.parse::<Ipv6Addr>() {
                return Some(vec![address.into()]);
            }
            self.invalid(word, "IPv6 address", "expected [ADDRESS]:PORT");
            return None;
        }
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return Some(vec![address.into()]);
        }
        match (self.options.resolve)(host, 0) {
            Ok(found) if !found.is_empty() => {
                let mut hosts: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
                hosts.dedup();
                Some(hosts)
            }
            _ => {
                self.refuse(
                    word.span,
                    format!("host not found in \"{word}\" of the \"listen\" directive"),
                    "no address of this machine",
                );
                None
            }
        }
    }
}

/// Host (perhaps empty) and ports of `80`, `host`, `host:80`, `host:80-90`.
fn split_address(text: &str) -> Option<(&str, std::ops::RangeInclusive<u16>)> {
    if let Some(ports) = port_range(text) {
        return Some(("", ports));
    }
    let host_end = match text.strip_prefix('[') {
        Some(_) => text.find(']')? + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at_checked(host_end)?;
    if host.is_empty() {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(ports) => Some((host, port_range(ports)?)),
        None if rest.is_empty() => Some((host, 80..=80)),
        None => None,
    }
}

fn port_range(text: &str) -> Option<std::ops::RangeInclusive<u16>> {
    let port = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|&port| digits && port > 0)
    };
    match text.split_once('-') {
        Some((first, last)) => {
            let (first, last) = (port(first)?, port(last)?);
            (first <= last && last - first < MAX_PORT_RANGE).then_some(first..=last)
        }
        None => port(text).map(|port| port..=port),
    }
}

/// Formats an address like nginx.
pub(crate) fn show(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) | ListenAddress::Udp(address) => address.to_string(),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// `PREFIX=VALUE` parameters of a line after its first arguments.
pub(crate) fn find_parameter<'w>(words: &'w [Word], name: &str) -> Option<(&'w Word, &'w str)> {
    words
        .iter()
        .find_map(|word| Some((word, parameter(word, name)?)))
}
