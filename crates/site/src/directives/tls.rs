//! Table of the directives about TLS on connections of clients.

use super::{Context, Directive};

const SERVERS: &[Context] = &[Context::Http, Context::Server];

/// The reason for ignoring directives about OCSP stapling.
const NO_STAPLING: &str = "there is no OCSP stapling; certificates are sent without";

#[rustfmt::skip]
pub(super) const TABLE: &[Directive] = &[
    Directive::new("ssl", &[Context::Server])
        .takes(1, 1, "on | off")
        .default("off")
        .short("speaks TLS on all addresses of the server")
        .long("\
            nginx has removed it; write `ssl` after the address in `listen` instead. What this server says \
            of an address holds for all servers of the address.")
        .example("ssl off;"),
    Directive::new("ssl_buffer_size", SERVERS)
        .takes(1, 1, "SIZE").inherited()
        .default("16k")
        .short("limits the size of a TLS record")
        .long("\
            A client can use a record only when it has arrived completely. Small records make the first \
            bytes usable earlier, large ones cost less. More than 16k is not possible.")
        .example("ssl_buffer_size 4k;"),
    Directive::new("ssl_certificate", SERVERS)
        .takes(1, 1, "FILE").inherited_as_a_whole().repeats()
        .short("sets the certificate of the server")
        .long("\
            The file is in PEM format: the server's certificate first, then intermediate ones. The name \
            is relative to the directory of the main configuration file. The directive can be repeated, \
            each time with a `ssl_certificate_key`, for keys of different types. A client that supports \
            ECDSA gets that one, others RSA. The files are read at start and at reload.\n\n\
            `$ssl_server_name` in the name of a file stands for the name that the client asks for, in \
            small letters; other variables cannot be used here. Such files are read when a client \
            asks for the name, and again after a minute, by the account that serves: it must be able \
            to read the key. At most 1,000 of them are kept. A client that asks for a name without \
            files gets the server's other certificates, or an alert if there are none.")
        .example("ssl_certificate example.org.pem; ssl_certificate_key example.org.key;"),
    Directive::new("ssl_certificate_cache", SERVERS)
        .takes(1, 3, "off | max=N [inactive=TIME] [valid=TIME]").inherited()
        .short("sets a cache for certificates whose names have variables")
        .long("\
            `max` is the number of certificates and keys, each pair counted as two. One that was not used for the \
            time `inactive` (10 seconds) is forgotten, and one that was read the time `valid` ago (60 seconds) is \
            read again. Without this line, 1,000 certificates are kept for a minute. With `off`, they are read for \
            each handshake.")
        .example("ssl_certificate_cache max=1000 inactive=20s valid=1m;"),
    Directive::new("ssl_certificate_compression", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("compresses certificates in handshakes of TLS 1.3")
        .long("Clients that offer it (RFC 8879) get the chain of certificates compressed with zlib.")
        .example("ssl_certificate_compression on;"),
    Directive::new("ssl_certificate_key", SERVERS)
        .takes(1, 1, "FILE").inherited_as_a_whole().repeats()
        .short("sets the key of the server's certificate")
        .long("\
            The file is in PEM format. It may be the same as the one of `ssl_certificate`. For an \
            encrypted key, `ssl_password_file` is needed.")
        .example("ssl_certificate_key example.org.key;"),
    Directive::new("ssl_ciphers", SERVERS)
        .takes(1, 1, "CIPHERS").inherited()
        .default("HIGH:!aNULL:!MD5")
        .short("sets the ciphers for TLS 1.2")
        .long("\
            The list is written as for OpenSSL. Of the ciphers in it, those are used that rustls has: \
            ECDHE with AES-GCM or ChaCha20-Poly1305. All of these are strong, so that the line can \
            usually be left out. The ciphers for TLS 1.3 are set by `ssl_conf_command Ciphersuites`.")
        .example("ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256;"),
    Directive::new("ssl_client_certificate", SERVERS)
        .takes(1, 1, "FILE").inherited()
        .short("sets the authorities whose certificates clients may have")
        .long("\
            The file is in PEM format. It is used with `ssl_verify_client`, and clients are told the \
            names of these authorities.")
        .example("ssl_client_certificate /etc/mayfly/clients-ca.pem;"),
    Directive::new("ssl_conf_command", SERVERS)
        .takes(2, 2, "NAME VALUE").inherited_as_a_whole().repeats()
        .short("sets what OpenSSL calls a configuration command")
        .long("\
            `Ciphersuites`, `CipherString`, `Groups` (or `Curves`), `MinProtocol`, `MaxProtocol` and \
            `Options ServerPreference` have the effect that they have in nginx. Other known commands are \
            accepted with a warning.")
        .example("ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256;"),
    Directive::new("ssl_crl", SERVERS)
        .takes(1, 1, "FILE").inherited()
        .short("sets a list of revoked certificates of clients")
        .long("\
            The file is in PEM format and has one list for each authority of the chain. It is used with \
            `ssl_verify_client`.")
        .example("ssl_crl /etc/mayfly/revoked.pem;"),
    Directive::new("ssl_dhparam", SERVERS)
        .takes(1, 1, "FILE").inherited()
        .missing("rustls has no DHE ciphers; clients use ECDHE")
        .short("sets the parameters for DHE ciphers")
        .long("The line may be removed. All clients that know TLS 1.2 know ECDHE too.")
        .example("ssl_dhparam /etc/mayfly/dhparam.pem;"),
    Directive::new("ssl_early_data", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whether a request may come with the first packet of a resumed session")
        .long("\
            An attacker who has seen such a request may send it again. So it is served only if its method \
            changes nothing (GET, HEAD, OPTIONS), else it gets the status 425, and the client sends it \
            again after the handshake. An upstream gets the field `Early-Data: 1` with it (RFC 8470), and \
            may answer with 425 itself. Sessions are then kept in `ssl_session_cache`, or in a cache of \
            the server, and each is used once; tickets are not used. HTTP/3 takes no such requests.")
        .example("ssl_early_data on;"),
    Directive::new("ssl_ecdh_curve", SERVERS)
        .takes(1, 1, "auto | CURVE[:CURVE ...]").inherited()
        .default("auto")
        .short("sets the groups for the exchange of keys")
        .long("\
            Of the names, those are used that rustls has: `X25519MLKEM768`, `X25519`, `prime256v1` and \
            `secp384r1`. `auto` means all of them.")
        .example("ssl_ecdh_curve X25519:prime256v1;"),
    Directive::new("ssl_ocsp", SERVERS)
        .takes(1, 1, "on | off | leaf").inherited()
        .default("off")
        .short("checks certificates of clients by OCSP")
        .long("Only `off` is possible. Use `ssl_crl` for revoked certificates.")
        .example("ssl_ocsp off;"),
    Directive::new("ssl_ocsp_cache", SERVERS)
        .takes(1, 1, "off | shared:NAME:SIZE").inherited()
        .default("off")
        .ignored("certificates of clients are not checked by OCSP")
        .short("sets a cache for `ssl_ocsp`")
        .long("The line may be removed.")
        .example("ssl_ocsp_cache shared:ocsp:1m;"),
    Directive::new("ssl_ocsp_responder", SERVERS)
        .takes(1, 1, "URL").inherited()
        .ignored("certificates of clients are not checked by OCSP")
        .short("sets the server that `ssl_ocsp` asks")
        .long("The line may be removed.")
        .example("ssl_ocsp_responder http://ocsp.example.com/;"),
    Directive::new("ssl_password_file", SERVERS)
        .takes(1, 1, "FILE").inherited()
        .short("sets the passwords of encrypted keys")
        .long("Each line of the file is a password. They are tried in turn.")
        .example("ssl_password_file /etc/mayfly/key-passwords;"),
    Directive::new("ssl_prefer_server_ciphers", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("sets whose order of ciphers counts")
        .long("\
            With `on`, the server's order counts. Otherwise the client's does, which knows whether its \
            machine is better at AES or at ChaCha20.")
        .example("ssl_prefer_server_ciphers on;"),
    Directive::new("ssl_protocols", SERVERS)
        .takes(1, usize::MAX, "TLSv1.2 | TLSv1.3 ...").inherited_as_a_whole().repeats()
        .default("TLSv1.2 TLSv1.3")
        .short("sets the versions of TLS for clients")
        .long("Older versions than TLSv1.2 may be named beside newer ones, but are never used.")
        .example("ssl_protocols TLSv1.3;"),
    Directive::new("ssl_reject_handshake", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .short("refuses TLS connections to this server")
        .long("\
            A client that asks for a name of this server gets an alert (`unrecognized_name`). In the \
            default server, this refuses all names that no other server has.")
        .example("ssl_reject_handshake on;"),
    Directive::new("ssl_session_cache", SERVERS)
        .takes(1, 2, "off | none | [builtin[:NUMBER]] [shared:NAME:SIZE]").inherited()
        .default("none")
        .short("keeps sessions, so that clients can resume them")
        .long("\
            A client that comes back needs a shorter handshake. `shared:NAME:SIZE` is one cache for all \
            servers that write the name; a megabyte holds a few thousand sessions. `builtin` is a cache of \
            this server. Most clients use tickets instead (`ssl_session_tickets`), which need no memory.")
        .example("ssl_session_cache shared:tls:10m;"),
    Directive::new("ssl_session_ticket_key", SERVERS)
        .takes(1, 1, "FILE").inherited_as_a_whole().repeats()
        .short("sets a key for session tickets")
        .long("\
            The file has 80 or 48 random bytes (`openssl rand 80`). It is needed if several machines \
            serve the same names. The first key encrypts tickets, all of them decrypt: write the new \
            one before the old one. Without the directive, the key is random and changes by itself.")
        .example("ssl_session_ticket_key /etc/mayfly/current.key;"),
    Directive::new("ssl_session_tickets", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("on")
        .short("sets whether sessions are resumed by tickets")
        .long("A ticket is the encrypted session, which the client keeps (RFC 5077).")
        .example("ssl_session_tickets off;"),
    Directive::new("ssl_session_timeout", SERVERS)
        .takes(1, 1, "TIME").inherited()
        .default("5m")
        .short("sets how long a session can be resumed")
        .long("It holds for tickets and for the sessions of `ssl_session_cache`.")
        .example("ssl_session_timeout 1d;"),
    Directive::new("ssl_stapling", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .missing(NO_STAPLING)
        .short("sends an OCSP response with the certificate")
        .long("\
            The line may be removed. Let's Encrypt ended OCSP in 2025, and browsers have other ways to \
            learn of revoked certificates.")
        .example("ssl_stapling on;"),
    Directive::new("ssl_stapling_file", SERVERS)
        .takes(1, 1, "FILE").inherited()
        .missing(NO_STAPLING)
        .short("sets a file with the OCSP response")
        .long("The line may be removed.")
        .example("ssl_stapling_file /etc/mayfly/ocsp.der;"),
    Directive::new("ssl_stapling_responder", SERVERS)
        .takes(1, 1, "URL").inherited()
        .missing(NO_STAPLING)
        .short("sets the server that is asked for OCSP responses")
        .long("The line may be removed.")
        .example("ssl_stapling_responder http://ocsp.example.com/;"),
    Directive::new("ssl_stapling_verify", SERVERS)
        .takes(1, 1, "on | off").inherited()
        .default("off")
        .missing(NO_STAPLING)
        .short("verifies OCSP responses before they are sent")
        .long("The line may be removed.")
        .example("ssl_stapling_verify on;"),
    Directive::new("ssl_trusted_certificate", SERVERS)
        .takes(1, 1, "FILE").inherited()
        .short("sets authorities that clients are not told of")
        .long("\
            As `ssl_client_certificate`, but the names are not sent to clients. Without \
            `ssl_verify_client`, the file is not needed and not read.")
        .example("ssl_trusted_certificate /etc/mayfly/chain.pem;"),
    Directive::new("ssl_verify_client", SERVERS)
        .takes(1, 1, "on | off | optional | optional_no_ca").inherited()
        .default("off")
        .short("asks clients for a certificate")
        .long("\
            With `on`, requests without a good certificate get the status 400. With `optional`, a client \
            may have none. With `optional_no_ca`, a certificate need not be signed by a known authority; \
            the application decides. `$ssl_client_verify` holds the result. `on` and `optional` need \
            `ssl_client_certificate` or `ssl_trusted_certificate`.")
        .example("ssl_verify_client on; ssl_client_certificate /etc/mayfly/clients-ca.pem;"),
    Directive::new("ssl_verify_depth", SERVERS)
        .takes(1, 1, "NUMBER").inherited()
        .default("1")
        .short("limits the length of a client's chain of certificates")
        .long("\
            It is the number of certificates that may be between the client's certificate and a trusted \
            one.")
        .example("ssl_verify_depth 2;"),
];
