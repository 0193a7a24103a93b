//! Status codes as nginx words them. Its phrases differ from RFC 9110's in
//! places, and both people and the public test suite look for them.

/// nginx's reason phrase, or `None` for statuses it sends as digits alone.
pub fn reason(status: u16) -> Option<&'static str> {
    Some(match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Moved Temporarily",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Time-out",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Large",
        415 => "Unsupported Media Type",
        416 => "Requested Range Not Satisfiable",
        421 => "Misdirected Request",
        // nginx never sends it by itself.
        425 => "Too Early",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => return None,
    })
}

/// Is `phrase` the one that is written for this status by default?
pub fn is_usual(status: u16, phrase: &[u8]) -> bool {
    let usual = reason(status).filter(|_| shown(status) == status);
    usual.is_some_and(|usual| usual.as_bytes() == phrase)
}

/// The status a client sees: nginx's own 494 (head too large), 495 and 496
/// (client certificate), 497 (plain HTTP to a TLS port) are 400 on the wire.
pub fn shown(status: u16) -> u16 {
    match status {
        494..=497 => 400,
        _ => status,
    }
}

/// Returns the title of nginx's page if it differs from the status line, and the text of
/// its body below the status.
pub fn page_title(status: u16) -> Option<(&'static str, Option<&'static str>)> {
    Some(match status {
        302 => ("302 Found", None),
        401 => ("401 Authorization Required", None),
        494 => below("400 Request Header Or Cookie Too Large"),
        495 => below("400 The SSL certificate error"),
        496 => below("400 No required SSL certificate was sent"),
        497 => below("400 The plain HTTP request was sent to HTTPS port"),
        _ => return None,
    })
}

fn below(title: &'static str) -> (&'static str, Option<&'static str>) {
    (title, title.strip_prefix("400 "))
}
