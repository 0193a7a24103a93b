//! Sequences of nginx 1.22, which our choices must match.
//!
//! Each sequence was recorded from nginx itself in front of four servers on
//! 127.0.0.1:18081 to 18084, one worker process: held requests for
//! `least_conn`, keys 1, 2, 3, ... for `hash`, and for `ip_hash` the addresses
//! of [`v4`] and [`v6`]. Attempts are read from `$upstream_addr`.

use std::net::{IpAddr, Ipv6Addr};

use super::tests_support::{Bench, server};
use super::{Pick, PickRequest};
use crate::peer::Outcome;
use crate::{Endpoint, Method, ServerSpec, TriedSet};

const HASH: Method = Method::Hash { consistent: false };
const CONSISTENT: Method = Method::Hash { consistent: true };

/// Long after the epoch of the servers' state, as nginx's seconds are.
const NOW: u64 = 1_000_000;

fn servers(weights: &[u32], max_fails: u32, down: &[usize]) -> Vec<ServerSpec> {
    let listed = (18081..).zip(weights).enumerate();
    listed
        .map(|(index, (port, weight))| ServerSpec {
            weight: *weight,
            max_fails,
            down: down.contains(&index),
            ..server(port)
        })
        .collect()
}

fn v4(i: u32) -> IpAddr {
    [10, (i * 7 % 251) as u8, (i * 31 % 250) as u8, 7].into()
}

fn v6(i: u32) -> IpAddr {
    let tail = [(i * 7) as u16, (i * 31) as u16];
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, tail[0], tail[1]).into()
}

/// Request number `i`: all servers asked until one of those not in `failing` answers.
fn attempts(
    bench: &mut Bench,
    address: fn(u32) -> IpAddr,
    i: u32,
    failing: &[usize],
) -> Vec<usize> {
    let mut tried = TriedSet::new();
    let mut asked = Vec::new();
    let key = i.to_string();
    while let Pick::Server(server) = bench.ask(&PickRequest {
        client_addr: Some(address(i)),
        hash_key: Some(key.as_bytes()),
        tried: &tried,
        now: NOW,
    }) {
        asked.push(server);
        tried.insert(server);
        if !failing.contains(&server) {
            bench.peers[server].end(Outcome::Success, NOW);
            break;
        }
        bench.peers[server].end(Outcome::Failure, NOW);
    }
    asked
}

#[test]
fn held_requests_are_spread_by_least_conn_as_nginx_spreads_them() {
    let cases: [(&[u32], [usize; 20]); 4] = [
        (
            &[1, 1],
            [0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0],
        ),
        (
            &[1, 2],
            [1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0],
        ),
        (
            &[3, 1],
            [0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0],
        ),
        (
            &[2, 3, 5],
            [2, 1, 0, 2, 1, 2, 0, 2, 1, 2, 0, 1, 2, 2, 1, 2, 0, 2, 1, 2],
        ),
    ];
    for (weights, expected) in cases {
        let mut bench = Bench::new(Method::LeastConn, servers(weights, 1, &[]));
        for (turn, server) in expected.into_iter().enumerate() {
            let pick = bench.next(&TriedSet::new(), NOW);
            assert_eq!(pick, Pick::Server(server), "{weights:?}, turn {turn}");
        }
    }
}

