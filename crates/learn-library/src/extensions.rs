//! Extensions of PHP, by what the library can see of them.
//!
//! PHP loads them with `RTLD_DEEPBIND`: they find libc's functions before those that were preloaded, and
//! so do the libraries that they bring along.
#![forbid(unsafe_code)]

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Reads nothing by itself, or by PHP's own streams, whose calls are seen.
    Harmless,
    /// Reads by itself: seen without `RTLD_DEEPBIND`.
    Undone,
    /// Not known: pages of a PHP that loads it are not learned.
    Unseen,
}

#[rustfmt::skip]
const HARMLESS: &[&[u8]] = &[
    b"bcmath", b"bz2", b"calendar", b"ctype", b"date", b"ds", b"enchant", b"exif", b"fileinfo", b"filter",
    b"gd", b"gettext", b"gmp", b"hash", b"iconv", b"igbinary", b"intl", b"json", b"mbstring", b"msgpack",
    b"mysqli", b"mysqlnd", b"opcache", b"openssl", b"pdo", b"pdo_mysql", b"phar", b"pspell", b"random",
    b"readline", b"reflection", b"session", b"sodium", b"soap", b"spl", b"standard", b"tidy", b"tokenizer",
    b"xsl", b"zlib",
];

#[rustfmt::skip]
const UNDONE: &[&[u8]] = &[
    b"apcu", b"curl", b"dba", b"dom", b"ffi", b"ftp", b"imagick", b"imap", b"ldap", b"memcache", b"memcached",
    b"odbc", b"pdo_odbc", b"pdo_pgsql", b"pdo_sqlite", b"pgsql", b"posix", b"redis", b"shmop", b"simplexml",
    b"snmp", b"sockets", b"sqlite3", b"ssh2", b"sysvmsg", b"sysvsem", b"sysvshm", b"xml", b"xmlreader",
    b"xmlrpc", b"xmlwriter", b"yaml", b"zip",
];

/// Returns the kind of the extension that is loaded from `path`; `None` for a file that is no extension of
/// PHP: its name does not end in `.so` without a version.
pub(crate) fn extension(path: &[u8]) -> Option<Extension> {
    let file = path.rsplit(|byte| *byte == b'/').next()?;
    let name = file.strip_suffix(b".so")?;
    Some(if HARMLESS.contains(&name) {
        Extension::Harmless
    } else if UNDONE.contains(&name) {
        Extension::Undone
    } else {
        Extension::Unseen
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_known_by_their_file() {
        for (path, kind) in [
            ("/usr/lib/php/20220829/curl.so", Some(Extension::Undone)),
            (
                "/usr/lib/php/20220829/mysqlnd.so",
                Some(Extension::Harmless),
            ),
            ("/opt/ioncube_loader.so", Some(Extension::Unseen)),
            ("libnss_dns.so.2", None),
            ("", None),
        ] {
            assert_eq!(extension(path.as_bytes()), kind, "{path}");
        }
    }
}
