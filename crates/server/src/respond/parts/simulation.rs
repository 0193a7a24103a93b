//! Random pages of fragments, served from files in one thread: the cost of each is within its budget, and
//! another task of the thread has its turn after a bounded number of fragments. A seed is printed where it
//! fails, and `SEEDS` of them are tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::exchange::page_budget::{MAX_FRAGMENTS_PER_TURN, MAX_LINES};
use crate::exchange::subrequest;
use crate::respond::composition::Composition;
use crate::test_site::{Random, TestSite};

const SEEDS: u64 = 60;
const PAGES: usize = 12;
const MAX_INCLUDES: u32 = 100;
const MAX_BYTES: usize = 20_000;

/// Creates pages that include each other, themselves and missing files, in both languages.
fn random_page(random: &mut Random) -> String {
    let mut page = String::new();
    for _ in 0..random.below(60) {
        let target = match random.below(8) {
            0 => "/missing".to_owned(),
            1 => "/long".to_owned(),
            _ => format!("/{}", random.below(PAGES)),
        };
        let include = format!("<esi:include src='{target}'/>");
        page.push_str(&match random.below(8) {
            0 => format!("<!--#include virtual=\"{target}\" -->"),
            1 => format!("<esi:include src='/missing' alt='{target}'/>"),
            2 => format!(
                "<esi:try><esi:attempt>{}</esi:attempt><esi:except>{include}</esi:except></esi:try>",
                include.repeat(random.below(30))
            ),
            3 => format!("<esi:vars>$(HTTP_COOKIE{{a}}|'{}')</esi:vars>", "v".repeat(20)),
            4 => "text".repeat(random.below(20)),
            _ => include,
        });
    }
    page
}

fn random_site(random: &mut Random) -> TestSite {
    let folder = tempfile::tempdir().unwrap();
    for page in 0..PAGES {
        std::fs::write(folder.path().join(page.to_string()), random_page(random)).unwrap();
    }
    std::fs::write(folder.path().join("long"), "long ".repeat(800)).unwrap();
    let http = format!(
        "default_type text/html; access_log off; esi always; ssi on; esi_max_depth 20;
         esi_max_includes {MAX_INCLUDES}; ssi_max_includes {MAX_INCLUDES}; fragments_max_bytes {MAX_BYTES};
         log_not_found off; server {{ listen 127.0.0.1:8080; root {}; }}",
        folder.path().display()
    );
    TestSite::new(folder, &http)
}

/// The result of serving a page.
struct ServedPage {
    bytes: usize,
    includes: u32,
    /// Fragments that began between two turns of another task, at most.
    most_between_turns: u32,
}

/// Serves a page to a visitor who leaves after `leaves_after` pieces.
async fn serve(site: &TestSite, path: &str, leaves_after: usize) -> ServedPage {
    let line = format!("GET {path}");
    let mut request = site.request(&line, "Cookie: a=<\r\n", clock::now());
    let reply = subrequest::serve(&mut request).await.expect("a page");
    let mut body = Composition::Esi.around(&request, reply.body);
    let budget = request.page_budget().expect("a budget").clone();
    let (is_over, most) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let visitor = {
        let (budget, is_over, most) = (budget.clone(), is_over.clone(), most.clone());
        tokio::spawn(async move {
            let mut before = 0;
            while !is_over.load(Relaxed) {
                let includes = budget.includes();
                most.fetch_max((includes - before) as usize, Relaxed);
                before = includes;
                tokio::task::yield_now().await;
            }
        })
    };
    let mut bytes = 0;
    for _ in 0..leaves_after {
        match body.next(&request).await {
            Ok(Some(piece)) => bytes += piece.len(),
            Ok(None) | Err(_) => break,
        }
    }
    drop(body);
    let begun = budget.includes();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        budget.includes(),
        begun,
        "none begins after the visitor has left"
    );
    is_over.store(true, Relaxed);
    visitor.await.expect("the other visitor");
    ServedPage {
        bytes,
        includes: begun,
        most_between_turns: most.load(Relaxed) as u32,
    }
}

#[tokio::test]
async fn random_pages_of_fragments_stay_within_their_budget_and_take_turns() {
    let mut met = [false; 2];
    for seed in 1..=SEEDS {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let site = random_site(&mut random);
        for page in 0..PAGES {
            let leaves_after = match random.below(3) {
                0 => random.below(40),
                _ => usize::MAX,
            };
            let lines = site.log_lines();
            let served = serve(&site, &format!("/{page}"), leaves_after).await;
            let said = format!("seed {seed}, page {page}");
            assert!(served.includes <= MAX_INCLUDES, "{said}");
            let own = std::fs::metadata(site.folder.path().join(page.to_string())).unwrap();
            assert!(served.bytes <= own.len() as usize + MAX_BYTES, "{said}");
            assert!(
                served.most_between_turns <= MAX_FRAGMENTS_PER_TURN,
                "{said}"
            );
            let written = site.log_lines() - lines;
            assert!(written <= MAX_LINES as usize + 4, "{said}: {written} lines");
            met[0] |= served.includes == MAX_INCLUDES;
            met[1] |= served.most_between_turns == MAX_FRAGMENTS_PER_TURN;
        }
    }
    assert_eq!(
        met, [true; 2],
        "the pages were large enough to meet the bounds"
    );
}