#[test]
fn failures_shift_turns_as_with_nginx() {
    type Case<'a> = (Method, Vec<ServerSpec>, &'a [&'a [usize]]);
    #[rustfmt::skip]
    let cases: [Case; 2] = [
        (Method::RoundRobin, servers(&[6, 3, 2], 3, &[]), &[
            &[0, 1], &[2], &[1], &[0, 1], &[2], &[0, 1], &[1], &[2], &[1], &[1], &[2], &[1], &[2], &[1], &[1], &[2],
            &[1], &[2], &[1], &[1], &[2], &[1], &[2], &[1], &[1], &[2], &[1], &[2], &[1], &[1],
        ]),
        (Method::LeastConn, servers(&[2, 3, 5], 100, &[]), &[
            &[2], &[1], &[0, 2], &[2], &[1], &[2], &[0, 1], &[2], &[2], &[1], &[2], &[0, 1], &[2], &[2], &[1], &[2],
            &[0, 1], &[2], &[2], &[1], &[2], &[0, 1], &[2], &[2], &[1], &[2], &[0, 1], &[2], &[2], &[1],
        ]),
    ];
    for (method, list, expected) in cases {
        let mut bench = Bench::new(method, list);
        for (turn, expected) in expected.iter().enumerate() {
            let asked = attempts(&mut bench, v4, 1, &[0]);
            assert_eq!(asked, *expected, "{method:?}, turn {turn}");
        }
    }
}

#[test]
fn keys_belong_to_the_servers_that_nginx_gives_them() {
    let weighted = servers(&[1, 2, 3, 1], 1, &[]);
    let one_down = servers(&[1, 2, 1, 3], 1, &[1]);
    type Case<'a> = (
        &'a str,
        Method,
        &'a [ServerSpec],
        fn(u32) -> IpAddr,
        &'a [usize],
    );
    #[rustfmt::skip]
    let cases: [Case; 8] = [
        ("ip_hash of IPv4, weights", Method::IpHash, &weighted, v4, &[
            3, 1, 2, 1, 2, 1, 2, 0, 2, 1, 2, 0, 2, 0, 2, 3, 2, 0, 2, 3, 2, 3, 1, 2, 2, 3, 1, 2, 1, 2, 1, 2, 1, 2, 1,
            1, 2, 0, 2, 3,
        ]),
        ("ip_hash of IPv4, one down", Method::IpHash, &one_down, v4, &[
            3, 3, 3, 3, 3, 3, 3, 0, 3, 3, 3, 0, 3, 0, 2, 3, 3, 0, 2, 3, 2, 3, 0, 3, 2, 3, 2, 3, 2, 3, 3, 3, 3, 3, 3,
            3, 3, 0, 2, 3,
        ]),
        ("ip_hash of IPv6, weights", Method::IpHash, &weighted, v6, &[
            2, 1, 2, 1, 2, 0, 2, 0, 0, 2, 0, 2, 3, 2, 3, 1, 1, 3, 1, 2, 1, 2, 1, 2, 2, 1, 2, 0, 2, 0, 2, 3, 1, 2, 3,
            1, 2, 1, 2, 1,
        ]),
        ("ip_hash of IPv6, one down", Method::IpHash, &one_down, v6, &[
            3, 3, 3, 3, 3, 0, 3, 0, 0, 2, 0, 2, 3, 2, 3, 2, 3, 3, 2, 3, 0, 3, 3, 3, 3, 3, 3, 0, 2, 0, 2, 3, 2, 2, 3,
            3, 3, 0, 3, 0,
        ]),
        ("hash, weights", HASH, &weighted, v4, &[
            1, 1, 1, 2, 2, 3, 3, 2, 2, 1, 0, 0, 0, 2, 1, 0, 1, 0, 2, 2, 2, 1, 1, 2, 2, 1, 1, 2, 1, 1, 2, 3, 2, 1, 2,
            3, 2, 2, 2, 2, 0, 2, 2, 1, 1, 2, 3, 1, 1, 2, 1, 2, 2, 3, 1, 3, 1, 1, 1, 3,
        ]),
        ("hash, one down", HASH, &one_down, v4, &[
            3, 2, 2, 3, 3, 3, 3, 3, 2, 3, 0, 0, 0, 3, 3, 0, 3, 0, 3, 3, 2, 0, 0, 3, 2, 3, 3, 3, 0, 3, 3, 3, 3, 3, 3,
            3, 3, 3, 3, 3, 0, 3, 2, 3, 3, 3, 3, 2, 3, 2, 3, 3, 3, 3, 3, 3, 0, 3, 3, 3,
        ]),
        ("consistent hash, weights", CONSISTENT, &weighted, v4, &[
            2, 1, 3, 1, 2, 2, 0, 2, 1, 2, 3, 3, 2, 1, 0, 1, 2, 1, 3, 3, 2, 0, 1, 1, 2, 2, 1, 2, 1, 0, 1, 2, 0, 1, 2,
            1, 2, 2, 2, 0, 2, 0, 1, 2, 1, 1, 2, 2, 1, 0, 2, 0, 2, 1, 2, 0, 2, 2, 3, 1,
        ]),
        ("consistent hash, one down", CONSISTENT, &one_down, v4, &[
            2, 0, 3, 3, 0, 2, 0, 3, 3, 0, 3, 3, 2, 3, 0, 3, 2, 0, 3, 3, 3, 0, 3, 3, 3, 2, 3, 0, 3, 0, 3, 0, 0, 3, 2,
            3, 2, 3, 3, 0, 3, 0, 3, 0, 3, 2, 3, 3, 3, 0, 3, 0, 3, 2, 2, 0, 2, 3, 3, 3,
        ]),
    ];
    for (name, method, list, address, expected) in cases {
        let mut bench = Bench::new(method, list.to_vec());
        let got: Vec<usize> = (1..=expected.len() as u32)
            .flat_map(|i| attempts(&mut bench, address, i, &[]))
            .collect();
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn further_attempts_of_a_key_go_where_nginx_goes() {
    #[rustfmt::skip]
    let cases: [(Method, &[&[usize]]); 3] = [
        (Method::IpHash, &[
            &[3, 2, 0, 1], &[1, 3, 0, 2], &[3, 2, 1, 0], &[1, 3, 2, 0], &[3, 1, 0, 2], &[1, 3, 2, 0], &[3, 0, 2, 1],
            &[0, 3, 1, 2], &[3, 0, 2, 1], &[1, 3, 2, 0], &[3, 1, 0, 2], &[0, 1, 3, 2], &[3, 1, 0, 2], &[0, 1, 3, 2],
            &[2, 3, 0, 1], &[3, 2, 1, 0], &[3, 1, 0, 2], &[0, 3, 2, 1], &[2, 3, 1, 0], &[3, 1, 0, 2], &[2, 3, 0, 1],
            &[3, 0, 2, 1], &[1, 0, 3, 2], &[3, 0, 1, 2], &[2, 1, 3, 0],
        ]),
        (HASH, &[
            &[1, 3, 2, 0], &[1, 2, 0, 3], &[1, 2, 3, 0], &[3, 1, 2, 0], &[3, 1, 2, 0], &[3, 1, 0, 2], &[3, 0, 1, 2],
            &[3, 2, 1, 0], &[2, 1, 3, 0], &[1, 3, 2, 0], &[0, 1, 3, 2], &[0, 1, 3, 2], &[0, 2, 1, 3], &[3, 1, 0, 2],
            &[1, 3, 0, 2], &[0, 3, 1, 2], &[1, 3, 0, 2], &[0, 3, 1, 2], &[3, 1, 2, 0], &[3, 0, 1, 2], &[2, 3, 1, 0],
            &[1, 0, 3, 2], &[1, 0, 3, 2], &[3, 2, 0, 1], &[2, 0, 1, 3],
        ]),
        (CONSISTENT, &[
            &[2, 3, 0, 1], &[1, 0, 3, 2], &[3, 0, 1, 2], &[1, 3, 0, 2], &[0, 1, 3, 2], &[2, 3, 1, 0], &[0, 2, 1, 3],
            &[3, 1, 2, 0], &[3, 1, 0, 2], &[0, 3, 1, 2], &[3, 0, 1, 2], &[3, 1, 0, 2], &[2, 3, 1, 0], &[1, 3, 2, 0],
            &[0, 1, 3, 2], &[1, 3, 0, 2], &[2, 3, 0, 1], &[1, 0, 3, 2], &[3, 2, 1, 0], &[3, 1, 2, 0], &[3, 1, 2, 0],
            &[0, 3, 1, 2], &[3, 1, 0, 2], &[3, 1, 0, 2], &[3, 1, 2, 0],
        ]),
    ];
    for (method, expected) in cases {
        let mut bench = Bench::new(method, servers(&[1, 2, 1, 3], 0, &[]));
        for (i, expected) in (1..).zip(expected) {
            let asked = attempts(&mut bench, v4, i, &[0, 1, 2, 3]);
            assert_eq!(asked, *expected, "{method:?}, key {i}");
        }
    }
}

#[test]
fn the_circle_places_servers_by_the_name_in_the_configuration() {
    let mut list = servers(&[1, 1, 2], 1, &[]);
    list[0] = ServerSpec::new(Endpoint::Unix("/tmp/upstream.sock".into()));
    list[1].endpoint = server(18081).endpoint;
    list[1].name = "127.0.0.1:18081".into();
    list[2].endpoint = server(18082).endpoint;
    list[2].name = "localhost:18082".into();
    let expected = [
        2, 2, 2, 2, 1, 2, 1, 2, 2, 1, 1, 2, 2, 2, 1, 1, 1, 1, 0, 2, 0, 1, 2, 2, 2, 2, 0, 1, 2, 0,
        0, 1, 2, 0, 1, 0, 0, 0, 2, 1, 2, 1, 2, 1, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2, 1, 1, 2, 0, 1,
    ];
    let mut bench = Bench::new(CONSISTENT, list);
    let got: Vec<usize> = (1..=60)
        .flat_map(|i| attempts(&mut bench, v4, i, &[]))
        .collect();
    assert_eq!(got, expected);
}
