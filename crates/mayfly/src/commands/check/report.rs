//! The report of `check`: lines that run as they are, lines without a meaning here, missing directives
//! with their replacements, and unsafe parts.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use nginx_conf::{Diagnostic, Sources};
use site::{ExplainedDirective, Hazard, HazardSeverity, UnkeyedInputs, Verdict};

use crate::config;
use command_line::Exit;

pub struct CheckReport {
    pub file: PathBuf,
    pub sources: Sources,
    pub directives: Vec<ExplainedDirective>,
    pub hazards: Vec<Hazard>,
    /// The mistakes in the text, except for warnings that are reported as hazards.
    pub complaints: Vec<Diagnostic>,
    /// Certificates and files of tokens that cannot be used.
    pub problems: Vec<String>,
    /// The parts of requests that are sent to applications and are not in the cache key.
    pub notes: Vec<UnkeyedInputs>,
    pub is_refused: bool,
}

impl CheckReport {
    pub fn of(file: &Path, reading: &site::ReadConfiguration) -> CheckReport {
        let hazards = site::hazards(&reading.ast);
        let is_hazard = |complaint: &Diagnostic| {
            !complaint.is_error() && hazards.iter().any(|it| Some(it.span) == complaint.span)
        };
        let complaints = reading.diagnostics.iter().filter(|it| !is_hazard(it));
        CheckReport {
            file: file.to_owned(),
            sources: reading.sources.clone(),
            directives: site::explain(&reading.ast, &reading.sources, &reading.complaints),
            complaints: complaints.cloned().collect(),
            hazards,
            problems: Vec::new(),
            notes: Vec::new(),
            is_refused: false,
        }
    }

    pub fn exit(&self) -> Exit {
        let worst = self.hazards.iter().map(|it| it.rule.severity).max();
        match worst {
            _ if self.mistakes() > 0 => Exit::Refused,
            Some(HazardSeverity::Error) => Exit::Errors,
            Some(HazardSeverity::Warning) => Exit::Warnings,
            None => Exit::Done,
        }
    }

    /// Returns the number of mistakes that keep the configuration from being served.
    fn mistakes(&self) -> usize {
        let errors = self.complaints.iter().filter(|it| it.is_error()).count();
        (errors + self.problems.len()).max(usize::from(self.is_refused))
    }

    /// Complaints for the terminal, underlined, and how many of them are mistakes.
    pub fn show_complaints(&self) {
        config::show(&self.complaints, &self.sources);
        let mut stderr = io::stderr().lock();
        let file = self.file.display();
        // The reader may be gone.
        for problem in &self.problems {
            let _ = writeln!(stderr, "error: {problem}");
        }
        for note in &self.notes {
            let _ = writeln!(stderr, "note: {note}");
        }
        let _ = match self.mistakes() {
            0 => writeln!(stderr, "{file}: no mistakes found"),
            1 => writeln!(stderr, "{file}: 1 mistake"),
            count => writeln!(stderr, "{file}: {count} mistakes"),
        };
    }

    /// The report for people. `explained`: each directive was shown before.
    pub fn text(&self, explained: bool) -> String {
        let mut out = String::new();
        // Writing into a string does not fail.
        let _ = self.write(&mut out, explained);
        out
    }

    fn write(&self, out: &mut String, explained: bool) -> std::fmt::Result {
        if !self.hazards.is_empty() {
            writeln!(out, "unsafe: {}", self.hazards.len())?;
        }
        for hazard in &self.hazards {
            let rule = hazard.rule;
            writeln!(out, "  {} {}", severity(rule.severity), rule.name)?;
            writeln!(out, "    {}: {}", self.place(hazard), hazard.found)?;
            writeln!(out, "    happens: {}", rule.happens)?;
            let by_fix = if hazard.edits.is_empty() {
                ""
            } else {
                "  (--fix writes it)"
            };
            writeln!(out, "    write:   {}{by_fix}\n", hazard.write)?;
        }
        self.write_section(out, "missing", missing)?;
        self.write_section(out, "without a meaning here", without_meaning)?;
        let works = self
            .directives
            .iter()
            .filter(|it| matches!(it.verdict, Verdict::Works(_)));
        let how = if explained {
            ""
        } else {
            " (--explain lists them)"
        };
        let count = works.count();
        let nouns = if count == 1 {
            "directive"
        } else {
            "directives"
        };
        writeln!(out, "runs as it is: {count} {nouns}{how}")
    }

    fn write_section(
        &self,
        out: &mut String,
        title: &str,
        text_of: fn(&ExplainedDirective) -> Option<String>,
    ) -> std::fmt::Result {
        let lines: Vec<_> = self
            .directives
            .iter()
            .filter_map(|it| Some((it, text_of(it)?)))
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(out, "{title}: {}", lines.len())?;
        for (line, text) in lines {
            writeln!(
                out,
                "  {}:{}: {}\n    {text}",
                line.file.display(),
                line.line,
                line.text
            )?;
        }
        writeln!(out)
    }

    /// `FILE:LINE`
    fn place(&self, hazard: &Hazard) -> String {
        match self.sources.position(hazard.span) {
            Some(at) => format!("{}:{}", at.path.display(), at.line),
            None => String::new(),
        }
    }
}

pub fn severity(severity: HazardSeverity) -> &'static str {
    match severity {
        HazardSeverity::Warning => "warning",
        HazardSeverity::Error => "error",
    }
}

/// Returns the need of a line that Mayfly does not have.
pub fn missing(line: &ExplainedDirective) -> Option<String> {
    let hint = line.hint.as_deref();
    match &line.verdict {
        Verdict::Unsupported(advice) => Some(format!("write: {advice}")),
        Verdict::Missing(why) => Some(format!("no effect: {why}")),
        Verdict::Misplaced => Some(hint.unwrap_or("not allowed here").to_owned()),
        Verdict::Unknown => Some(hint.unwrap_or("no directive of this name").to_owned()),
        Verdict::Refused(why) => Some(match hint {
            Some(hint) => format!("{why}; {hint}"),
            None => why.clone(),
        }),
        Verdict::Works(_) | Verdict::Ignored(_) => None,
    }
}

/// Returns the reason why a line may stay and does nothing.
pub fn without_meaning(line: &ExplainedDirective) -> Option<String> {
    match &line.verdict {
        Verdict::Ignored(why) => Some(format!("because: {why}")),
        _ => None,
    }
}
