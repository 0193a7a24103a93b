//! Directives for MediaWiki alone: purges, which come in plain HTTP, and jobs.

use std::net::IpAddr;

use super::conf_text::{Conf, time};
use super::detect::DetectedSite;
use super::options::ServeOptions;

/// Repeats a request that runs jobs. At its end, each view that is not cached runs `$wgJobRunRate` jobs: one, unless it
/// was set. The change of a template makes about five, one of which purges the pages that show it.
const JOBS: &str = "cache_repeat /index.php?title=Special:BlankPage 10s;";

/// Writes how long a page that may have changed is kept, and how purges of MediaWiki are taken.
pub(super) fn changes(conf: &mut Conf, found: &DetectedSite, options: &ServeOptions) {
    conf.note(
        "MediaWiki tells of pages that change, where $wgCdnServers names this server. While it",
    );
    conf.note("does, they are kept for as long as it says.");
    conf.line("fastcgi_cache_purge PURGE from local;");
    let purges = match found.purge_settings.reach(options) {
        true => "expected",
        false => "seen",
    };
    let most = time(options.ttl);
    conf.line(&format!("cache_max_valid {most} purges={purges};"));
    conf.note("Its jobs run at the end of page views, which are few while pages are kept.");
    conf.line(JOBS);
    if options.https.is_some() || options.local_certificate.is_some() {
        conf.note("It tells so without TLS, on this port as well.");
        conf.line("error_page 497 = @without_tls;");
        conf.open("location @without_tls");
        own_machine(conf, &options.listen);
        conf.line("if ($request_method != PURGE) { return 400; }");
        conf.line("fastcgi_pass php:site;");
        conf.close();
    }
}

/// In a server that leads visitors to HTTPS (`redirect`): a purge is carried out there.
pub(super) fn purges_without_tls(conf: &mut Conf, listens: &[String], redirect: &str) {
    conf.note("MediaWiki tells of pages that change without TLS.");
    conf.line(&format!("if ($request_method != PURGE) {{ {redirect} }}"));
    conf.open("location /");
    own_machine(conf, listens);
    conf.line("fastcgi_cache pages;");
    conf.line("cache_shared on;");
    conf.line("fastcgi_cache_purge PURGE from local;");
    conf.line("fastcgi_pass php:site;");
    conf.close();
}

/// Lets clients of this machine in, by loopback or by an address that is listened on.
fn own_machine(conf: &mut Conf, listens: &[String]) {
    conf.line("allow 127.0.0.0/8;");
    conf.line("allow ::1;");
    let host = |listen: &str| listen.rsplit_once(':').map(|(host, _)| host.to_owned());
    let ip = |host: String| host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    let mut own: Vec<IpAddr> = listens
        .iter()
        .filter_map(|it| host(it))
        .filter_map(ip)
        .collect();
    own.retain(|ip| !ip.is_loopback() && !ip.is_unspecified());
    own.sort();
    own.dedup();
    for ip in own {
        conf.line(&format!("allow {ip};"));
    }
    conf.line("deny all;");
}
