//! Tests of the checks, beside a scripted name server.

use testkit::fake_dns::{DnsRecord, DnsReply, FakeDns};

use super::*;

const GOOGLE: (&str, &[&str]) = ("googlebot", &["googlebot.com", "google.com"]);

fn checks(server: &FakeDns) -> Arc<CrawlerChecks> {
    let spec = ResolverSpec::new(vec![server.address()]);
    Arc::new(CrawlerChecks::new(Some(spec)))
}

/// 66.249.66.1 is Google's, 192.0.2.1 says so, 192.0.2.2 has a similar name, and the name server of 192.0.2.3 fails.
fn server() -> FakeDns {
    let host = |name| DnsReply::Records(vec![DnsRecord::Host(60, name)]);
    FakeDns::start(move |question| match question.name.as_str() {
        "1.66.249.66.in-addr.arpa" => host("crawl-66-249-66-1.googlebot.com"),
        "1.2.0.192.in-addr.arpa" => host("crawl-66-249-66-1.googlebot.com"),
        "2.2.0.192.in-addr.arpa" => host("crawl.evilgooglebot.com"),
        "3.2.0.192.in-addr.arpa" => DnsReply::Code(2),
        "crawl-66-249-66-1.googlebot.com" => {
            DnsReply::Records(vec![DnsRecord::address(60, "66.249.66.1")])
        }
        "crawl.evilgooglebot.com" => DnsReply::Records(vec![DnsRecord::address(60, "192.0.2.2")]),
        _ => DnsReply::Code(3),
    })
}

fn evidence(checks: &Arc<CrawlerChecks>, address: &str, now: u64) -> NameEvidence {
    checks.evidence(address.parse().ok(), GOOGLE, now)
}

async fn until_over(checks: &CrawlerChecks) {
    while checks.results.lock().under_way > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_crawler_is_verified_by_its_host_name_and_the_address_of_that() {
    let server = server();
    let checks = checks(&server);
    for (address, wanted) in [
        ("66.249.66.1", NameEvidence::Verified),
        ("::ffff:66.249.66.1", NameEvidence::Verified),
        ("192.0.2.1", NameEvidence::Unverified),
        ("192.0.2.2", NameEvidence::Unverified),
        ("192.0.2.3", NameEvidence::Unverified),
        ("192.0.2.4", NameEvidence::Unverified),
    ] {
        evidence(&checks, address, 0);
        until_over(&checks).await;
        assert_eq!(evidence(&checks, address, 1), wanted, "{address}");
    }
    assert_eq!(server.asked_for("crawl.evilgooglebot.com"), 0);
    assert_eq!(server.asked_for("1.66.249.66.in-addr.arpa"), 1);
}

#[tokio::test]
async fn a_request_does_not_wait_for_a_check_and_a_result_holds_while_it_is_renewed() {
    let server = server();
    let checks = checks(&server);
    let first = evidence(&checks, "66.249.66.1", 0);
    assert_eq!(first, NameEvidence::Unverified);
    until_over(&checks).await;
    let later = evidence(&checks, "66.249.66.1", GENUINE_FOR);
    assert_eq!(later, NameEvidence::Verified);
    assert_eq!(checks.results.lock().under_way, 1, "it is checked again");
    until_over(&checks).await;
    assert_eq!(server.asked_for("1.66.249.66.in-addr.arpa"), 2);
}

#[tokio::test]
async fn checks_and_results_are_bounded_whatever_clients_come() {
    let server = FakeDns::start(|_| DnsReply::Silence);
    let checks = checks(&server);
    for number in 0..100_u8 {
        let address = IpAddr::from([192, 0, 2, number]);
        checks.evidence(Some(address), GOOGLE, 0);
    }
    assert_eq!(checks.results.lock().under_way, MAX_UNDER_WAY);
    let mut results = Results::default();
    for number in 0..3 * MAX_RESULTS as u32 {
        let client = (IpAddr::from(number.to_be_bytes()), "googlebot");
        results.begin(client, None);
        if let Some(result) = results.by_client.get_mut(&client) {
            result.is_under_way = false;
        }
        assert!(results.by_client.len() <= MAX_RESULTS);
    }
    let mut results = Results::default();
    let begun = (0..100).filter(|_| {
        let may = results.may_begin(5 * SECOND);
        results.begun_in_second += u32::from(may);
        may
    });
    assert_eq!(begun.count(), MAX_IN_SECOND as usize);
}

#[tokio::test]
async fn without_a_name_server_the_name_counts_and_without_domains_it_does_not() {
    let none = Arc::new(CrawlerChecks::new(None));
    assert_eq!(evidence(&none, "192.0.2.1", 0), NameEvidence::Unchecked);
    let server = server();
    let checks = checks(&server);
    let duck = checks.evidence("192.0.2.1".parse().ok(), ("duckduckbot", &[]), 0);
    assert_eq!(duck, NameEvidence::Unverified);
    assert_eq!(server.asked(), []);
}

#[test]
fn name_servers_are_those_of_the_system() {
    let text = "# by hand\nsearch example.org\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\n\
                nameserver x\nnameserver 2001:db8::53 # second\nnameserver\n";
    let servers = servers_in(text);
    let wanted = ["127.0.0.53:53", "[2001:db8::53]:53"].map(|it| it.parse().unwrap());
    assert_eq!(servers, wanted);
    assert_eq!(servers_in(&"nameserver 192.0.2.1\n".repeat(9)).len(), 3);
    assert_eq!(name_servers(Path::new("/nonexistent/resolv.conf")), None);
}
