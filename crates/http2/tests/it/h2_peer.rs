//! The `h2` crate as second opinion: its client drives our server side over a pipe in
//! memory, and reads what we write as we read what it writes.

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http2::{Connection, Event, FieldBlock, HeadBuffer, Output, Settings, StreamId};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// More than all exchanges of one case have: our side here does not read while it writes.
const PIPE_BYTES: usize = 16 << 20;

/// A request and the response that it shall get.
#[derive(Clone, Debug)]
struct Exchange {
    method: &'static str,
    path: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
    status: u16,
    response_fields: Vec<(String, String)>,
    /// Pieces of the response's body.
    response_body: Vec<usize>,
    response_trailers: Vec<(String, String)>,
    has_hint: bool,
}

/// The part of a request that the server has seen so far.
#[derive(Default)]
struct SeenRequest {
    line: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn block(fields: &[(String, String)]) -> FieldBlock {
    let mut block = FieldBlock::new();
    for (name, value) in fields {
        block.put(name, value).unwrap();
    }
    block
}

fn body_of(pieces: &[usize]) -> Vec<u8> {
    let pieces = pieces.iter().enumerate();
    pieces
        .flat_map(|(nth, &length)| vec![nth as u8; length])
        .collect()
}

/// Serves until the client closes; what it saw of each request, in order.
async fn serve(
    mut socket: DuplexStream,
    exchanges: Vec<Exchange>,
    piece: usize,
) -> Vec<SeenRequest> {
    let mut connection = Connection::new(Settings::default(), Instant::now());
    let (mut head, mut output) = (HeadBuffer::new(), Output::new());
    let (mut input, mut buffer) = (Vec::new(), vec![0; piece]);
    let mut requests: HashMap<StreamId, SeenRequest> = HashMap::new();
    let mut order = Vec::new();
    loop {
        let mut at = 0;
        loop {
            let received = connection
                .receive(&input[at..], &mut head, Instant::now())
                .unwrap();
            at += received.consumed;
            let Some(event) = received.event else { break };
            let whole = see(&mut requests, &mut order, event);
            if let Some((stream, bytes)) = whole.released {
                connection.release(stream, bytes);
            }
            if let Some(stream) = whole.answered {
                let nth = order.iter().position(|other| *other == stream).unwrap();
                answer(&mut connection, stream, &exchanges[nth]);
            }
        }
        input.drain(..at);
        while connection.has_output() {
            connection.take_output(&mut output, Instant::now()).unwrap();
            let bytes = output.slices().collect::<Vec<_>>().concat();
            output.advance(bytes.len());
            if socket.write_all(&bytes).await.is_err() {
                break;
            }
        }
        match socket.read(&mut buffer).await {
            Ok(length) if length > 0 => input.extend_from_slice(&buffer[..length]),
            _ => break,
        }
    }
    assert_eq!(connection.open_streams(), 0);
    order
        .iter()
        .map(|stream| requests.remove(stream).unwrap())
        .collect()
}

#[derive(Default)]
struct Next {
    released: Option<(StreamId, usize)>,
    answered: Option<StreamId>,
}

fn see(
    requests: &mut HashMap<StreamId, SeenRequest>,
    order: &mut Vec<StreamId>,
    event: Event<'_>,
) -> Next {
    let mut next = Next::default();
    match event {
        Event::Request {
            stream,
            head,
            end_stream,
            ..
        } => {
            order.push(stream);
            let request = SeenRequest {
                line: text(head.request_line()),
                fields: head
                    .fields()
                    .map(|(name, value)| (text(name), text(value)))
                    .collect(),
                ..SeenRequest::default()
            };
            requests.insert(stream, request);
            next.answered = end_stream.then_some(stream);
        }
        Event::Data {
            stream,
            data,
            end_stream,
        } => {
            requests
                .get_mut(&stream)
                .unwrap()
                .body
                .extend_from_slice(data);
            next.released = Some((stream, data.len()));
            next.answered = end_stream.then_some(stream);
        }
        Event::Trailers { stream, fields } => {
            let list = fields.iter().map(|(name, value)| (text(name), text(value)));
            requests.get_mut(&stream).unwrap().trailers = list.collect();
            next.answered = Some(stream);
        }
        Event::GoAway { .. } => {}
        event => panic!("{event:?}"),
    }
    next
}

fn answer(connection: &mut Connection, stream: StreamId, exchange: &Exchange) {
    if exchange.has_hint {
        let hint = block(&[("link".into(), "</a.css>".into())]);
        connection
            .send_informational(stream, 103, &[&hint])
            .unwrap();
    }
    // In two blocks, as a stored response has them.
    let (stored, more) = exchange
        .response_fields
        .split_at(exchange.response_fields.len() / 2);
    let (body, trailers) = (&exchange.response_body, &exchange.response_trailers);
    let is_whole = body.is_empty() && trailers.is_empty();
    let blocks = [&block(stored), &block(more)];
    connection
        .send_response(stream, exchange.status, &blocks, is_whole)
        .unwrap();
    for (nth, &length) in body.iter().enumerate() {
        let is_last = trailers.is_empty() && nth + 1 == body.len();
        let piece = Bytes::from(vec![nth as u8; length]);
        connection.send_body(stream, piece, is_last).unwrap();
    }
    if !trailers.is_empty() {
        connection.send_trailers(stream, &block(trailers)).unwrap();
    }
}

fn header_map(fields: &[(String, String)]) -> HeaderMap {
    let pair = |(name, value): &(String, String)| {
        (
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        )
    };
    fields.iter().map(pair).collect()
}

/// Without regard to the order of different names, which a `HeaderMap` does not keep.
fn sorted(fields: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_by(|(one, _), (other, _)| one.cmp(other));
    fields
}

fn of_map(map: &HeaderMap) -> Vec<(String, String)> {
    let list = map
        .iter()
        .map(|(name, value)| (name.to_string(), text(value.as_bytes())));
    sorted(list)
}

async fn send(
    client: &mut SendRequest<Bytes>,
    exchange: &Exchange,
) -> (ResponseFuture, tokio::task::JoinHandle<()>) {
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(exchange.method.as_bytes()).unwrap();
    *request.uri_mut() = format!("https://example.org{}", exchange.path)
        .parse()
        .unwrap();
    *request.headers_mut() = header_map(&exchange.fields);
    let is_whole = exchange.body.is_empty() && exchange.trailers.is_empty();
    std::future::poll_fn(|context| client.poll_ready(context))
        .await
        .unwrap();
    let (response, mut stream) = client.send_request(request, is_whole).unwrap();
    let exchange = exchange.clone();
    let sending = tokio::task::spawn_local(async move {
        if !exchange.body.is_empty() {
            let is_last = exchange.trailers.is_empty();
            stream.send_data(exchange.body.into(), is_last).unwrap();
        }
        if !exchange.trailers.is_empty() {
            stream
                .send_trailers(header_map(&exchange.trailers))
                .unwrap();
        }
    });
    (response, sending)
}

async fn check_response(response: ResponseFuture, exchange: Exchange) {
    let mut response = response.await.unwrap();
    assert_eq!(response.status().as_u16(), exchange.status);
    assert_eq!(
        of_map(response.headers()),
        sorted(exchange.response_fields.clone())
    );
    let body = response.body_mut();
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        bytes.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len()).unwrap();
    }
    assert_eq!(bytes, body_of(&exchange.response_body));
    let trailers = body.trailers().await.unwrap();
    let trailers = trailers.as_ref().map(of_map).unwrap_or_default();
    assert_eq!(trailers, sorted(exchange.response_trailers.clone()));
}

