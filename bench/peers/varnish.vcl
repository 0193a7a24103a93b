# Varnish: memory as storage, stale pages while a new one is fetched, gzip once
# per stored page where browsers that accept it are measured.
vcl 4.1;

backend origin {
    .path = "@FOLDER@/origin.sock";
}

sub vcl_recv {
    # One name, no cookies to think about: the built-in rules would do the same, slower.
    unset req.http.Cookie;
    return (hash);
}

sub vcl_backend_response {
    set beresp.grace = 10s;
    if (bereq.url ~ "^/fifth/") {
        set beresp.ttl = 200ms;
    }
    set beresp.do_gzip = @GZIP@;
}
