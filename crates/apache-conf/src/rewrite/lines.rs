//! Lines that are done where conditions hold: an `if`, or a variable that conditions take back.

use super::condition::{CapturingPattern, Test};
use super::emit::Emitter;

impl Emitter<'_> {
    /// Writes what is done where of each group a test holds.
    pub fn write(
        &mut self,
        groups: &[Vec<Test>],
        captured: Option<&CapturingPattern>,
        lines: &[String],
    ) {
        match groups {
            [] => lines.iter().for_each(|line| self.conf.line(line)),
            [group] if let [Test::If(question)] = &group[..] => {
                if let Some(setup) = &question.setup {
                    self.conf.line(setup);
                }
                let sets = captured.map_or(0, |it| it.count);
                match (sets, lines) {
                    (0, [line]) => self
                        .conf
                        .line(&format!("if ({}) {{ {line} }}", question.yes)),
                    _ => {
                        self.conf.open(&format!("if ({})", question.yes));
                        self.set_captured(sets);
                        lines.iter().for_each(|line| self.conf.line(line));
                        self.conf.close();
                    }
                }
            }
            groups => {
                self.numbers += 1;
                let name = format!("$applies_{}", self.numbers);
                self.conf.line(&format!("set {name} 1;"));
                for group in groups {
                    self.group(&name, group, captured);
                }
                match lines {
                    [line] => self.conf.line(&format!("if ({name}) {{ {line} }}")),
                    _ => {
                        self.conf.open(&format!("if ({name})"));
                        lines.iter().for_each(|line| self.conf.line(line));
                        self.conf.close();
                    }
                }
            }
        }
    }

    fn set_captured(&mut self, count: usize) {
        for number in 1..=count {
            self.conf
                .line(&format!("set $captured_{number} ${number};"));
        }
    }

    /// Takes the variable back where no test of the group holds.
    fn group(&mut self, name: &str, group: &[Test], captured: Option<&CapturingPattern>) {
        let questions = group.iter().filter_map(|test| match test {
            Test::If(question) => Some(question),
            _ => None,
        });
        let holds = |it: &Option<CapturingPattern>| captured.is_some() && it.as_ref() == captured;
        let questions: Vec<_> = questions.collect();
        if let [question] = questions[..]
            && !holds(&question.captured)
        {
            if let Some(setup) = &question.setup {
                self.conf.line(setup);
            }
            self.conf
                .line(&format!("if ({}) {{ set {name} \"\"; }}", question.no));
            return;
        }
        self.conf.line("set $one_of \"\";");
        // The first that holds is the last that captures.
        for question in questions.iter().rev() {
            if let Some(setup) = &question.setup {
                self.conf.line(setup);
            }
            match &question.captured {
                Some(it) if captured.is_some() && it.count > 0 => {
                    self.conf.open(&format!("if ({})", question.yes));
                    self.conf.line("set $one_of 1;");
                    self.set_captured(it.count);
                    self.conf.close();
                }
                _ => self
                    .conf
                    .line(&format!("if ({}) {{ set $one_of 1; }}", question.yes)),
            }
        }
        self.conf
            .line(&format!("if ($one_of = \"\") {{ set {name} \"\"; }}"));
    }
}

/// The same, so that `.` fits line breaks as well.
pub fn over_all_lines(test: &Test) -> Test {
    match test {
        Test::If(question) => {
            let mut question = question.clone();
            for text in [&mut question.yes, &mut question.no] {
                let has_any = text.contains(".*") || text.contains(".+");
                if has_any && let Some(at) = text.find('"') {
                    text.insert_str(at + 1, "(?s)");
                }
            }
            Test::If(question)
        }
        other => other.clone(),
    }
}
