//! `docs/directives.md` is what the directive table says. `MAYFLY_BLESS=1` writes it.

use std::path::Path;

#[test]
fn the_reference_page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/directives.md");
    let page = site::reference();
    if std::env::var_os("MAYFLY_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/directives.md is not what the table says; run with MAYFLY_BLESS=1"
    );
}
