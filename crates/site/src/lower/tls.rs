//! `proxy_ssl_*`: encrypted connections to upstreams.

use nginx_conf::Diagnostic;

use super::Lowering;
use super::level::Level;
use super::template::has_variables;
use super::values::to_usize;
use crate::model::*;

impl Lowering<'_> {
    /// The settings of a level; `is_used`: its upstream is an `https://` one.
    pub fn upstream_tls(&mut self, level: &Level<'_>, is_used: bool) -> Option<TlsId> {
        let file = |name: &str| {
            let node = level.find(name)?;
            (!node.arg(0).text.is_empty()).then(|| node.arg(0).clone())
        };
        let certificate = file("proxy_ssl_certificate");
        let key = file("proxy_ssl_certificate_key");
        for word in certificate.iter().chain(&key) {
            if has_variables(word) {
                self.invalid(
                    word,
                    "file",
                    "variables are not there yet in this directive",
                );
            }
        }
        let trusted = file("proxy_ssl_trusted_certificate").map(|word| self.path(&word));
        let crl = file("proxy_ssl_crl").map(|word| self.path(&word));
        let depth = to_usize(self.number(level, "proxy_ssl_verify_depth", 1));
        let verifies = self.flag(level, "proxy_ssl_verify", false);
        let verify = match (verifies, trusted) {
            (true, Some(trusted)) => Some(TlsVerify {
                trusted,
                depth,
                crl,
            }),
            (true, None) => {
                if let Some(node) = level.find("proxy_ssl_verify").filter(|_| is_used) {
                    self.report(
                        Diagnostic::error(
                            node.span(),
                            "no proxy_ssl_trusted_certificate for proxy_ssl_verify",
                        )
                        .label("without it no certificate can be trusted"),
                    );
                }
                None
            }
            (false, _) => None,
        };
        let (tls12, tls13) = self.tls_protocols(level);
        let settings = TlsSettings {
            verify,
            identity: match (certificate, key) {
                (Some(certificate), Some(key)) => Some((self.path(&certificate), self.path(&key))),
                (Some(certificate), None) => {
                    if is_used {
                        self.error(
                            certificate.span,
                            format!("no \"proxy_ssl_certificate_key\" is defined for certificate \"{certificate}\""),
                        );
                    }
                    None
                }
                _ => None,
            },
            tls12,
            tls13,
            send_name: self.flag(level, "proxy_ssl_server_name", false),
            reuse_sessions: self.flag(level, "proxy_ssl_session_reuse", true),
        };
        if !is_used {
            return None;
        }
        let known = self.tls.iter().position(|known| *known == settings);
        Some(TlsId(known.unwrap_or_else(|| {
            self.tls.push(settings);
            self.tls.len() - 1
        })))
    }

    /// Which of the two versions are spoken; the older ones are not there.
    fn tls_protocols(&mut self, level: &Level<'_>) -> (bool, bool) {
        let nodes = level.all("proxy_ssl_protocols").to_vec();
        if nodes.is_empty() {
            return (true, true);
        }
        let (mut tls12, mut tls13) = (false, false);
        for word in nodes.iter().flat_map(|node| node.args()) {
            let known = [
                ("SSLv2", 0),
                ("SSLv3", 0),
                ("TLSv1", 0),
                ("TLSv1.1", 0),
                ("TLSv1.2", 2),
                ("TLSv1.3", 3),
            ];
            match self.choice_of(word, &known) {
                Some(2) => tls12 = true,
                Some(3) => tls13 = true,
                _ => {}
            }
        }
        if !tls12 && !tls13 {
            if let Some(node) = nodes.first() {
                self.error(node.span(), "neither TLSv1.2 nor TLSv1.3 is named");
            }
            return (true, true);
        }
        (tls12, tls13)
    }
}
