//! Lowers `otel_*`: where traces are sent, and which requests are traced.

use std::sync::Arc;

use nginx_conf::{Diagnostic, Word};

use super::Lowering;
use super::level::Level;
use super::values::to_usize;
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

/// Attributes of one span or resource: the default bound of OpenTelemetry's SDKs.
const MAX_ATTRIBUTES: usize = 128;

/// Fields that the exporter sends itself, or that belong to the connection.
const OWN_FIELDS: [&str; 9] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The port of OTLP/HTTP. The address may mean it although its path was left out.
const HTTP_PORT: u16 = 4318;

impl Lowering<'_> {
    /// The exporter of the http block. Call this before `otel_trace`.
    pub fn otel_exporter(&mut self, level: &Level<'_>) {
        let name = level.word("otel_service_name").map(|word| &word.text);
        let name = name.map_or("unknown_service:mayfly", String::as_str);
        let mut resource = vec![("service.name".to_owned(), name.to_owned())];
        let attributes = level.own("otel_resource_attr").to_vec();
        self.check_number_of_attributes(&attributes);
        for node in attributes {
            let (name, value) = (&node.arg(0).text, &node.arg(1).text);
            match resource.iter_mut().find(|(known, _)| known == name) {
                // The service has a directive of its own, which goes before this.
                Some(_) if name == "service.name" && level.find("otel_service_name").is_some() => {}
                Some((_, known)) => known.clone_from(value),
                None => resource.push((name.clone(), value.clone())),
            }
        }
        let Some(node) = level.own("otel_exporter").first() else {
            return;
        };
        let block = Level::new(&node.children, None);
        let endpoint = match block.find("endpoint") {
            Some(node) => self.otel_endpoint(node.arg(0)),
            None => {
                let error = Diagnostic::error(node.span(), "no \"endpoint\" in otel_exporter");
                self.report(error.hint("as in endpoint http://127.0.0.1:4318/v1/traces;"));
                None
            }
        };
        let fields = block.own("header").to_vec();
        self.has_otel_exporter = true;
        let exporter = OtelExporter {
            // The error was reported, and nothing is served.
            endpoint: endpoint.unwrap_or(OtelEndpoint {
                host: String::new(),
                port: 0,
                is_tls: false,
                path: None,
            }),
            interval: self.value(&block, INTERVAL),
            batch_size: to_usize(self.value(&block, BATCH_SIZE)),
            batch_count: to_usize(self.value(&block, BATCH_COUNT)),
            trusted: self.file_beside_main_file(&block, "trusted_certificate"),
            fields: fields
                .into_iter()
                .filter_map(|node| self.otel_field(node))
                .collect(),
            resource,
        };
        if exporter.interval.is_zero()
            && let Some(node) = block.find("interval")
        {
            self.invalid(node.arg(0), "interval", "expected a time longer than 0");
        }
        self.declared.otel_exporter = Some(exporter);
    }

    fn otel_endpoint(&mut self, word: &Word) -> Option<OtelEndpoint> {
        let endpoint = match endpoint(word) {
            Ok(endpoint) => endpoint,
            Err(why) => {
                let error = Diagnostic::error(word.span, format!("invalid endpoint \"{word}\""));
                self.report(error.label(why).hint(
                    "http://127.0.0.1:4318/v1/traces is OTLP/HTTP, and 127.0.0.1:4317, without a \
                     path, is OTLP/gRPC",
                ));
                return None;
            }
        };
        if endpoint.port == HTTP_PORT && endpoint.path.is_none() {
            let message = "this endpoint has the port of OTLP/HTTP and is spoken to by gRPC";
            let scheme = if endpoint.is_tls { "https" } else { "http" };
            let url = format!("{scheme}://{}:{HTTP_PORT}/v1/traces", endpoint.host);
            self.report(
                Diagnostic::warning(word.span, message)
                    .label("it has no path")
                    .hint(format!("for OTLP/HTTP, write {url}")),
            );
        }
        Some(endpoint)
    }

    fn otel_field(&mut self, node: &Node<'_>) -> Option<(String, String)> {
        let (name, value) = (node.arg(0), node.arg(1));
        let lower = name.to_ascii_lowercase();
        let is_token_byte =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if lower.is_empty() || !lower.bytes().all(is_token_byte) {
            self.invalid(name, "name of a field", "expected letters, digits and -");
            return None;
        }
        if OWN_FIELDS.contains(&&*lower) || lower.starts_with("grpc-") {
            self.invalid(
                name,
                "name of a field",
                "the exporter sends this field itself",
            );
            return None;
        }
        if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            self.invalid(
                value,
                "value of a field",
                "expected ASCII without line breaks",
            );
            return None;
        }
        Some((lower, value.text.clone()))
    }

    /// Lowers `otel_*` of one level.
    pub fn otel_settings(&mut self, level: &Level<'_>) -> Option<Arc<OtelSettings>> {
        let trace = match level.find("otel_trace") {
            Some(node) => self.otel_trace(node),
            None => OtelTrace::Off,
        };
        let (extracts, injects) = self.value(level, OTEL_TRACE_CONTEXT);
        let span_name = self.optional_template(level, "otel_span_name");
        let attributes = level.all("otel_span_attr").to_vec();
        self.check_number_of_attributes(&attributes);
        let attributes = attributes.into_iter();
        let settings = OtelSettings {
            trace,
            extracts,
            injects,
            span_name,
            span_attributes: attributes
                .map(|node| (node.arg(0).text.clone(), self.template(node.arg(1))))
                .collect(),
        };
        let says_something = settings.begins_traces()
            || settings.span_name.is_some()
            || !settings.span_attributes.is_empty();
        says_something.then(|| Arc::new(settings))
    }

    fn otel_trace(&mut self, node: &Node<'_>) -> OtelTrace {
        let word = node.arg(0);
        let template = self.template(word);
        let trace = match template.as_constant() {
            None => OtelTrace::When(template),
            Some(b"on" | b"1") => OtelTrace::On,
            Some(b"off" | b"0") => OtelTrace::Off,
            Some(_) => {
                self.invalid(word, "value", "expected on, off or a variable");
                OtelTrace::Off
            }
        };
        if trace != OtelTrace::Off && !self.has_otel_exporter {
            let error = Diagnostic::error(node.span(), "there is no otel_exporter");
            self.report(error.label("traces cannot be sent anywhere").hint(
                "in the http block: otel_exporter { endpoint http://127.0.0.1:4318/v1/traces; }",
            ));
            // Once is enough.
            self.has_otel_exporter = true;
        }
        trace
    }

    fn check_number_of_attributes(&mut self, nodes: &[&Node<'_>]) {
        if let Some(node) = nodes.get(MAX_ATTRIBUTES) {
            let message = format!("more than {MAX_ATTRIBUTES} attributes");
            self.error(node.span(), message);
        }
    }
}

