//! The report as JSON.

use serde_json::{Value, json};
use site::{ExplainedDirective, Verdict};

use super::report::{CheckReport, missing, severity, without_meaning};

pub fn report(report: &CheckReport) -> Value {
    let listed = |text_of: fn(&ExplainedDirective) -> Option<String>| -> Vec<Value> {
        let lines = report.directives.iter();
        lines
            .filter_map(|it| {
                Some(json!({
                    "file": it.file, "line": it.line, "directive": it.text, "text": text_of(it)?,
                }))
            })
            .collect()
    };
    let hazards: Vec<Value> = report
        .hazards
        .iter()
        .map(|hazard| {
            let at = report.sources.position(hazard.span);
            json!({
                "rule": hazard.rule.name,
                "severity": severity(hazard.rule.severity),
                "file": at.map(|at| at.path),
                "line": at.map(|at| at.line),
                "column": at.map(|at| at.column),
                "found": hazard.found,
                "happens": hazard.rule.happens,
                "write": hazard.write,
                "fixable": !hazard.edits.is_empty(),
            })
        })
        .collect();
    let complaints: Vec<Value> = report
        .complaints
        .iter()
        .map(|it| {
            let at = it.span.and_then(|span| report.sources.position(span));
            json!({
                "severity": if it.is_error() { "error" } else { "warning" },
                "file": at.map(|at| at.path),
                "line": at.map(|at| at.line),
                "column": at.map(|at| at.column),
                "message": it.message,
                "label": it.label,
                "hint": it.hint,
            })
        })
        .collect();
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    json!({
        "file": report.file,
        "accepted": !report.is_refused && report.problems.is_empty(),
        "unsafe": hazards,
        "missing": listed(missing),
        "without_meaning": listed(without_meaning),
        "works": listed(works),
        "complaints": complaints,
        "problems": report.problems,
        "notes": notes,
    })
}

/// Returns the purpose of a line that works.
fn works(line: &ExplainedDirective) -> Option<String> {
    match line.verdict {
        Verdict::Works(what) => Some(what.to_owned()),
        _ => None,
    }
}
