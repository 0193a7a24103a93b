//! Pages that the server asks itself for: after a purge (`cache_refill`), and by `mayfly warm`.

mod command;
mod refill;

use std::sync::Arc;

use parking_lot::Mutex;
use testkit::fake_php::{FakePhp, Request, Script};

/// PHP that remembers each request: its target, and the visitor's fields in it.
struct Php {
    fake: FakePhp,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Php {
    /// `script` makes the answer to a target.
    async fn new(script: impl Fn(&str, &Request) -> Script + Send + Sync + 'static) -> Php {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = asked.clone();
        let fake = FakePhp::tcp(move |request| {
            let target = request.param("REQUEST_URI");
            let mut note = target.to_owned();
            for (name, short) in [
                ("HTTP_COOKIE", "cookie"),
                ("HTTP_ACCEPT_LANGUAGE", "language"),
                ("REMOTE_ADDR", "from"),
            ] {
                let value = request.param(name);
                if !value.is_empty() {
                    note.push_str(&format!(" {short}={value}"));
                }
            }
            noted.lock().push(note);
            script(target, request)
        })
        .await;
        Php { fake, asked }
    }

    /// Takes the targets that were asked for since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }

    /// Like [`Self::take`], sorted.
    fn take_sorted(&self) -> Vec<String> {
        let mut asked = self.take();
        asked.sort();
        asked
    }
}
