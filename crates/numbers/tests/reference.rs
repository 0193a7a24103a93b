//! `docs/metrics.md` agrees with the table (`MAYFLY_BLESS=1` writes it), and the dashboard for
//! Grafana shows numbers of the table alone.

use std::path::{Path, PathBuf};

use numbers::Number;
use numbers::table::TABLE;

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

#[test]
fn the_page_of_metrics_says_what_the_table_says() {
    testkit::golden::assert_file(&document("metrics.md"), &numbers::reference());
}

/// The names that a text has of metrics, without `mayfly_` and the suffix of the kind.
fn names_in(text: &str) -> Vec<String> {
    let names = text.match_indices("mayfly_").map(|(at, prefix)| {
        let rest = &text[at + prefix.len()..];
        let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    names.collect()
}

#[test]
fn the_dashboard_for_grafana_asks_for_numbers_of_the_table_alone() {
    let text = std::fs::read_to_string(document("grafana-dashboard.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let names = names_in(&text);
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let base = ["_total", "_bucket", "_count", "_sum"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let known = Number::named(base.unwrap_or(&name));
        assert!(known.is_some(), "{name} is no number of the table");
    }
    assert!(!TABLE.is_empty());
}
