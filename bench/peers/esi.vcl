# bench/esi.py: Varnish with ESI, as its documentation has it: the page says that it is to be parsed, and what
# is private is not stored.
vcl 4.1;

backend origin {
    .path = "@ORIGIN@";
}

sub vcl_recv {
    if (req.url == "/own") {
        return (pass);
    }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_backend_response {
    if (beresp.http.Surrogate-Control ~ "ESI/1.0") {
        unset beresp.http.Surrogate-Control;
        set beresp.do_esi = true;
    }
    set beresp.grace = 10s;
}
