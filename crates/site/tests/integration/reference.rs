//! `docs/directives.md` matches the directive table. `MAYFLY_BLESS=1` writes it.

use std::path::Path;

#[test]
fn the_reference_page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/directives.md");
    testkit::golden::assert_file(&path, &site::reference());
}