fn check_request(request: &SeenRequest, exchange: &Exchange) {
    let line = format!("{} {} HTTP/2.0", exchange.method, exchange.path);
    assert_eq!(request.line, line);
    let mut expected = exchange.fields.clone();
    expected.push(("host".into(), "example.org".into()));
    assert_eq!(sorted(request.fields.clone()), sorted(expected));
    assert_eq!(request.body, exchange.body);
    assert_eq!(
        sorted(request.trailers.clone()),
        sorted(exchange.trailers.clone())
    );
}

/// All exchanges at once on one connection, which is read in pieces of this size.
fn exchange_all(exchanges: Vec<Exchange>, piece: usize, window: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = tokio::task::spawn_local(serve(ours, exchanges.clone(), piece));
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(window)
            .initial_connection_window_size(window);
        let (mut client, connection) = builder.handshake::<_, Bytes>(theirs).await.unwrap();
        let driver = tokio::task::spawn_local(async move { connection.await.unwrap() });
        // All at a time: unread data holds the window of the connection.
        let mut tasks = Vec::new();
        for exchange in &exchanges {
            let (response, sending) = send(&mut client, exchange).await;
            let checking = check_response(response, exchange.clone());
            tasks.extend([sending, tokio::task::spawn_local(checking)]);
        }
        for task in tasks {
            task.await.unwrap();
        }
        drop(client);
        driver.await.unwrap();
        let requests = server.await.unwrap();
        assert_eq!(requests.len(), exchanges.len());
        for (request, exchange) in requests.iter().zip(&exchanges) {
            check_request(request, exchange);
        }
    });
}

