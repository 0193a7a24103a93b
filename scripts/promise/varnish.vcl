# Varnish: pages are kept for an hour; PURGE removes a page, or what carries a tag (xkey of
# varnish-modules, as its documentation has it).
vcl 4.1;

import xkey;

backend application {
    .host = "127.0.0.1";
    .port = "@APPLICATION@";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (req.http.xkey-purge) {
            set req.http.n-gone = xkey.purge(req.http.xkey-purge);
            return (synth(200, "Purged " + req.http.n-gone));
        }
        return (purge);
    }
}
