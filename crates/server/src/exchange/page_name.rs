//! The names of pages in lists for the operator: addresses without what may be a secret.

use server_base::masked_path;

use crate::exchange::received_request::ReceivedRequest;

/// The bytes of a target that are looked at.
const MAX_NAMED_BYTES: usize = 300;
/// Bytes of a `User-Agent` that are shown.
const MAX_AGENT_BYTES: usize = 60;

/// Writes host and path of a page, with the names of its arguments. Their values may be secrets, and so may a part of
/// the path.
pub fn write_page_name(received: &ReceivedRequest, name: &mut Vec<u8>) {
    let target = received.target();
    let target = target.get(..MAX_NAMED_BYTES).unwrap_or(target);
    let (path, arguments) = match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, &[][..]),
    };
    name.clear();
    name.extend_from_slice(received.host());
    masked_path::put(path, path.len() == MAX_NAMED_BYTES, name);
    if arguments.is_empty() {
        return;
    }
    let mut separator = b'?';
    for argument in arguments.split(|&byte| byte == b'&') {
        name.push(separator);
        // Without a value the whole may be one.
        if let Some(end) = argument.iter().position(|&byte| byte == b'=') {
            // Joomla has a token in the place of a name.
            masked_path::put(&argument[..end], false, name);
            name.push(b'=');
        }
        name.push(b'*');
        separator = b'&';
    }
}

/// Returns the name of a page and the program that asks for it.
pub fn page_and_agent(received: &ReceivedRequest, agent: &[u8]) -> Box<str> {
    let mut name = Vec::new();
    write_page_name(received, &mut name);
    if !agent.is_empty() {
        name.extend_from_slice(b" by ");
        name.extend_from_slice(agent.get(..MAX_AGENT_BYTES).unwrap_or(agent));
    }
    let printable = |&byte: &u8| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '?',
    };
    name.iter().map(printable).collect()
}
