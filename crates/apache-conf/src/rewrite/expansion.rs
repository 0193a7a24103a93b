//! The texts of mod_rewrite in which something is put in: `%{HTTP_HOST}`, `$1` of the rule, `%1` of a condition.

/// A part of such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// `%{NAME}`, in the letters in which it was written.
    Variable(String),
    /// `$1`
    OfRule(usize),
    /// `%1`
    OfCondition(usize),
}

/// The parts of a text; `None` where it asks a map (`${map:key}`) or has no end.
pub fn parts(text: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        let digit = behind.chars().next().and_then(|it| it.to_digit(10));
        let (part, length) = match (letter, digit) {
            ('\\', _) => {
                let escaped = behind.chars().next();
                plain.push(escaped.unwrap_or('\\'));
                rest = &behind[escaped.map_or(0, char::len_utf8)..];
                continue;
            }
            ('$', Some(number)) => (Part::OfRule(number as usize), 2),
            ('%', Some(number)) => (Part::OfCondition(number as usize), 2),
            ('$', None) if behind.starts_with('{') => return None,
            ('%', None) if behind.starts_with('{') => {
                let end = rest.find('}')?;
                (Part::Variable(rest[2..end].to_owned()), end + 1)
            }
            _ => {
                plain.push(letter);
                rest = behind;
                continue;
            }
        };
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        parts.push(part);
        rest = &rest[length..];
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Some(parts)
}

/// The headers that mod_rewrite has as variables of their own.
const FIELDS: [&str; 7] = [
    "HTTP_ACCEPT",
    "HTTP_COOKIE",
    "HTTP_FORWARDED",
    "HTTP_HOST",
    "HTTP_PROXY_CONNECTION",
    "HTTP_REFERER",
    "HTTP_USER_AGENT",
];

/// Other variables that mean the same here.
const VARIABLES: [(&str, &str); 18] = [
    ("DOCUMENT_ROOT", "document_root"),
    ("ENV:HTTPS", "https"),
    ("QUERY_STRING", "args"),
    ("REMOTE_ADDR", "remote_addr"),
    ("REMOTE_PORT", "remote_port"),
    ("REMOTE_USER", "remote_user"),
    ("REQUEST_FILENAME", "request_filename"),
    ("REQUEST_METHOD", "request_method"),
    ("REQUEST_SCHEME", "scheme"),
    ("REQUEST_URI", "uri"),
    ("SCRIPT_FILENAME", "request_filename"),
    ("SCRIPT_NAME", "uri"),
    ("SERVER_ADDR", "server_addr"),
    ("SERVER_NAME", "host"),
    ("SERVER_PORT", "server_port"),
    ("SERVER_PROTOCOL", "server_protocol"),
    ("SSL:SSL_PROTOCOL", "ssl_protocol"),
    ("THE_REQUEST", "request"),
];

/// The name of the variable that has the same value, without its `$`.
///
/// # Errors
/// Why a text cannot be expanded.
pub fn variable(name: &str, is_environment: &dyn Fn(&str) -> bool) -> Result<String, String> {
    let upper = name.to_ascii_uppercase();
    if let Some((_, variable)) = VARIABLES.iter().find(|it| it.0 == upper) {
        return Ok((*variable).to_owned());
    }
    if FIELDS.contains(&upper.as_str()) {
        return Ok(upper.to_ascii_lowercase());
    }
    if let Some(field) = upper.strip_prefix("HTTP:") {
        return field_variable(field).ok_or_else(|| format!("{name} is no name of a field"));
    }
    if let Some(field) = upper.strip_prefix("HTTP_") {
        return Err(format!(
            "Apache has no variable {name}, which is always empty there; write %{{HTTP:{}}}",
            field.replace('_', "-")
        ));
    }
    match upper.strip_prefix("ENV:") {
        Some(_) if is_environment(&name[4..]) => Ok(environment(&name[4..])),
        Some(_) => Err(format!("no line that was translated sets {}", &name[4..])),
        None => Err(format!(
            "there is no variable with the value of %{{{name}}}"
        )),
    }
}

/// The variable of a field of the request, without its `$`.
pub fn field_variable(field: &str) -> Option<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_field = !field.is_empty() && field.bytes().all(is_name);
    is_field.then(|| format!("http_{}", field.to_ascii_lowercase().replace('-', "_")))
}

/// The variable for one of Apache's environment, without its `$`.
pub fn environment(name: &str) -> String {
    let letters = name.chars().map(|it| match it {
        'a'..='z' | '0'..='9' => it,
        'A'..='Z' => it.to_ascii_lowercase(),
        _ => '_',
    });
    format!("env_{}", letters.collect::<String>())
}

/// A variable, with braces where the next letter would be taken for a part of its name.
pub fn put(text: &mut String, variable: &str, next: Option<char>) {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    match next.is_some_and(is_part) {
        true => text.push_str(&format!("${{{variable}}}")),
        false => text.push_str(&format!("${variable}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_apart() {
        use Part::*;
        let text = |it: &str| Text(it.to_owned());
        for (written, expected) in [
            ("/a", Some(vec![text("/a")])),
            (
                "/$1x%2",
                Some(vec![text("/"), OfRule(1), text("x"), OfCondition(2)]),
            ),
            (
                "%{HTTP_HOST}%20",
                Some(vec![
                    Variable("HTTP_HOST".into()),
                    OfCondition(2),
                    text("0"),
                ]),
            ),
            (r"a\$1", Some(vec![text("a$1")])),
            ("${map:x}", None),
            ("%{A", None),
            ("%", Some(vec![text("%")])),
        ] {
            assert_eq!(parts(written), expected, "{written}");
        }
    }

    #[test]
    fn variables_have_the_names_of_nginx() {
        let knows = |name: &str| name == "bad_bot";
        for (name, expected) in [
            ("HTTP_HOST", Some("http_host")),
            ("http_user_agent", Some("http_user_agent")),
            ("HTTP:X-Forwarded-Proto", Some("http_x_forwarded_proto")),
            ("HTTP_X_FORWARDED_PROTO", None),
            ("HTTP:a b", None),
            ("ENV:bad_bot", Some("env_bad_bot")),
            ("ENV:other", None),
            ("TIME_YEAR", None),
        ] {
            assert_eq!(variable(name, &knows).ok().as_deref(), expected, "{name}");
        }
    }
}
