//! `docs/metrics.md`, made from the table. A test compares them.

use std::fmt::Write as _;

use crate::definition::{NumberKind, Values};
use crate::exposition::full_name;
use crate::table::TABLE;

const INTRODUCTION: &str = "\
<!-- Made from the table in crates/numbers/src/table.rs: change it there. -->

# Metrics

What Mayfly counts about itself. The same numbers, in the same words, are shown by the directives `metrics`
(Prometheus and OpenMetrics) and `dashboard` ([dashboard.md](dashboard.md)), by `mayfly top`, and by the control
socket (`GET /1/numbers`).

```nginx
location = /metrics { metrics; }
```

```yaml
scrape_configs:
  - job_name: mayfly
    static_configs: [{targets: [\"localhost:8080\"]}]
```

[grafana-dashboard.json](grafana-dashboard.json) is a dashboard for Grafana.

- A counter begins at 0 when the serving process starts. A reload keeps it, but for zones and upstreams that the
  new configuration describes differently: these are new.
- Values of labels come from lists in this table or from names in the configuration. No client can add one.
- A histogram has a series `_bucket` for each bound, and `_sum` and `_count`.
- The control socket and `mayfly top --json` leave out `mayfly_` and `_total`.

| metric | kind | labels | what it is |
| --- | --- | --- | --- |
";

/// The whole page in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(INTRODUCTION);
    for definition in TABLE {
        let labels = definition.labels.iter().map(|label| match label.values {
            Values::Fixed(values) => {
                let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                format!("`{}`: {}", label.name, values.join(", "))
            }
            Values::Configured(what) => format!("`{}`: {what}", label.name),
        });
        let labels: Vec<String> = labels.collect();
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            full_name(definition),
            definition.kind.word(),
            labels.join("; "),
            with_code(definition.help),
        );
    }
    page.push_str("\n## Bounds of histograms\n\n");
    for definition in TABLE {
        if let NumberKind::Histogram(bounds) = definition.kind {
            let bounds: Vec<String> = bounds.iter().map(f64::to_string).collect();
            let _ = writeln!(page, "- `{}`: {}", full_name(definition), bounds.join(", "));
        }
    }
    page
}

/// Names of variables and directives as code.
fn with_code(help: &str) -> String {
    let words = help.split(' ').map(|word| {
        let name = word.trim_matches(['(', ',', '.', ':', ')']);
        let is_name = name.starts_with('$') || name.contains('_');
        match is_name {
            true => word.replacen(name, &format!("`{name}`"), 1),
            false => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
