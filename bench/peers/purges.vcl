# bench/purges.py: Varnish with xkey of varnish-modules. PURGE with the tags in a field: as its documentation
# has it.
vcl 4.1;

import xkey;

backend origin {
    .path = "@FOLDER@/origin.sock";
}

sub vcl_recv {
    unset req.http.Cookie;
    if (req.method == "PURGE") {
        if (req.http.xkey-softpurge) {
            set req.http.n-gone = xkey.softpurge(req.http.xkey-softpurge);
        } else {
            set req.http.n-gone = xkey.purge(req.http.xkey-purge);
        }
        return (synth(200, "Purged " + req.http.n-gone));
    }
    return (hash);
}

sub vcl_backend_response {
    set beresp.ttl = 1h;
    set beresp.grace = 1h;
}
