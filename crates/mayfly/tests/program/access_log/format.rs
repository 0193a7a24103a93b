//! The formats that are compared, and their lines made comparable.

use std::fmt::Write as _;

/// Variables of the second format. For those behind `?` only this counts: whether there is
/// a value, `-` or nothing.
#[rustfmt::skip]
const COLUMNS: &[&str] = &[
    "remote_addr", "remote_user", "request", "status", "?body_bytes_sent", "http_referer", "http_user_agent",
    "http_x_forwarded_for", "?request_length", "?request_time", "host", "server_name", "server_port",
    "server_protocol", "request_method", "uri", "document_uri", "args", "query_string", "is_args", "request_uri",
    "scheme", "https", "content_type", "content_length", "?upstream_addr", "upstream_status",
    "?upstream_response_time", "upstream_cache_status", "?upstream_response_length", "?gzip_ratio",
    "limit_req_status", "limit_conn_status", "sent_http_location", "sent_http_x_none", "http_none",
    "sent_http_allow", "sent_http_content_range", "cookie_a", "arg_a", "arg_none", "request_completion", "pipe",
    "connection_requests", "document_root", "request_filename", "request_body", "request_body_file", "proxy_host",
    "proxy_port", "proxy_add_x_forwarded_for", "fastcgi_script_name", "fastcgi_path_info", "realip_remote_addr",
    "realip_remote_port", "proxy_protocol_addr", "?msec", "?bytes_sent", "?request_id", "?time_local",
    "?time_iso8601", "remote_port", "server_addr", "slice_range", "ssl_protocol", "ssl_cipher", "http2", "made",
    "written", "limit_rate", "?hostname", "upstream_http_x_none", "sent_trailer_none", "http_host",
];

pub fn configuration(folder: &str, files: &str, closed: u16) -> String {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|name| format!("{0}=${0}", name.trim_start_matches('?')))
        .collect();
    let json: Vec<String> = [
        "request",
        "status",
        "http_user_agent",
        "args",
        "remote_user",
        "http_none",
    ]
    .iter()
    .map(|name| format!("\"{name}\":\"${name}\""))
    .collect();
    format!(
        "map $arg_a $made {{ default \"\"; 1 one; }}\n\
         log_format columns '{}';\n\
         log_format as_json escape=json '{{{}}}';\n\
         log_format as_it_is escape=none '$request|$http_user_agent|$http_none';\n\
         access_log {folder}/combined.log;\n\
         access_log {folder}/columns.log columns;\n\
         access_log {folder}/json.log as_json;\n\
         access_log {folder}/raw.log as_it_is;\n\
         limit_req_zone $server_name zone=slow:1m rate=1r/m;\n\
         server_tokens off; lingering_timeout 100ms; client_max_body_size 10; large_client_header_buffers 2 1k;\n\
         server {{\n listen unix:{folder}/http; server_name site.test;\n root {files};\n\
           set $written $arg_a;\n\
           location = /mark {{ return 204; }}\n\
           location /text {{ return 200 text; }}\n\
           location /moved {{ return 301 /text; }}\n\
           location /gone {{ return 410; }}\n\
           location /closed {{ return 444; }}\n\
           location /rewritten {{ rewrite ^ /a.txt?b=c last; }}\n\
           location /redirect {{ rewrite ^ /a.txt permanent; }}\n\
           location /denied {{ deny all; }}\n\
           location /asked {{ auth_basic site; auth_basic_user_file {files}/users; }}\n\
           location /page {{ error_page 404 = /a.txt; }}\n\
           location /slow {{ limit_req zone=slow; return 200; }}\n\
           location /down {{ proxy_pass http://127.0.0.1:{closed}; }}\n\
           location /internal {{ internal; }}\n\
         }}\n",
        columns.join("|"),
        json.join(",")
    )
}

/// Without control characters: the expected file is a text.
pub fn visible(line: &str) -> String {
    let shown = |char: char| match char.is_control() {
        true => char.escape_default().to_string(),
        false => char.to_string(),
    };
    line.chars().map(shown).collect()
}

/// Appends one line for each column that has a value.
pub fn columns(text: &mut String, line: &str) {
    let mut rest = line;
    for (at, name) in COLUMNS.iter().enumerate() {
        let start = format!("{}=", name.trim_start_matches('?'));
        rest = rest.strip_prefix(&start).unwrap_or(rest);
        let end = COLUMNS
            .get(at + 1)
            .and_then(|next| rest.find(&format!("|{}=", next.trim_start_matches('?'))));
        let (value, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind.strip_prefix('|').unwrap_or(behind);
        let shown = match (name.starts_with('?'), value) {
            (true, value) if !["", "-"].contains(&value) => "VALUE",
            (_, value) => value,
        };
        if shown != "-" {
            let _ = writeln!(text, "  {name} [{shown}]");
        }
    }
}

/// Without the time and, where a page of the server's own is sent, its length.
pub fn combined(line: &str) -> String {
    let start = line.find('[').unwrap_or(0);
    let end = line.find(']').unwrap_or(0);
    let (head, tail) = (&line[..start], &line[end.min(line.len())..]);
    let mut parts: Vec<String> = tail.split("\" ").map(str::to_owned).collect();
    if let Some(numbers) = parts.iter_mut().find(|part| {
        let mut words = part.split(' ');
        words
            .next()
            .is_some_and(|word| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit()))
    }) {
        let status = numbers[..3].to_owned();
        let rest: Vec<&str> = numbers.split(' ').skip(2).collect();
        let has_page = status.as_str() >= "300" && !numbers.starts_with("304 0");
        let length = if has_page {
            "N"
        } else {
            numbers.split(' ').nth(1).unwrap_or("")
        };
        *numbers = format!("{status} {length} {}", rest.join(" "));
    }
    format!("{head}{}", parts.join("\" "))
}