/// Parses `[http://|https://]HOST:PORT[/PATH]`; an error is the expected form.
fn endpoint(text: &str) -> Result<OtelEndpoint, &'static str> {
    let (is_tls, rest) = match text.split_once("://") {
        None => (false, text),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        Some(_) => return Err("expected http:// or https://"),
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (host, port) = authority.rsplit_once(':').ok_or("expected a port")?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']').ok_or("expected ]")?,
        None if host.contains(':') => return Err("expected [ ] around an IPv6 address"),
        None => host,
    };
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host_byte) {
        return Err("expected a name or an address");
    }
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|&port| is_number && port > 0);
    if !path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    {
        return Err("expected a path without spaces");
    }
    Ok(OtelEndpoint {
        host: host.to_owned(),
        port: port.ok_or("expected a port")?,
        is_tls,
        path: (!path.is_empty()).then(|| path.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_host_and_port_with_a_scheme_and_a_path_where_they_are_given() {
        let read = |text| {
            endpoint(text).map(|it| (it.is_tls, it.host, it.port, it.path.unwrap_or_default()))
        };
        for (text, is_tls, host, port, path) in [
            ("localhost:4317", false, "localhost", 4317, ""),
            ("HTTP://localhost:4317", false, "localhost", 4317, ""),
            (
                "https://otel.example.org:443",
                true,
                "otel.example.org",
                443,
                "",
            ),
            (
                "http://127.0.0.1:4318/v1/traces",
                false,
                "127.0.0.1",
                4318,
                "/v1/traces",
            ),
            (
                "[::1]:4318/v1/traces?a=b",
                false,
                "::1",
                4318,
                "/v1/traces?a=b",
            ),
            ("http://a:1/", false, "a", 1, "/"),
        ] {
            let wanted = (is_tls, host.to_owned(), port, path.to_owned());
            assert_eq!(read(text), Ok(wanted), "{text}");
        }
        for text in [
            "",
            "localhost",
            "http://localhost/v1/traces",
            "localhost:",
            "localhost:0",
            "localhost:+80",
            "localhost:65536",
            ":4317",
            "::1:4317",
            "[::1:4317",
            "a b:4317",
            "user@host:4317",
            "unix:///run/otel.sock",
            "ftp://a:1",
            "a:1/b c",
            "a:1/b#c",
            "a:1/\u{e9}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
