//! Table of the directives about certificates that come by themselves.

use super::declaration::*;
use super::{Context, Directive};

const ISSUER: &[Context] = &[Context::AcmeIssuer];

table! {
    _ = lines("accept_terms_of_service", ISSUER, (0, 0), "").text(
        "accepts the issuer's terms of service", "accept_terms_of_service;",
        "Most issuers want this before they make an account.");
    _ = lines("account_key", ISSUER, (1, 1), "ecdsa:256 | FILE").default("ecdsa:256").text(
        "sets the key of the account with the issuer", "account_key /etc/mayfly/acme-account.key;",
        "Without a file, a key is made and kept in `state_path`. A file has an ECDSA key (P-256) in PKCS #8 form.");
    _ = lines("acme_certificate", &[Context::Server], (1, MANY), "ISSUER [NAME ...] [key=ecdsa:256|ecdsa:384|ecdsa:521|rsa:2048|rsa:3072|rsa:4096]").text(
        "gets a certificate for the server and renews it", "acme_certificate letsencrypt example.org www.example.org;", "\
        The issuer is an `acme_issuer` block. Without names, those of `server_name` are used. `ssl_certificate \
        $acme_certificate` and `ssl_certificate_key $acme_certificate_key` use the certificate. Until it is there, a \
        self-signed one is used. It is renewed when the issuer suggests it, otherwise when a third of its lifetime \
        is left, without a reload and without closing connections. If that fails, it is tried again, and the error \
        log says why. Wildcards need `challenge dns-01`.");
    _ = lines("acme_issuer", HTTP, (1, 1), "NAME").block().repeats().text(
        "describes who issues certificates", "acme_issuer staging { uri https://acme-staging-v02.api.letsencrypt.org/directory; accept_terms_of_service; }",
        "The issuer speaks ACME (RFC 8555), as Let's Encrypt does. `uri` is required.");
    _ = lines("acme_shared_zone", HTTP, (1, 1), "zone=NAME:SIZE")
        .ignored("certificates need no shared memory here").text(
        "sets the memory for certificates in nginx", "acme_shared_zone zone=acme:1m;", "The line may be removed.");
    _ = lines("challenge", ISSUER, (1, 2), "http-01 | tls-alpn-01 | dns-01 COMMAND").default("http-01").text(
        "sets how the issuer is shown that a name belongs to this server", "challenge tls-alpn-01;", "\
        With `http-01`, the issuer asks for a file on port 80: some server must listen there without TLS. With \
        `tls-alpn-01`, it connects to port 443. With `dns-01`, the command sets a TXT record: it is run as `COMMAND \
        add NAME VALUE` before the issuer looks, and as `COMMAND remove NAME VALUE` afterwards, by the account that \
        starts the server. It should end with status 0 when all name servers have the record.");
    _ = lines("contact", ISSUER, (1, MANY), "URL ...").repeats().text(
        "sets whom the issuer may write to", "contact admin@example.org;",
        "An address without a scheme means `mailto:`.");
    _ = lines("external_account_key", ISSUER, (2, 2), "KID FILE | data:KEY").text(
        "binds the account to one that exists with the issuer", "external_account_key my-kid /etc/mayfly/eab.key;", "\
        Some issuers give their customers an identifier and a key (RFC 8555, section 7.3.4). The key is in \
        base64url.");
    _ = lines("profile", ISSUER, (1, 2), "NAME [require]").text(
        "sets the kind of certificate", "profile shortlived;", "\
        Issuers say which profiles they have, such as `shortlived` of Let's Encrypt. With `require`, no other \
        certificate is taken if the issuer does not have the profile.");
    _ = lines("ssl_trusted_certificate", ISSUER, (1, 1), "FILE").text(
        "sets the authorities that the issuer's own certificate is verified with", "ssl_trusted_certificate /etc/mayfly/issuer-ca.pem;",
        "Without it, those of the system are used. It is for issuers of one's own.");
    _ = lines("state_path", ISSUER, (1, 1), "PATH | off").text(
        "sets the folder for keys and certificates", "state_path /var/lib/mayfly/letsencrypt;", "\
        The folder is made with mode 0700, for the account that starts the server. Without the directive, it is \
        `acme_NAME` below the prefix. With `off`, everything is kept in memory, and each start asks for new \
        certificates, which issuers limit.");
    _ = lines("uri", ISSUER, (1, 1), "URL").text(
        "sets the URL of the issuer's directory", "uri https://acme-staging-v02.api.letsencrypt.org/directory;",
        "It begins with `https://`. Try things with the staging directory of the issuer first.");
}
