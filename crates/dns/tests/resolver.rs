//! A resolver in front of scripted name servers on loopback.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dns::{Addresses, Fault, ResolveError, Resolver, ResolverSpec};
use testkit::fake_dns::{DnsQuestion, DnsRecord, DnsReply, FakeDns};

/// Ample: only tests about timeouts run into it.
const TIMEOUT: Duration = Duration::from_secs(20);

fn resolver(servers: &[&FakeDns]) -> Arc<Resolver> {
    let servers = servers.iter().map(|server| server.address()).collect();
    Resolver::new(ResolverSpec {
        resend: Duration::from_millis(100),
        ..ResolverSpec::new(servers)
    })
}

fn zone(question: &DnsQuestion) -> DnsReply {
    let address = DnsRecord::address;
    match question.name.as_str() {
        "both.test" => DnsReply::Records(vec![address(9, "10.0.0.1"), address(5, "fd00::1")]),
        "many.test" => DnsReply::Records(vec![address(7, "10.0.0.2"), address(7, "10.0.0.3")]),
        "alias.test" => DnsReply::Records(vec![DnsRecord::Alias(3, "both.test")]),
        "loop.test" => DnsReply::Records(vec![DnsRecord::Alias(3, "loop.test")]),
        "cut.test" if !question.over_tcp => DnsReply::Truncated,
        "cut.test" => DnsReply::Records(vec![address(7, "10.0.0.4")]),
        "empty.test" => DnsReply::Records(Vec::new()),
        "broken.test" => DnsReply::Code(2),
        "half.test" if question.kind == "AAAA" => DnsReply::Code(2),
        "half.test" => DnsReply::Records(vec![address(7, "10.0.0.6")]),
        "only4.test" if question.kind == "AAAA" => DnsReply::Code(3),
        "only4.test" => DnsReply::Records(vec![address(7, "10.0.0.7")]),
        "1.0.0.10.in-addr.arpa" => DnsReply::Records(vec![
            DnsRecord::Host(9, "Both.test"),
            DnsRecord::Host(4, "b.test"),
        ]),
        // Delegated without classes (RFC 2317).
        "2.0.0.10.in-addr.arpa" => {
            DnsReply::Records(vec![DnsRecord::Alias(3, "1.0.0.10.in-addr.arpa")])
        }
        "3.0.0.10.in-addr.arpa" => DnsReply::Records(vec![address(9, "10.0.0.1")]),
        "refused.test" => DnsReply::Code(5),
        "zero.test" => DnsReply::Records(vec![address(0, "10.0.0.5")]),
        "mute.test" => DnsReply::Silence,
        "_http._tcp.svc.test" => DnsReply::Records(vec![
            DnsRecord::Service(8, 1, 5, 8080, "both.test"),
            DnsRecord::Service(6, 2, 1, 8081, "many.test"),
        ]),
        _ => DnsReply::Code(3),
    }
}

fn addresses(result: Result<Addresses, ResolveError>) -> Vec<String> {
    let found = result.unwrap();
    found.addresses.iter().map(IpAddr::to_string).collect()
}

#[tokio::test]
async fn each_answer_of_a_name_server_has_its_meaning() {
    let server = FakeDns::start(zone);
    let resolver = resolver(&[&server]);
    let found: [(&str, &[&str], u64); 7] = [
        ("only4.test", &["10.0.0.7"], 7),
        ("both.test", &["10.0.0.1", "fd00::1"], 5),
        ("BOTH.test.", &["10.0.0.1", "fd00::1"], 5),
        ("many.test", &["10.0.0.2", "10.0.0.3"], 7),
        ("alias.test", &["10.0.0.1", "fd00::1"], 3),
        ("cut.test", &["10.0.0.4"], 7),
        ("zero.test", &["10.0.0.5"], 0),
    ];
    for (name, expected, seconds) in found {
        let result = resolver.resolve(name, TIMEOUT, 1_000).await;
        let valid_until = result.as_ref().unwrap().valid_until;
        let valid_for = valid_until - 1_000;
        assert!(
            (seconds * 1_000..seconds * 1_000 + 900).contains(&valid_for),
            "{name}: {valid_for} ms"
        );
        assert_eq!(addresses(result), expected, "{name}");
    }
    let faults = [
        ("absent.test", Fault::HostNotFound),
        ("empty.test", Fault::HostNotFound),
        ("loop.test", Fault::HostNotFound),
        ("broken.test", Fault::ServerFailure),
        ("half.test", Fault::ServerFailure),
        ("refused.test", Fault::Refused),
        ("a..b", Fault::HostNotFound),
    ];
    for (name, fault) in faults {
        let error = resolver.resolve(name, TIMEOUT, 1_000).await.unwrap_err();
        assert_eq!(error.fault, fault, "{name}");
    }
}

