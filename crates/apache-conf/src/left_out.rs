//! Directives that need no counterpart, and why.

#[rustfmt::skip]
const LEFT_OUT: [(&[&str], &str); 10] = [
    (
        &["serversignature", "servertokens", "serveradmin", "usecanonicalname", "hostnamelookups", "contentdigest"],
        "it changes nothing that visitors rely on",
    ),
    (
        &[
            "loadmodule", "loadfile", "user", "group", "pidfile", "mutex", "serverroot", "typesconfig",
            "accessfilename", "startservers", "minspareservers", "maxspareservers", "maxrequestworkers",
            "maxconnectionsperchild", "threadsperchild", "serverlimit", "extendedstatus", "namevirtualhost",
            "enablemmap", "enablesendfile", "listen", "listenbacklog", "traceenable", "limitinternalrecursion",
            "errorlogformat", "mimemagicfile", "logformat",
        ],
        "it is about Apache itself",
    ),
    (&["dav"], "files are not written by visitors"),
    (
        &["timeout", "keepalive", "keepalivetimeout", "maxkeepaliverequests"],
        "the times that are set without it are sensible",
    ),
    (
        &[
            "indexoptions", "addicon", "addiconbytype", "addiconbyencoding", "defaulticon", "readmename",
            "headername", "addalt", "addaltbytype", "addaltbyencoding", "adddescription", "indexignore",
            "indexorderdefault", "indexstylesheet", "indexignorereset",
        ],
        "it is about the look of listings of folders",
    ),
    (
        &["languagepriority", "forcelanguagepriority", "addlanguage", "defaultlanguage", "cachenegotiateddocs"],
        "languages are not negotiated",
    ),
    (&["acceptpathinfo", "cgipassauth", "cgimapextension"], "FastCGI has it anyway"),
    (
        &[
            "sslrandomseed", "sslsessioncache", "sslsessioncachetimeout", "sslmutex", "sslstaplingcache",
            "sslcompression", "sslpassphrasedialog", "sslinsecurerenegotiation", "sslstrictsnivhostcheck",
        ],
        "TLS does without it",
    ),
    (
        &[
            "deflatecompressionlevel", "deflatememlevel", "deflatewindowsize", "deflatebuffersize",
            "deflatefilternote", "brotlicompressionquality", "brotlicompressionwindow",
        ],
        "compression has a sensible level without it",
    ),
    (&["rewritelog", "rewriteloglevel", "rewritelock"], "it is about logs"),
];

/// Returns the reason why a directive is left out; `None` for one that is not.
pub fn reason(name: &str) -> Option<&'static str> {
    let found = LEFT_OUT.iter().find(|it| it.0.contains(&name));
    found.map(|it| it.1)
}
