//! Table of the directives about certificates that come by themselves.

use super::{Context, Directive};

const ISSUER: &[Context] = &[Context::AcmeIssuer];

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("accept_terms_of_service", ISSUER)
        .takes(0, 0, "")
        .short("accepts the issuer's terms of service")
        .long("Most issuers want this before they make an account.")
        .example("accept_terms_of_service;"),
    Directive::new("account_key", ISSUER)
        .takes(1, 1, "ecdsa:256 | FILE")
        .default("ecdsa:256")
        .short("sets the key of the account with the issuer")
        .long("\
            Without a file, a key is made and kept in `state_path`. A file has an ECDSA key (P-256) in \
            PKCS #8 form.")
        .example("account_key /etc/mayfly/acme-account.key;"),
    Directive::new("acme_certificate", &[Context::Server])
        .takes(1, usize::MAX, "ISSUER [NAME ...] [key=ecdsa:256|ecdsa:384|ecdsa:521|rsa:2048|rsa:3072|rsa:4096]")
        .short("gets a certificate for the server and renews it")
        .long("\
            The issuer is an `acme_issuer` block. Without names, those of `server_name` are used. \
            `ssl_certificate $acme_certificate` and `ssl_certificate_key $acme_certificate_key` use the \
            certificate. Until it is there, a self-signed one is used. It is renewed when the issuer \
            suggests it, otherwise when a third of its lifetime is left, without a reload and without \
            closing connections. If that fails, it is tried again, and the error log says why. Wildcards \
            need `challenge dns-01`.")
        .example("acme_certificate letsencrypt example.org www.example.org;"),
    Directive::new("acme_issuer", &[Context::Http])
        .takes(1, 1, "NAME").block().repeats()
        .short("describes who issues certificates")
        .long("\
            The issuer speaks ACME (RFC 8555), as Let's Encrypt does. `uri` is required.")
        .example("acme_issuer staging { uri https://acme-staging-v02.api.letsencrypt.org/directory; accept_terms_of_service; }"),
    Directive::new("acme_shared_zone", &[Context::Http])
        .takes(1, 1, "zone=NAME:SIZE")
        .ignored("certificates need no shared memory here")
        .short("sets the memory for certificates in nginx")
        .long("The line may be removed.")
        .example("acme_shared_zone zone=acme:1m;"),
    Directive::new("challenge", ISSUER)
        .takes(1, 2, "http-01 | tls-alpn-01 | dns-01 COMMAND")
        .default("http-01")
        .short("sets how the issuer is shown that a name belongs to this server")
        .long("\
            With `http-01`, the issuer asks for a file on port 80: some server must listen there without \
            TLS. With `tls-alpn-01`, it connects to port 443. With `dns-01`, the command sets a TXT \
            record: it is run as `COMMAND add NAME VALUE` before the issuer looks, and as `COMMAND remove \
            NAME VALUE` afterwards, by the account that starts the server. It should end with status 0 \
            when all name servers have the record.")
        .example("challenge tls-alpn-01;"),
    Directive::new("contact", ISSUER)
        .takes(1, usize::MAX, "URL ...").repeats()
        .short("sets whom the issuer may write to")
        .long("An address without a scheme means `mailto:`.")
        .example("contact admin@example.org;"),
    Directive::new("external_account_key", ISSUER)
        .takes(2, 2, "KID FILE | data:KEY")
        .short("binds the account to one that exists with the issuer")
        .long("\
            Some issuers give their customers an identifier and a key (RFC 8555, section 7.3.4). The key \
            is in base64url.")
        .example("external_account_key my-kid /etc/mayfly/eab.key;"),
    Directive::new("profile", ISSUER)
        .takes(1, 2, "NAME [require]")
        .short("sets the kind of certificate")
        .long("\
            Issuers say which profiles they have, such as `shortlived` of Let's Encrypt. With `require`, \
            no other certificate is taken if the issuer does not have the profile.")
        .example("profile shortlived;"),
    Directive::new("ssl_trusted_certificate", ISSUER)
        .takes(1, 1, "FILE")
        .short("sets the authorities that the issuer's own certificate is verified with")
        .long("Without it, those of the system are used. It is for issuers of one's own.")
        .example("ssl_trusted_certificate /etc/mayfly/issuer-ca.pem;"),
    Directive::new("state_path", ISSUER)
        .takes(1, 1, "PATH | off")
        .short("sets the folder for keys and certificates")
        .long("\
            The folder is made with mode 0700, for the account that starts the server. Without the \
            directive, it is `acme_NAME` below the prefix. With `off`, everything is kept in memory, and \
            each start asks for new certificates, which issuers limit.")
        .example("state_path /var/lib/mayfly/letsencrypt;"),
    Directive::new("uri", ISSUER)
        .takes(1, 1, "URL")
        .short("sets the URL of the issuer's directory")
        .long("It begins with `https://`. Try things with the staging directory of the issuer first.")
        .example("uri https://acme-staging-v02.api.letsencrypt.org/directory;"),
];
