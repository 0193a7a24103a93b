//! Rules about who is asked on behalf of a visitor, and whom the server believes.

use super::super::hazard::HazardSink;
use super::super::tree::{Block, LocationKind};
use super::super::values::{
    PREFIXES, address_is_local, capture_is_free, host_part, is_from_request, variables,
};

pub(super) fn proxy_to_any_host(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let pattern = block.outwards().find_map(|it| {
        it.location()
            .filter(|(kind, _)| *kind == LocationKind::Pattern)
    });
    let is_captured =
        |name: &str| pattern.is_some_and(|(_, pattern)| capture_is_free(pattern, name));
    let is_set = |name: &str| {
        let mut sets = block.outwards().flat_map(|level| level.own("set"));
        sets.any(|line| {
            matches!(line.args.as_slice(), [variable, value]
                if variable.trim_start_matches('$') == name && variables(host_part(value)).any(is_from_request))
        })
    };
    for line in PREFIXES
        .iter()
        .flat_map(|prefix| block.own(&format!("{prefix}_pass")).collect::<Vec<_>>())
    {
        let Some(word) = line.args.first() else {
            continue;
        };
        let is_chosen = |name: &str| {
            is_from_request(name) || name == "host" || is_captured(name) || is_set(name)
        };
        if variables(host_part(word)).any(is_chosen) {
            sink.say(
                word.span,
                format!("the visitor chooses the host in \"{}\" {word}", line.name),
                "the name of an upstream, or a map from what may be asked for to hosts",
            );
        }
    }
}

pub(super) fn proxy_slash(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    let Some((kind, text)) = block.location() else {
        return;
    };
    let Some(pass) = block
        .own("proxy_pass")
        .next()
        .and_then(|line| line.args.first())
    else {
        return;
    };
    let path = pass
        .split_once("://")
        .and_then(|(_, rest)| Some(rest.split_at(rest.find('/')?).1));
    if matches!(kind, LocationKind::Prefix | LocationKind::FirmPrefix)
        && !text.ends_with('/')
        && path.is_some_and(|path| path.ends_with('/') && path.len() > 1)
        && !pass.contains('$')
    {
        sink.insert(
            text,
            text.len(),
            "/",
            format!("location {text} with proxy_pass {pass}"),
            format!("location {text}/"),
        );
    }
}

pub(super) fn host_from_request(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for line in block.own("proxy_set_header") {
        if let [name, value] = line.args.as_slice()
            && name.eq_ignore_ascii_case("host")
            && value.text == "$http_host"
        {
            let write =
                "proxy_set_header Host $host;  or $host:$server_port where the port is part of it";
            sink.say(value.span, "proxy_set_header Host $http_host", write);
        }
    }
}

pub(super) fn real_ip_from_all(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for word in block.own("set_real_ip_from").flat_map(|line| &line.args) {
        if word.ends_with("/0") {
            sink.say(
                word.span,
                format!("set_real_ip_from {word}"),
                "the addresses of the proxies in front of this server",
            );
        }
    }
}

pub(super) fn resolver_external(block: Block<'_, '_>, sink: &mut HazardSink<'_>) {
    for word in block.own("resolver").flat_map(|line| &line.args) {
        let is_option = word.contains('=');
        let is_address = word.starts_with('[') || word.starts_with(|c: char| c.is_ascii_digit());
        if !is_option && is_address && !address_is_local(word) {
            sink.say(
                word.span,
                format!("resolver {word}"),
                "a resolver of this machine or network: resolver 127.0.0.53;",
            );
        }
    }
}
