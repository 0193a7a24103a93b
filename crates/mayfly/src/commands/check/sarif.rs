//! The report as SARIF 2.1.0 (OASIS), which editors and code hosts show beside the lines.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nginx_conf::{Diagnostic, Sources, Span};
use serde_json::{Value, json};
use site::{HAZARD_RULES, Hazard, HazardEdit};

use super::report::{CheckReport, severity};

/// Complaints about the text itself have no rule of their own.
const COMPLAINT: &str = "configuration";

pub fn report(report: &CheckReport) -> Value {
    let mut rules: Vec<Value> = HAZARD_RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.name,
                "shortDescription": { "text": rule.name.replace('-', " ") },
                "fullDescription": { "text": rule.happens },
                "defaultConfiguration": { "level": severity(rule.severity) },
            })
        })
        .collect();
    rules.push(json!({
        "id": COMPLAINT,
        "shortDescription": { "text": "what a start would refuse or warn of" },
    }));
    let hazards = report.hazards.iter().map(|it| hazard(it, &report.sources));
    let complaints = report.complaints.iter();
    let complaints = complaints.map(|it| complaint(it, &report.sources, &report.file));
    let problems = report.problems.iter().map(|problem| {
        json!({
            "ruleId": COMPLAINT,
            "level": "error",
            "message": { "text": problem },
            "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri(&report.file) } } }],
        })
    });
    let results: Vec<Value> = hazards.chain(complaints).chain(problems).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "mayfly",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn hazard(hazard: &Hazard, sources: &Sources) -> Value {
    let rule = hazard.rule;
    let text = format!("{}. {} Write: {}", hazard.found, rule.happens, hazard.write);
    let mut result = json!({
        "ruleId": rule.name,
        "ruleIndex": HAZARD_RULES.iter().position(|it| it.name == rule.name),
        "level": severity(rule.severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": location(hazard.span, sources) }],
    });
    if !hazard.edits.is_empty() {
        let changes: Vec<Value> = hazard.edits.iter().map(|it| change(it, sources)).collect();
        let fix = json!({ "description": { "text": hazard.write }, "artifactChanges": changes });
        result["fixes"] = json!([fix]);
    }
    result
}

fn change(edit: &HazardEdit, sources: &Sources) -> Value {
    let location = location(edit.span, sources);
    json!({
        "artifactLocation": location["artifactLocation"],
        "replacements": [{
            "deletedRegion": location["region"],
            "insertedContent": { "text": edit.text },
        }],
    })
}

fn complaint(complaint: &Diagnostic, sources: &Sources, file: &Path) -> Value {
    let parts = [
        Some(&complaint.message),
        complaint.label.as_ref(),
        complaint.hint.as_ref(),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let location = match complaint.span {
        Some(span) => location(span, sources),
        None => json!({ "artifactLocation": { "uri": uri(file) } }),
    };
    json!({
        "ruleId": COMPLAINT,
        "level": if complaint.is_error() { "error" } else { "warning" },
        "message": { "text": parts.join("; ") },
        "locations": [{ "physicalLocation": location }],
    })
}

fn location(span: Span, sources: &Sources) -> Value {
    let end = Span {
        start: span.end,
        ..span
    };
    let (Some(start), Some(end)) = (sources.position(span), sources.position(end)) else {
        return json!({});
    };
    json!({
        "artifactLocation": { "uri": uri(start.path) },
        "region": {
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
        },
    })
}

/// The path as a URI (RFC 3986, RFC 8089), relative where the path is.
fn uri(path: &Path) -> String {
    let mut uri = String::from(if path.is_absolute() { "file://" } else { "" });
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            // Writing into a string does not fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}
