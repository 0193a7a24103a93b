//! Parts of a request that shape the answer without being in the key: one visitor sends
//! them, and the next is shown what came of them.

use testkit::fake_http::{FakeHttp, Script};
use testkit::serving::Serving;

/// An application that shows everything that it was sent.
async fn mirror() -> FakeHttp {
    FakeHttp::start(|request| Script::page("Content-Type: text/html\r\n", &request.head)).await
}

async fn serve(upstream: &FakeHttp) -> Serving {
    let url = format!("http://{}", upstream.address());
    Serving::start(&crate::program(), &url, &["--ttl", "1h"]).await
}

/// The others mean nothing where nothing is shared.
#[tokio::test]
async fn what_two_visitors_ask_alike_is_shared() {
    let upstream = mirror().await;
    let server = serve(&upstream).await;
    let target = server.target();
    assert_eq!(target.get("/page").await.field("x-cache"), "MISS");
    assert_eq!(target.get("/page").await.field("x-cache"), "HIT");
}
