//! Paths of addresses: escapes, dots, and prefixes.

/// Writes bytes that may not stand in a path of an address as `%XX`.
pub fn escaped(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for &byte in path {
        match byte.is_ascii_alphanumeric() || b"/-._~$!&'()*+,;=:@".contains(&byte) {
            true => out.push(byte),
            false => out.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    out
}

/// Like [`escaped`], for a value that a pattern has taken: all but letters, digits and `_` is escaped.
pub fn escaped_value(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for &byte in value {
        match byte.is_ascii_alphanumeric() || byte == b'_' {
            true => out.push(byte),
            false => out.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    out
}

/// The path of an internal redirect as a path of files: decoded, without `.` and `..`, with single slashes. `None`
/// if Apache takes no such path.
pub fn resolved(path: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let [high, low, after @ ..] = rest else {
            return None;
        };
        let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
        if matches!(byte, 0 | b'/') {
            return None;
        }
        decoded.push(byte);
        rest = after;
    }
    if decoded.first() != Some(&b'/') || decoded.contains(&0) {
        return None;
    }
    let mut names: Vec<&[u8]> = Vec::new();
    let mut is_folder = false;
    for name in decoded.split(|byte| *byte == b'/') {
        is_folder = matches!(name, b"" | b"." | b"..");
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    let mut path = Vec::with_capacity(decoded.len());
    for name in &names {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if is_folder || names.is_empty() {
        path.push(b'/');
    }
    Some(path)
}

/// The scheme and the two slashes of a whole address; `None` for a path.
pub fn scheme_bytes(target: &[u8]) -> Option<usize> {
    let schemes: [&[u8]; 9] = [
        b"http://",
        b"https://",
        b"ftp://",
        b"ws://",
        b"wss://",
        b"ldap://",
        b"gopher://",
        b"fcgi://",
        b"unix:",
    ];
    let is_of = |scheme: &&&[u8]| {
        let begin = target.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    schemes.iter().find(is_of).map(|scheme| scheme.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved() {
        for (path, expected) in [
            ("/a/../b", Some("/b")),
            ("//a//./b/", Some("/a/b/")),
            ("/%41%2e", Some("/A.")),
            ("/a/..", Some("/")),
            ("/../a", None),
            ("/a%2fb", None),
            ("/a%2", None),
            ("a", None),
        ] {
            let found = resolved(path.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{path}");
        }
    }
}
