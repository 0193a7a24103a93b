//! A collector: OTLP over HTTP, or over gRPC. It keeps the spans that it took.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use testkit::fake_http::{FakeHttp, Request, Script};
use testkit::tls::Authority;
use testkit::wait::until_or;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// The reply of a collector to a batch of spans.
pub type CollectorReply = Box<dyn Fn(&Request) -> Script + Send + Sync>;

#[derive(Default)]
pub struct CollectedBatches {
    pub batches: Mutex<Vec<ExportTraceServiceRequest>>,
    pub heads: Mutex<Vec<String>>,
    pub asked: AtomicUsize,
}

pub struct Collector {
    pub taken: Arc<CollectedBatches>,
    endpoint: String,
    _server: Option<FakeHttp>,
}

fn ok() -> Script {
    Script::page("Content-Type: application/x-protobuf\r\n", "")
}

impl Collector {
    pub async fn start() -> Collector {
        Collector::answering(Box::new(|_| ok())).await
    }

    /// It takes a batch only where its answer is a 200.
    pub async fn answering(answer: CollectorReply) -> Collector {
        let taken = Arc::new(CollectedBatches::default());
        let server = FakeHttp::start(handler(taken.clone(), answer)).await;
        Collector {
            endpoint: format!("{}/v1/traces", server.url()),
            taken,
            _server: Some(server),
        }
    }

    pub async fn encrypted(authority: &Authority) -> Collector {
        let taken = Arc::new(CollectedBatches::default());
        let config = authority.identity("localhost").server(None);
        let server =
            FakeHttp::start_encrypted(config, handler(taken.clone(), Box::new(|_| ok()))).await;
        let port = server
            .address()
            .rsplit_once(':')
            .expect("a port")
            .1
            .to_owned();
        Collector {
            endpoint: format!("https://localhost:{port}/v1/traces"),
            taken,
            _server: Some(server),
        }
    }

    /// By gRPC. The first answers have these codes, the others 0.
    pub async fn grpc(codes: &'static [&'static str]) -> Collector {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let endpoint = listener.local_addr().expect("bound").to_string();
        let taken = Arc::new(CollectedBatches::default());
        let shared = taken.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_grpc(stream, shared.clone(), codes));
            }
        });
        Collector {
            taken,
            endpoint,
            _server: None,
        }
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn spans(&self) -> Vec<Span> {
        let batches = self.taken.batches.lock();
        let resources = batches.iter().flat_map(|batch| &batch.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// All spans, once this number is there.
    pub async fn wait_for(&self, count: usize) -> Vec<Span> {
        self.wait_until(|spans| spans.len() >= count).await
    }

    pub async fn wait_until(&self, is_there: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        until_or(
            || is_there(&self.spans()),
            || format!("not in time; there are {:#?}", self.spans()),
        )
        .await;
        self.spans()
    }
}

fn handler(
    taken: Arc<CollectedBatches>,
    answer: CollectorReply,
) -> impl Fn(&Request) -> Script + Send + Sync {
    move |request| {
        taken.asked.fetch_add(1, Ordering::SeqCst);
        let script = answer(request);
        taken.heads.lock().push(request.head.clone());
        if format!("{script:?}").contains("HTTP/1.1 200") {
            keep(&taken, &request.body);
        }
        script
    }
}

fn keep(taken: &CollectedBatches, body: &[u8]) {
    let batch = ExportTraceServiceRequest::decode(body).expect("a request of OTLP");
    taken.batches.lock().push(batch);
}

async fn serve_grpc(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    taken: Arc<CollectedBatches>,
    codes: &'static [&'static str],
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let taken = taken.clone();
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            let mut message = Vec::new();
            while let Some(Ok(bytes)) = body.data().await {
                let _ = body.flow_control().release_capacity(bytes.len());
                message.extend_from_slice(&bytes);
            }
            let nth = taken.asked.fetch_add(1, Ordering::SeqCst);
            taken
                .heads
                .lock()
                .push(format!("{} {:?}", head.uri, head.headers));
            let code = codes.get(nth).copied().unwrap_or("0");
            if code == "0" {
                keep(&taken, &message[5..]);
            }
            let response = http::Response::builder()
                .header("content-type", "application/grpc")
                .body(())
                .expect("a head");
            let mut out = respond.send_response(response, false).expect("a stream");
            let _ = out.send_data(Bytes::from_static(&[0; 5]), false);
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", code.parse().expect("a value"));
            let _ = out.send_trailers(trailers);
        });
    }
}
