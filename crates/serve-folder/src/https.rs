//! The directives of `--domain`: HTTPS with a certificate that comes by itself, redirects to it, and
//! fields for browsers. Without it, a server listens for every name and without TLS, or with the
//! certificate of `--tls`.

use super::conf_text::{CannotWrite, Conf, path, word};
use super::mediawiki;
use super::options::ServeOptions;

/// How long browsers come by HTTPS only: half a year.
const STRICT_SECONDS: u32 = 15_768_000;
/// How long they try HTTP/3 first: a day.
const HTTP3_SECONDS: u32 = 86_400;
const HTTPS_PORT: u16 = 443;

/// Writes the issuer of the certificate.
pub(super) fn issuer(conf: &mut Conf, options: &ServeOptions) -> Result<(), CannotWrite> {
    let Some(https) = &options.https else {
        return Ok(());
    };
    conf.open(&format!("acme_issuer {}", word(&https.issuer)?));
    conf.line(&format!("uri {};", word(&https.directory)?));
    conf.line("accept_terms_of_service;");
    if let Some(email) = &https.email {
        conf.line(&format!("contact {};", word(email)?));
    }
    if let Some(file) = &https.authorities {
        conf.line(&format!("ssl_trusted_certificate {};", path(file)?));
    }
    conf.line(&format!("state_path {};", path(&https.state)?));
    conf.close();
    conf.gap();
    Ok(())
}

/// Writes the addresses and the names of a server.
pub(super) fn listen(conf: &mut Conf, options: &ServeOptions) -> Result<(), CannotWrite> {
    let Some(https) = &options.https else {
        let tls = options.local_certificate.as_ref().map_or("", |_| " ssl");
        for listen in &options.listen {
            conf.line(&format!("listen {}{tls} default_server;", word(listen)?));
        }
        conf.line("server_name _;");
        if let Some(certificate) = &options.local_certificate {
            conf.line("http2 on;");
            conf.line(&format!("ssl_certificate {};", path(certificate)?));
            conf.line(&format!("ssl_certificate_key {};", path(certificate)?));
        }
        return Ok(());
    };
    for listen in &options.listen {
        conf.line(&format!("listen {} ssl default_server;", word(listen)?));
    }
    for listen in quic_addresses(options) {
        conf.line(&format!("listen {} quic default_server;", word(listen)?));
    }
    conf.line("http2 on;");
    conf.line(&format!("server_name {};", https.domains.join(" ")));
    conf.line(&format!("acme_certificate {};", word(&https.issuer)?));
    conf.line("ssl_certificate $acme_certificate;");
    conf.line("ssl_certificate_key $acme_certificate_key;");
    conf.line("ssl_session_cache shared:tls:4m;");
    Ok(())
}

/// Returns the addresses for HTTP/3: a Unix socket has no datagrams that come from the network.
fn quic_addresses(options: &ServeOptions) -> impl Iterator<Item = &String> {
    let listens = options.listen.iter();
    listens.filter(|listen| !listen.starts_with("unix:"))
}

/// Writes the fields that browsers remember: that there is HTTP/3, which they try and do without if a
/// firewall keeps it away, and that there is TLS. They forget the latter unless the certificate is one
/// that they trust (RFC 6797 §8.1), so that a visit before the first one is there does no harm.
pub(super) fn remembered(conf: &mut Conf, options: &ServeOptions) {
    let Some(https) = &options.https else {
        return;
    };
    if quic_addresses(options).next().is_some() {
        let port = port(&options.listen);
        conf.line(&format!(
            "add_header Alt-Svc 'h3=\":{port}\"; ma={HTTP3_SECONDS}' always;"
        ));
    }
    if https.is_trusted {
        conf.line(&format!(
            "add_header Strict-Transport-Security max-age={STRICT_SECONDS} always;"
        ));
    }
}

/// Writes redirects of visitors without TLS to the same page with it. A name that this server does not
/// have leads to the first. `takes_purges`: an application sends its purges there.
pub(super) fn redirects(
    conf: &mut Conf,
    options: &ServeOptions,
    takes_purges: bool,
) -> Result<(), CannotWrite> {
    let Some(https) = &options.https else {
        return Ok(());
    };
    let port = port_of_urls(&options.listen);
    for (index, domain) in https.domains.iter().enumerate() {
        conf.gap();
        conf.open("server");
        for listen in &https.listen_http {
            let default = if index == 0 { " default_server" } else { "" };
            conf.line(&format!("listen {}{default};", word(listen)?));
        }
        conf.line(&format!("server_name {domain};"));
        let redirect = format!("return 301 https://{domain}{port}$request_uri;");
        match takes_purges {
            true => mediawiki::purges_without_tls(conf, &https.listen_http, &redirect),
            false => conf.line(&redirect),
        }
        conf.close();
    }
    Ok(())
}

/// Returns the port for URLs: empty for the usual one, else `:8443`.
pub fn port_of_urls(listen: &[String]) -> String {
    match port(listen) {
        HTTPS_PORT => String::new(),
        port => format!(":{port}"),
    }
}

fn port(listen: &[String]) -> u16 {
    let port = |listen: &String| listen.rsplit(':').next()?.parse().ok();
    listen.iter().find_map(port).unwrap_or(HTTPS_PORT)
}
