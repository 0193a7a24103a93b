//! Bugs that were, each with its story.

use std::path::Path;

use nginx_conf::{MemoryLoader, load};

/// Found by the fuzzer: words that are not UTF-8 give warnings, which counted
/// towards "too many errors". Text handed to a worker is UTF-8 by then, so the
/// worker read on where its parent had stopped.
#[test]
fn a_worker_reads_as_far_as_its_parent_did() {
    let mut text = b"\xff \xff \"\xff\"x; ".repeat(40);
    text.extend_from_slice(&b";".repeat(90));
    text.extend_from_slice(b"last;");
    let loader: MemoryLoader = [("/a", text.as_slice())].into_iter().collect();
    let parent = load(Path::new("/a"), Path::new("/"), &loader);
    let handed_over = MemoryLoader::from(&parent.sources);
    let worker = load(Path::new("/a"), Path::new("/"), &handed_over);
    assert!(worker.ast.says_the_same(&parent.ast));
}