/// Fields with names that are in the static table and others, and values that are
/// shorter with Huffman codes and others.
fn fields(most: usize) -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop_oneof![
        Just("accept".to_owned()),
        Just("user-agent".to_owned()),
        Just("etag".to_owned()),
        Just("vary".to_owned()),
        "x-[a-z0-9]{1,30}",
    ];
    let value = prop_oneof![
        3 => "[!-~]([ -~]{0,60}[!-~])?",
        1 => Just(String::new()),
        1 => "[{}|^]{1,300}",
    ];
    vec((name, value), 0..most)
}

prop_compose! {
    fn exchange()(
        method in prop::sample::select(vec!["GET", "POST", "PUT", "PURGE"]),
        path in "/[a-z0-9/._-]{0,40}(\\?[a-z=&]{1,20})?",
        request_fields in fields(12),
        body in prop_oneof![Just(0usize), 1..100usize, Just(70_000)],
        trailers in prop_oneof![2 => Just(vec![]), 1 => fields(3)],
        status in prop::sample::select(vec![200, 204, 206, 301, 304, 400, 404, 418, 500, 503, 999]),
        response_fields in fields(12),
        response_body in vec(prop_oneof![1..200usize, 500..600usize, Just(16_384), Just(40_000)], 0..4),
        response_trailers in prop_oneof![2 => Just(vec![]), 1 => fields(3)],
        has_hint in any::<bool>(),
    ) -> Exchange {
        // A response of these has no body.
        let has_body = !matches!(status, 204 | 304);
        Exchange {
            method,
            path,
            fields: request_fields,
            body: vec![b'b'; if method == "GET" { 0 } else { body }],
            trailers: if method == "GET" { vec![] } else { trailers },
            status,
            response_fields,
            response_body: if has_body { response_body } else { vec![] },
            response_trailers: if has_body { response_trailers } else { vec![] },
            has_hint,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_sides_understand_each_other(
        exchanges in vec(exchange(), 1..20),
        piece in prop::sample::select(vec![1, 7, 100, 4096, 65_536]),
        window in prop::sample::select(vec![1, 1000, 65_535, 1 << 20]),
    ) {
        // A window of one byte costs a round-trip for each byte, and is a flood.
        let small = window == 1;
        let exchanges = match small {
            true => exchanges.into_iter().take(2).map(|mut exchange| {
                exchange.response_body.truncate(1);
                exchange.response_body.iter_mut().for_each(|length| *length = (*length).min(50));
                exchange
            }).collect(),
            false => exchanges,
        };
        exchange_all(exchanges, piece, window);
    }
}
