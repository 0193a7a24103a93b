//! The variables of conditions: `%{REQUEST_URI}`, `%{HTTP:Name}`, `%{ENV:name}`.

use crate::round::Round;

/// Returns the value of a variable: empty if it has none, `None` if it is not known here.
pub fn value(round: &Round<'_>, name: &str) -> Option<Vec<u8>> {
    let visit = round.visit;
    if let Some((kind, rest)) = name.split_once(':') {
        return match kind.to_ascii_uppercase().as_str() {
            "ENV" | "REQENV" => Some(environment(round, rest)),
            "HTTP" | "REQ" | "REQ_NOVARY" => Some((visit.field)(rest).unwrap_or_default()),
            "SSL" => ssl(round, rest),
            _ => None,
        };
    }
    let text = |value: &str| Some(value.as_bytes().to_vec());
    let number = |value: u32, width: usize| Some(format!("{value:0width$}").into_bytes());
    let field = |name: &str| Some((visit.field)(name).unwrap_or_default());
    let [year, month, day, hour, minute, second, weekday] = visit.time.1;
    match name.to_ascii_uppercase().as_str() {
        "REQUEST_URI" => Some(round.path.clone()),
        "REQUEST_FILENAME" | "SCRIPT_FILENAME" => Some(round.file.name.clone()),
        "PATH_INFO" => Some(round.file.path_info.clone()),
        "QUERY_STRING" => Some(round.args.clone().unwrap_or_default()),
        "REQUEST_METHOD" => text(round.method),
        "THE_REQUEST" => Some(visit.request_line.to_vec()),
        "SERVER_PROTOCOL" => {
            let line = visit.request_line;
            let at = line
                .iter()
                .rposition(|byte| *byte == b' ')
                .map_or(0, |it| it + 1);
            Some(line[at..].to_vec())
        }
        "REQUEST_SCHEME" => text(visit.scheme),
        "HTTPS" => text(if visit.scheme == "https" { "on" } else { "off" }),
        "DOCUMENT_ROOT" | "CONTEXT_DOCUMENT_ROOT" => Some(round.root.to_vec()),
        "CONTEXT_PREFIX" | "REMOTE_IDENT" | "SERVER_ADMIN" => text(""),
        "HTTP_HOST" => Some(visit.host.to_vec()),
        "SERVER_NAME" => Some(without_port(visit.host).to_vec()),
        "SERVER_PORT" => text(&visit.port.to_string()),
        "SERVER_ADDR" => text(
            &visit
                .server_address
                .map_or(String::new(), |it| it.to_string()),
        ),
        "SERVER_SOFTWARE" => text("Apache"),
        "REMOTE_ADDR" | "REMOTE_HOST" | "CONN_REMOTE_ADDR" => text(
            &visit
                .client
                .map_or(String::new(), |it| it.to_canonical().to_string()),
        ),
        "REMOTE_USER" => Some(round.disk.user().unwrap_or_default().into_bytes()),
        "AUTH_TYPE" => text(""),
        "HTTP_COOKIE" => field("Cookie"),
        "HTTP_USER_AGENT" => field("User-Agent"),
        "HTTP_REFERER" => field("Referer"),
        "HTTP_FORWARDED" => field("Forwarded"),
        "HTTP_PROXY_CONNECTION" => field("Proxy-Connection"),
        "HTTP_ACCEPT" => field("Accept"),
        "IPV6" => text(match visit.client {
            Some(client) if client.to_canonical().is_ipv6() => "on",
            _ => "off",
        }),
        "IS_SUBREQ" => text(if round.is_lookup { "true" } else { "false" }),
        "REQUEST_STATUS" => text(""),
        "TIME_YEAR" => number(year, 4),
        "TIME_MON" => number(month, 2),
        "TIME_DAY" => number(day, 2),
        "TIME_HOUR" => number(hour, 2),
        "TIME_MIN" => number(minute, 2),
        "TIME_SEC" => number(second, 2),
        "TIME_WDAY" => number(weekday, 1),
        "TIME" => {
            Some(format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}").into_bytes())
        }
        "API_VERSION" | "REMOTE_PORT" | "REQUEST_LOG_ID" | "CONN_LOG_ID" | "HANDLER" => None,
        // Apache knows no other, and takes the empty text for it.
        _ => text(""),
    }
}

fn environment(round: &Round<'_>, name: &str) -> Vec<u8> {
    if let Some(value) = round.variables.get(name) {
        return value.clone();
    }
    match name {
        "HTTPS" if round.visit.scheme == "https" => b"on".to_vec(),
        _ => Vec::new(),
    }
}

/// Without a certificate of the client, its parts are empty.
fn ssl(round: &Round<'_>, name: &str) -> Option<Vec<u8>> {
    match name {
        "HTTPS" => value(round, "HTTPS"),
        _ if round.visit.scheme != "https" => Some(Vec::new()),
        _ => None,
    }
}

fn without_port(host: &[u8]) -> &[u8] {
    let colon = host.iter().rposition(|byte| *byte == b':');
    match colon {
        Some(colon) if !host.ends_with(b"]") => &host[..colon],
        _ => host,
    }
}