#[tokio::test]
async fn an_address_has_the_names_of_its_ptr_records() {
    let server = FakeDns::start(zone);
    let resolver = resolver(&[&server]);
    let names = async |address: &str| {
        let address: IpAddr = address.parse().unwrap();
        resolver.host_names(address, TIMEOUT, 0).await
    };
    for address in ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"] {
        let found = names(address).await.unwrap();
        assert_eq!(found.hosts[..], ["both.test", "b.test"], "{address}");
    }
    assert_eq!(names("10.0.0.1").await.unwrap().valid_until / 1000, 4);
    assert_eq!(server.asked_for("1.0.0.10.in-addr.arpa"), 2);
    for address in ["10.0.0.3", "10.0.0.4", "2001:db8::1"] {
        let error = names(address).await.unwrap_err();
        assert_eq!(error.fault, Fault::HostNotFound, "{address}");
    }
}

#[tokio::test]
async fn errors_are_told_in_nginx_words() {
    let server = FakeDns::start(zone);
    let resolver = resolver(&[&server]);
    let error = resolver.resolve("Absent.test", TIMEOUT, 0).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "Absent.test could not be resolved (3: Host not found)"
    );
    let error = resolver
        .resolve("mute.test", Duration::from_millis(50), 0)
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "mute.test could not be resolved (110: Operation timed out)"
    );
}

#[tokio::test]
async fn an_address_is_its_own_answer() {
    let server = FakeDns::start(zone);
    let resolver = resolver(&[&server]);
    let found = resolver.resolve("fd00::9", TIMEOUT, 0).await;
    assert_eq!(addresses(found), ["fd00::9"]);
    assert_eq!(server.asked(), []);
}

#[tokio::test]
async fn answers_are_remembered_for_their_ttl_and_errors_are_not() {
    let server = FakeDns::start(zone);
    let resolver = resolver(&[&server]);
    let first = resolver.resolve("both.test", TIMEOUT, 0).await.unwrap();
    let last = first.valid_until - 1;
    assert_eq!(
        resolver.resolve("Both.Test", TIMEOUT, last).await.unwrap(),
        first
    );
    assert_eq!(server.asked_for("both.test"), 2, "A and AAAA, once each");
    let again = resolver.resolve("both.test", TIMEOUT, last + 1).await;
    assert!(again.unwrap().valid_until > first.valid_until);
    assert_eq!(server.asked_for("both.test"), 4);
    for times in [1, 2] {
        resolver
            .resolve("broken.test", TIMEOUT, 0)
            .await
            .unwrap_err();
        assert_eq!(server.asked_for("broken.test"), 2 * times);
        resolver.resolve("zero.test", TIMEOUT, 0).await.unwrap();
        assert_eq!(server.asked_for("zero.test"), 2 * times);
    }
}

#[tokio::test]
async fn valid_replaces_the_ttl() {
    let server = FakeDns::start(zone);
    let resolver = Resolver::new(ResolverSpec {
        valid: Some(Duration::from_secs(60)),
        ..ResolverSpec::new(vec![server.address()])
    });
    let found = resolver.resolve("both.test", TIMEOUT, 0).await.unwrap();
    assert!((60_000..70_000).contains(&found.valid_until));
}

#[tokio::test]
async fn only_the_kinds_wanted_are_asked_for() {
    let server = FakeDns::start(zone);
    for (ipv4, expected, kind) in [(true, "10.0.0.1", "A"), (false, "fd00::1", "AAAA")] {
        let resolver = Resolver::new(ResolverSpec {
            ipv4,
            ipv6: !ipv4,
            ..ResolverSpec::new(vec![server.address()])
        });
        let before = server.asked().len();
        let found = resolver.resolve("both.test", TIMEOUT, 0).await;
        assert_eq!(addresses(found), [expected]);
        let asked = &server.asked()[before..];
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].kind, kind);
    }
}

