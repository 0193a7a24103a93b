//! Lowers `proxy_ssl_*`: TLS on connections to upstreams.

use nginx_conf::Word;

use super::Lowering;
use super::level::Level;
use super::template::has_variables;
use super::values::{place_in, seconds, to_usize};
use crate::directives::constants::*;
use crate::model::*;

impl Lowering<'_> {
    /// The settings of a level. They are used if its upstream is an `https://` one.
    pub fn upstream_tls(&mut self, level: &Level<'_>, is_used: bool) -> Option<TlsId> {
        let certificate = file_name(level, "proxy_ssl_certificate");
        let key = file_name(level, "proxy_ssl_certificate_key");
        let cache = self.certificate_cache(level, "proxy_ssl_certificate_cache");
        let password_file = file_name(level, "proxy_ssl_password_file")
            .map(|word| self.path_beside_main_file(word));
        let verify = self.tls_verify(level, is_used);
        let (tls12, tls13) = self.tls_protocols(level);
        let settings = TlsSettings {
            verify,
            identity: self.tls_identity((certificate, key), cache, is_used),
            password_file,
            tls12,
            tls13,
            send_name: self.value(level, PROXY_SSL_SERVER_NAME),
            reuse_sessions: self.value(level, PROXY_SSL_SESSION_REUSE),
        };
        if !is_used {
            return None;
        }
        Some(TlsId(place_in(&mut self.declared.tls, settings)))
    }

    /// Lowers `proxy_ssl_verify` and the settings that it needs. Mistakes are reported where the
    /// settings are used.
    fn tls_verify(&mut self, level: &Level<'_>, is_used: bool) -> Option<TlsVerify> {
        let trusted = file_name(level, "proxy_ssl_trusted_certificate");
        let crl = file_name(level, "proxy_ssl_crl");
        let depth = to_usize(self.value(level, PROXY_SSL_VERIFY_DEPTH));
        if !self.value(level, PROXY_SSL_VERIFY) {
            return None;
        }
        let Some(trusted) = trusted else {
            if let Some(node) = level.find("proxy_ssl_verify").filter(|_| is_used) {
                self.refuse(
                    node.span(),
                    "no proxy_ssl_trusted_certificate for proxy_ssl_verify",
                    "without it no certificate can be trusted",
                );
            }
            return None;
        };
        Some(TlsVerify {
            trusted: self.path_beside_main_file(trusted),
            depth,
            crl: crl.map(|word| self.path_beside_main_file(word)),
        })
    }

    /// The certificate that the upstream is shown, and its key.
    fn tls_identity(
        &mut self,
        (certificate, key): (Option<&Word>, Option<&Word>),
        cache: Option<CertificateCache>,
        is_used: bool,
    ) -> Option<TlsIdentity> {
        let certificate = certificate?;
        let Some(key) = key else {
            if is_used {
                self.error(
                    certificate.span,
                    format!("no \"proxy_ssl_certificate_key\" is defined for certificate \"{certificate}\""),
                );
            }
            return None;
        };
        if has_variables(certificate) || has_variables(key) {
            return Some(TlsIdentity::OfRequest {
                chain: self.template(certificate),
                key: self.template(key),
                folder: self.path_beside_main_file(""),
                cache,
            });
        }
        Some(TlsIdentity::Files {
            chain: self.path_beside_main_file(certificate),
            key: self.path_beside_main_file(key),
        })
    }

    /// `*_certificate_cache off | max=N [inactive=TIME] [valid=TIME]`; `None`: off.
    pub fn certificate_cache(&mut self, level: &Level<'_>, name: &str) -> Option<CertificateCache> {
        let known = "max inactive valid off";
        let bounds = self.cache_bounds(level, name, seconds(10), known)?;
        Some(CertificateCache {
            max: bounds.max,
            inactive: bounds.inactive,
            valid: bounds.valid,
        })
    }

    /// Returns whether TLS 1.2 and TLS 1.3 are used. Older versions do not exist here.
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

/// The argument of a directive that names a file; an empty one means no file.
fn file_name<'t>(level: &Level<'t>, name: &str) -> Option<&'t Word> {
    level.word(name).filter(|word| !word.text.is_empty())
}
