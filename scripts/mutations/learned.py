#!/usr/bin/env python3
"""Does a comparison with MariaDB find errors in the rules of crates/learned?

Each error of the table below is planted into a copy of the crate, all of them at once, each behind a
question to the environment. MariaDB answers once; then the generator's pairs are judged once for each
error. An error is found if a result that changed was not matched.

    scripts/mutations/learned.py [--pairs 60000] [--seed 1] [NAME...]
"""

import argparse
import os
import subprocess
import sys
import tempfile

import run

CRATE = "learned"
TEXT = "ColumnKind::Text { most_characters: description.most_characters }"

# Name; file; what is there; what stands there instead, where FAULT is true for the planted error.
FAULTS = (
    ("texts in other letters are different", "value.rs",
     "|| are_equal_folded(left, right)", "|| (are_equal_folded(left, right) && !FAULT)"),
    ("blanks at the end count", "value.rs",
     "text.trim_ascii_end().iter()", "(if FAULT { text } else { text.trim_ascii_end() }).iter()"),
    ("texts beyond ASCII are compared by their bytes", "value.rs",
     "text.iter().all(|byte| matches!(byte, b' '..=b'~'))", "FAULT || text.iter().all(|byte| matches!(byte, b' '..=b'~'))"),
    ("texts are ordered by their bytes", "value.rs",
     "if matches!(kind, ColumnKind::Bytes { .. }) =>\n        {\n            left[..]",
     "if FAULT || matches!(kind, ColumnKind::Bytes { .. }) =>\n        {\n            left[..]"),
    ("all collations have the same rules", "schema.rs",
     "if has_known_rules(description.collation) =>", "if FAULT || has_known_rules(description.collation) =>"),
    ("CHAR is compared like VARCHAR", "schema.rs",
     '        "varbinary" | "blob"', '        "char" if FAULT => return TEXT,\n        "varbinary" | "blob"'),
    ("ENUM is compared like VARCHAR", "schema.rs",
     '        "datetime" => return', '        "enum" if FAULT => return TEXT,\n        "datetime" => return'),
    ("DECIMAL is compared like INT", "schema.rs",
     '        "date" => return', '        "decimal" if FAULT => return ColumnKind::Integer { least: 0, most: 1 << 40 },\n        "date" => return'),
    ("texts are stored whole", "value.rs",
     "text.len() as u64 <= most_characters", "(FAULT || text.len() as u64 <= most_characters)"),
    ("bytes are stored whole", "value.rs",
     "text.len() as u64 <= most_bytes", "(FAULT || text.len() as u64 <= most_bytes)"),
    ("numbers are stored whatever their size", "value.rs",
     "(least..=most).contains(&i128::from(number))", "FAULT || (least..=most).contains(&i128::from(number))"),
    ("zero is stored in a column that counts up", "value.rs",
     "(Comparable::Integer(0), _) if column.counts_up => false,", "(Comparable::Integer(0), _) if column.counts_up && !FAULT => false,"),
    ("NULL is stored in any column", "value.rs",
     "column.is_nullable && !column.counts_up", "FAULT || (column.is_nullable && !column.counts_up)"),
    ("what the rules do not say is different", "value.rs",
     "let Some(value) = comparable(kind, value) else {\n        return Possible::ANY;",
     "let Some(value) = comparable(kind, value) else {\n        return if FAULT { Possible::FALSE } else { Possible::ANY };"),
    ("dates in any form are compared by their bytes", "value.rs",
     "ValueRef::Text(text)) if is_date_and_time(text)", "ValueRef::Text(text)) if FAULT || is_date_and_time(text)"),
    ("days that do not exist are compared", "value.rs",
     "&& (1..=28).contains(&number(6, 8))", "&& (FAULT || (1..=28).contains(&number(6, 8)))"),
    ("fractions are cut", "value.rs",
     "            _ => Self::Other,\n        }\n    }\n\n    pub(crate) fn as_ref",
     "            _ if FAULT => Self::Integer(digits.parse::<f64>().map_or(0, |it| it as i64)),\n            _ => Self::Other,\n        }\n    }\n\n    pub(crate) fn as_ref"),
    ("patterns are compared by their bytes", "value.rs",
     "} else if matches!(kind, ColumnKind::Bytes { .. })\n", "} else if FAULT || matches!(kind, ColumnKind::Bytes { .. })\n"),
    ("patterns have no escapes", "value.rs",
     "|| pattern.contains(&b'\\\\')", "|| (!FAULT && pattern.contains(&b'\\\\'))"),
    ("what equals a text is that text", "value.rs",
     "if matches!(column.kind, ColumnKind::Text { .. }) => {\n            Some(KnownContent::EqualTo",
     "if !FAULT && matches!(column.kind, ColumnKind::Text { .. }) => {\n            Some(KnownContent::EqualTo"),
    ("NOT changes nothing", "condition.rs",
     "Self::Not(inner) => inner.evaluate(row, arguments).not(),",
     "Self::Not(inner) => match inner.evaluate(row, arguments) { it if FAULT => it, it => it.not() },"),
    ("OR is AND", "condition.rs",
     "any.or(part.evaluate(row, arguments))", "(if FAULT { part.evaluate(row, arguments) } else { any.or(part.evaluate(row, arguments)) })"),
    ("BETWEEN is without its bounds", "condition.rs",
     "bound(Comparison::GreaterOrEqual, low)?", "bound(if FAULT { Comparison::Greater } else { Comparison::GreaterOrEqual }, low)?"),
    ("5 < column is column < 5", "condition.rs",
     "comparison: turned,", "comparison: if FAULT { comparison } else { turned },"),
    ("the sign of a number is ignored", "condition.rs",
     "if is_negated { value.negated() } else { value }", "if is_negated && !FAULT { value.negated() } else { value }"),
    ("conditions of WHERE count for the outer side", "read.rs",
     "if filters.iter().any(Condition::rejects_nulls) {", "if FAULT || filters.iter().any(Condition::rejects_nulls) {"),
    ("conditions of ON count for the side that is kept", "read.rs",
     "            None => filters,\n            Some(on) =>",
     "            None if FAULT => filters.into_iter().chain(self.tables.iter().filter_map(|it| it.outer.as_ref()?.as_ref()).map(|on| condition(on, &column))).collect(),\n            None => filters,\n            Some(on) =>"),
    ("RIGHT JOIN is an inner join", "read.rs",
     "self.on(constraint)?;\n                    self.is_opaque = true;",
     "let on = self.on(constraint)?;\n                    self.is_opaque = !FAULT;\n                    if FAULT { self.filters.extend(on); }"),
    ("joins in parentheses are inner joins", "read.rs",
     "self.is_opaque = true;\n                self.add(", "self.is_opaque = !FAULT;\n                self.add("),
    ("only the row after a change counts", "read.rs",
     "(self.may_have(old, arguments) ||", "((self.may_have(old, arguments) && !FAULT) ||"),
    ("only the row before a change counts", "read.rs",
     "|| self.may_have(new, arguments))", "|| (self.may_have(new, arguments) && !FAULT))"),
    ("columns that change by themselves are not seen", "read.rs",
     "column.changes_by_itself && *is_seen", "column.changes_by_itself && *is_seen && !FAULT"),
    ("columns of conditions are not seen", "read.rs",
     "if let (Some(columns), Some(name)) = (&mut self.columns, name) {",
     "if let (Some(columns), Some(name), false) = (&mut self.columns, name, FAULT && self.depth == 1) {"),
    ("a star is no column", "read.rs",
     "                    self.columns = None;\n                }\n                SelectItem::QualifiedWildcard(..)",
     "                    if !FAULT { self.columns = None; }\n                }\n                SelectItem::QualifiedWildcard(..)"),
    ("tables behind views are not read", "read.rs",
     "own.chain(behind_views).collect()", "own.chain(behind_views.filter(|_| !FAULT)).collect()"),
    ("of two values for a column the first counts", "write.rs",
     "            new.set(*position, known.map(|known| vec![known]));",
     "            if !FAULT || new.contents(*position).is_none() { new.set(*position, known.map(|known| vec![known])); }"),
    ("REPLACE removes nothing", "write.rs",
     "None => RowChange::Deleted(old),", "None if FAULT => continue,\n                        None => RowChange::Deleted(old),"),
    ("ON DUPLICATE KEY UPDATE updates nothing", "write.rs",
     "Some(assignments) => self.updated(table, old, assignments)?,", "Some(_) if FAULT => continue,\n                        Some(assignments) => self.updated(table, old, assignments)?,"),
    ("a table has one unique key", "write.rs",
     "for key in table.unique_keys.as_ref()? {", "for key in table.unique_keys.as_ref()?.iter().take(if FAULT { 1 } else { usize::MAX }) {"),
    ("a given number is a new one", "write.rs",
     "column.counts_up && !self.is_number_given", "column.counts_up && (FAULT || !self.is_number_given)"),
    ("triggers change no row that is written", "write.rs",
     ".filter(|_| !table.has_triggers)", ".filter(|_| FAULT || !table.has_triggers)"),
    ("triggers and foreign keys write nothing", "write.rs",
     "described.has_triggers || !inserts_alone", "(described.has_triggers || !inserts_alone) && !FAULT"),
    ("OR of a change is AND", "write.rs",
     "op: BinaryOperator::And,\n                right,\n            } => {\n                self.add_known",
     "op,\n                right,\n            } if *op == BinaryOperator::And || (FAULT && *op == BinaryOperator::Or) => {\n                self.add_known"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the errors; without one, all")
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    wanted = [fault for fault in FAULTS if not args.names or fault[0] in args.names]
    assert wanted, "no error has such a name"
    found = 0
    with tempfile.TemporaryDirectory(prefix="mayfly-mutations-") as tree:
        run.copy(tree)
        plant(os.path.join(tree, "crates", CRATE, "src"))
        program = build(tree)
        record = os.path.join(tree, "pairs")
        observed = {"LEARNED_RECORD": record, "LEARNED_PAIRS": str(args.pairs), "LEARNED_SEED": str(args.seed)}
        assert judge(tree, program, {**observed, "PLANTED_FAULT": "0"}) == 0, "it fails without an error"
        assert judge(tree, program, {"LEARNED_REPLAY": record, "PLANTED_FAULT": "0"}) == 0, "it fails when it is replayed"
        for number, fault in enumerate(FAULTS, 1):
            if fault in wanted:
                is_found = judge(tree, program, {"LEARNED_REPLAY": record, "PLANTED_FAULT": str(number)}) != 0
                found += is_found
                print(f"{'found' if is_found else 'NOT FOUND'}: {fault[0]}", flush=True)
    print(f"{found} of {len(wanted)} planted errors were found")
    sys.exit(found < len(wanted))


def planted(source):
    """The changed files of the crate, by their paths."""
    return run.with_errors(source, ((*fault, new.replace("TEXT", TEXT)) for *fault, new in FAULTS))


def plant(source):
    texts = planted(source)
    texts["lib.rs"] = run.read(source, "lib.rs")
    run.write(source, texts, [])


def build(tree):
    programs, refused = run.build(tree, CRATE)
    assert programs, f"the compiler refuses {refused}"
    return next(program for program in programs if os.path.basename(program).startswith("mariadb-"))


def judge(tree, program, environment):
    folder = os.path.join(tree, "crates", CRATE)
    return subprocess.run([program, "-q"], cwd=folder, env={**os.environ, **environment}, capture_output=True).returncode


if __name__ == "__main__":
    main()