#[tokio::test]
async fn requests_for_one_name_share_one_question() {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let server = FakeDns::start(move |question| {
        if question.kind == "A" {
            gate.lock().unwrap().recv().unwrap();
        }
        zone(question)
    });
    let resolver = resolver(&[&server]);
    let mut waiting: Vec<_> = (0..20)
        .map(|_| Box::pin(resolver.resolve("both.test", TIMEOUT, 0)))
        .collect();
    for request in &mut waiting {
        // Polled once, so that it has asked or joined.
        assert!(tokio::time::timeout(Duration::ZERO, request).await.is_err());
    }
    open.send(()).unwrap();
    drop(open);
    for request in waiting {
        assert_eq!(addresses(request.await), ["10.0.0.1", "fd00::1"]);
    }
    // It may have been asked again after 100 ms, by the one who asks for all.
    assert!(server.asked_for("both.test") < 8);
}

#[tokio::test]
async fn who_gives_up_does_not_end_the_question_of_others() {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let server = FakeDns::start(move |question| {
        let _ = gate.lock().unwrap().recv();
        zone(question)
    });
    let resolver = Resolver::new(ResolverSpec::new(vec![server.address()]));
    let mut first = Box::pin(resolver.resolve("both.test", TIMEOUT, 0));
    let mut second = Box::pin(resolver.resolve("both.test", TIMEOUT, 0));
    for request in [&mut first, &mut second] {
        assert!(tokio::time::timeout(Duration::ZERO, request).await.is_err());
    }
    drop(first);
    drop(open);
    assert_eq!(addresses(second.await), ["10.0.0.1", "fd00::1"]);
    assert_eq!(server.asked_for("both.test"), 2);
}

#[tokio::test]
async fn forged_and_malformed_datagrams_only_cost_time() {
    let count = AtomicUsize::new(0);
    let server = FakeDns::start(move |question| match count.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => DnsReply::WrongNumber,
        2 | 3 => DnsReply::Garbage(b"no message".to_vec()),
        4 | 5 => DnsReply::Code(1),
        _ => zone(question),
    });
    let resolver = resolver(&[&server]);
    let found = resolver.resolve("both.test", TIMEOUT, 0).await;
    assert_eq!(addresses(found), ["10.0.0.1", "fd00::1"]);
}

#[tokio::test]
async fn name_servers_take_turns_and_stand_in_for_each_other() {
    let mute = FakeDns::start(|_| DnsReply::Silence);
    let fine = FakeDns::start(zone);
    let resolver = resolver(&[&mute, &fine]);
    for name in ["both.test", "many.test", "cut.test"] {
        assert!(resolver.resolve(name, TIMEOUT, 0).await.is_ok(), "{name}");
    }
    let asked = [mute.asked_for("both.test"), fine.asked_for("both.test")];
    assert_eq!(asked, [2, 2], "first the one, then the other");
    assert_eq!(
        mute.asked_for("many.test"),
        0,
        "the second name begins with the second"
    );
}

#[tokio::test]
async fn a_port_without_a_name_server_is_passed_by() {
    let gone = ([127, 0, 0, 1], testkit::process::free_port()).into();
    let fine = FakeDns::start(zone);
    let resolver = Resolver::new(ResolverSpec::new(vec![gone, fine.address()]));
    let found = resolver.resolve("both.test", TIMEOUT, 0).await;
    assert_eq!(addresses(found), ["10.0.0.1", "fd00::1"]);
}

#[tokio::test]
async fn services_come_with_port_priority_and_weight() {
    let server = FakeDns::start(zone);
    let resolver = resolver(&[&server]);
    let found = resolver
        .services("_http._tcp.svc.test", TIMEOUT, 0)
        .await
        .unwrap();
    let shown: Vec<_> = found
        .services
        .iter()
        .map(|it| (it.priority, it.weight, it.port, it.target.as_str()))
        .collect();
    assert_eq!(
        shown,
        [(1, 5, 8080, "both.test"), (2, 1, 8081, "many.test")]
    );
    assert!((6_000..7_000).contains(&found.valid_until));
    assert!(resolver.services("absent.test", TIMEOUT, 0).await.is_err());
}
