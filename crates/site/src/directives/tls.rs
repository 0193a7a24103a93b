//! Table of the directives about TLS on connections of clients.

use super::declaration::*;
use super::{Context, Directive};
use crate::model::ClientVerificationMode;

/// The reason for ignoring directives about OCSP stapling.
const NO_STAPLING: &str = "there is no OCSP stapling; certificates are sent without";

table! {
    _ = flag("ssl", &[Context::Server], "off").text("speaks TLS on all addresses of the server", "ssl off;", "\
        nginx has removed it; write `ssl` after the address in `listen` instead. What this server says of an address \
        holds for all servers of the address.");
    SSL_BUFFER_SIZE: Size = size("ssl_buffer_size", SERVERS).default("16k").text(
        "limits the size of a TLS record", "ssl_buffer_size 4k;", "\
        A client can use a record only when it has arrived completely. Small records make the first bytes usable \
        earlier, large ones cost less. More than 16k is not possible.");
    _ = lines("ssl_certificate", SERVERS, (1, 1), "FILE").inherited_as_a_whole().repeats().text(
        "sets the certificate of the server", "ssl_certificate example.org.pem; ssl_certificate_key example.org.key;", "\
        The file is in PEM format: the server's certificate first, then intermediate ones. The name is relative to \
        the directory of the main configuration file. The directive can be repeated, each time with a \
        `ssl_certificate_key`, for keys of different types. A client that supports ECDSA gets that one, others RSA. \
        The files are read at start and at reload.\n\n\
        `$ssl_server_name` in the name of a file stands for the name that the client asks for, in small letters; \
        other variables cannot be used here. Such files are read when a client asks for the name, and again after a \
        minute, by the account that serves: it must be able to read the key. At most 1,000 of them are kept. A \
        client that asks for a name without files gets the server's other certificates, or an alert if there are \
        none.");
    _ = lines("ssl_certificate_cache", SERVERS, (1, 3), "off | max=N [inactive=TIME] [valid=TIME]").inherited().text(
        "sets a cache for certificates whose names have variables", "ssl_certificate_cache max=1000 inactive=20s valid=1m;", "\
        `max` is the number of certificates and keys, each pair counted as two. One that was not used for the time \
        `inactive` (10 seconds) is forgotten, and one that was read the time `valid` ago (60 seconds) is read again. \
        Without this line, 1,000 certificates are kept for a minute. With `off`, they are read for each handshake.");
    SSL_CERTIFICATE_COMPRESSION: Flag = flag("ssl_certificate_compression", SERVERS, "off").text(
        "compresses certificates in handshakes of TLS 1.3", "ssl_certificate_compression on;",
        "Clients that offer it (RFC 8879) get the chain of certificates compressed with zlib.");
    _ = lines("ssl_certificate_key", SERVERS, (1, 1), "FILE").inherited_as_a_whole().repeats().text(
        "sets the key of the server's certificate", "ssl_certificate_key example.org.key;", "\
        The file is in PEM format. It may be the same as the one of `ssl_certificate`. For an encrypted key, \
        `ssl_password_file` is needed.");
    _ = lines("ssl_ciphers", SERVERS, (1, 1), "CIPHERS").default("HIGH:!aNULL:!MD5").inherited().text(
        "sets the ciphers for TLS 1.2", "ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256;", "\
        The list is written as for OpenSSL. Of the ciphers in it, those are used that rustls has: ECDHE with AES-GCM \
        or ChaCha20-Poly1305. All of these are strong, so that the line can usually be left out. The ciphers for TLS \
        1.3 are set by `ssl_conf_command Ciphersuites`.");
    _ = lines("ssl_client_certificate", SERVERS, (1, 1), "FILE").inherited().text(
        "sets the authorities whose certificates clients may have", "ssl_client_certificate /etc/mayfly/clients-ca.pem;", "\
        The file is in PEM format. It is used with `ssl_verify_client`, and clients are told the names of these \
        authorities.");
    _ = lines("ssl_conf_command", SERVERS, (2, 2), "NAME VALUE").inherited_as_a_whole().repeats().text(
        "sets what OpenSSL calls a configuration command", "ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256;", "\
        `Ciphersuites`, `CipherString`, `Groups` (or `Curves`), `MinProtocol`, `MaxProtocol` and `Options \
        ServerPreference` have the effect that they have in nginx. Other known commands are accepted with a warning.");
    _ = lines("ssl_crl", SERVERS, (1, 1), "FILE").inherited().text(
        "sets a list of revoked certificates of clients", "ssl_crl /etc/mayfly/revoked.pem;", "\
        The file is in PEM format and has one list for each authority of the chain. It is used with \
        `ssl_verify_client`.");
    _ = lines("ssl_dhparam", SERVERS, (1, 1), "FILE").inherited()
        .missing("rustls has no DHE ciphers; clients use ECDHE").text(
        "sets the parameters for DHE ciphers", "ssl_dhparam /etc/mayfly/dhparam.pem;",
        "The line may be removed. All clients that know TLS 1.2 know ECDHE too.");
    SSL_EARLY_DATA: Flag = flag("ssl_early_data", SERVERS, "off").text(
        "sets whether a request may come with the first packet of a resumed session", "ssl_early_data on;", "\
        An attacker who has seen such a request may send it again. So it is served only if its method changes \
        nothing (GET, HEAD, OPTIONS), else it gets the status 425, and the client sends it again after the \
        handshake. An upstream gets the field `Early-Data: 1` with it (RFC 8470), and may answer with 425 itself. \
        Sessions are then kept in `ssl_session_cache`, or in a cache of the server, and each is used once; tickets \
        are not used. HTTP/3 takes no such requests.");
    _ = lines("ssl_ecdh_curve", SERVERS, (1, 1), "auto | CURVE[:CURVE ...]").default("auto").inherited().text(
        "sets the groups for the exchange of keys", "ssl_ecdh_curve X25519:prime256v1;", "\
        Of the names, those are used that rustls has: `X25519MLKEM768`, `X25519`, `prime256v1` and `secp384r1`. \
        `auto` means all of them.");
    _ = lines("ssl_ocsp", SERVERS, (1, 1), "on | off | leaf").default("off").inherited().text(
        "checks certificates of clients by OCSP", "ssl_ocsp off;",
        "Only `off` is possible. Use `ssl_crl` for revoked certificates.");
    _ = lines("ssl_ocsp_cache", SERVERS, (1, 1), "off | shared:NAME:SIZE")
        .default("off").inherited().ignored("certificates of clients are not checked by OCSP").text(
        "sets a cache for `ssl_ocsp`", "ssl_ocsp_cache shared:ocsp:1m;", "The line may be removed.");
    _ = lines("ssl_ocsp_responder", SERVERS, (1, 1), "URL").inherited()
        .ignored("certificates of clients are not checked by OCSP").text(
        "sets the server that `ssl_ocsp` asks", "ssl_ocsp_responder http://ocsp.example.com/;",
        "The line may be removed.");
    _ = lines("ssl_password_file", SERVERS, (1, 1), "FILE").inherited().text(
        "sets the passwords of encrypted keys", "ssl_password_file /etc/mayfly/key-passwords;",
        "Each line of the file is a password. They are tried in turn.");
    SSL_PREFER_SERVER_CIPHERS: Flag = flag("ssl_prefer_server_ciphers", SERVERS, "off").text(
        "sets whose order of ciphers counts", "ssl_prefer_server_ciphers on;", "\
        With `on`, the server's order counts. Otherwise the client's does, which knows whether its machine is better \
        at AES or at ChaCha20.");
    _ = lines("ssl_protocols", SERVERS, (1, MANY), "TLSv1.2 | TLSv1.3 ...")
        .default("TLSv1.2 TLSv1.3").inherited_as_a_whole().repeats().text(
        "sets the versions of TLS for clients", "ssl_protocols TLSv1.3;",
        "Older versions than TLSv1.2 may be named beside newer ones, but are never used.");
    SSL_REJECT_HANDSHAKE: Flag = flag("ssl_reject_handshake", SERVERS, "off").text(
        "refuses TLS connections to this server", "ssl_reject_handshake on;", "\
        A client that asks for a name of this server gets an alert (`unrecognized_name`). In the default server, \
        this refuses all names that no other server has.");
    _ = lines("ssl_session_cache", SERVERS, (1, 2), "off | none | [builtin[:NUMBER]] [shared:NAME:SIZE]")
        .default("none").inherited().text(
        "keeps sessions, so that clients can resume them", "ssl_session_cache shared:tls:10m;", "\
        A client that comes back needs a shorter handshake. `shared:NAME:SIZE` is one cache for all servers that \
        write the name; a megabyte holds a few thousand sessions. `builtin` is a cache of this server. Most clients \
        use tickets instead (`ssl_session_tickets`), which need no memory.");
    _ = lines("ssl_session_ticket_key", SERVERS, (1, 1), "FILE").inherited_as_a_whole().repeats().text(
        "sets a key for session tickets", "ssl_session_ticket_key /etc/mayfly/current.key;", "\
        The file has 80 or 48 random bytes (`openssl rand 80`). It is needed if several machines serve the same \
        names. The first key encrypts tickets, all of them decrypt: write the new one before the old one. Without \
        the directive, the key is random and changes by itself.");
    SSL_SESSION_TICKETS: Flag = flag("ssl_session_tickets", SERVERS, "on").text(
        "sets whether sessions are resumed by tickets", "ssl_session_tickets off;",
        "A ticket is the encrypted session, which the client keeps (RFC 5077).");
    SSL_SESSION_TIMEOUT: Time = time("ssl_session_timeout", SERVERS).default("5m").text(
        "sets how long a session can be resumed", "ssl_session_timeout 1d;",
        "It holds for tickets and for the sessions of `ssl_session_cache`.");
    _ = flag("ssl_stapling", SERVERS, "off").missing(NO_STAPLING).text(
        "sends an OCSP response with the certificate", "ssl_stapling on;", "\
        The line may be removed. Let's Encrypt ended OCSP in 2025, and browsers have other ways to learn of revoked \
        certificates.");
    _ = lines("ssl_stapling_file", SERVERS, (1, 1), "FILE").inherited().missing(NO_STAPLING).text(
        "sets a file with the OCSP response", "ssl_stapling_file /etc/mayfly/ocsp.der;", "The line may be removed.");
    _ = lines("ssl_stapling_responder", SERVERS, (1, 1), "URL").inherited().missing(NO_STAPLING).text(
        "sets the server that is asked for OCSP responses", "ssl_stapling_responder http://ocsp.example.com/;",
        "The line may be removed.");
    _ = flag("ssl_stapling_verify", SERVERS, "off").missing(NO_STAPLING).text(
        "verifies OCSP responses before they are sent", "ssl_stapling_verify on;", "The line may be removed.");
    _ = lines("ssl_trusted_certificate", SERVERS, (1, 1), "FILE").inherited().text(
        "sets authorities that clients are not told of", "ssl_trusted_certificate /etc/mayfly/chain.pem;", "\
        As `ssl_client_certificate`, but the names are not sent to clients. Without `ssl_verify_client`, the file is \
        not needed and not read.");
    SSL_VERIFY_CLIENT: Choice<Option<ClientVerificationMode>> = choice("ssl_verify_client", SERVERS, "on | off | optional | optional_no_ca", &[
        ("off", None), ("on", Some(ClientVerificationMode::Required)),
        ("optional", Some(ClientVerificationMode::Optional)),
        ("optional_no_ca", Some(ClientVerificationMode::OptionalWithoutAuthority)),
    ])
        .default("off").text(
        "asks clients for a certificate", "ssl_verify_client on; ssl_client_certificate /etc/mayfly/clients-ca.pem;", "\
        With `on`, requests without a good certificate get the status 400. With `optional`, a client may have none. \
        With `optional_no_ca`, a certificate need not be signed by a known authority; the application decides. \
        `$ssl_client_verify` holds the result. `on` and `optional` need `ssl_client_certificate` or \
        `ssl_trusted_certificate`.");
    SSL_VERIFY_DEPTH: Number = number("ssl_verify_depth", SERVERS).default("1").text(
        "limits the length of a client's chain of certificates", "ssl_verify_depth 2;",
        "It is the number of certificates that may be between the client's certificate and a trusted one.");
}
