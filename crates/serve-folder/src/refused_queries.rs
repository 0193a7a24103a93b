//! Query strings that a `.htaccess` refuses: `RewriteRule .* - [F]` after conditions on `%{QUERY_STRING}`, as a `map`
//! of the query for the alternatives of each condition (`OR`), and one that finds whether all of them hold.

use super::conf_text::{Conf, quoted};
use apache_conf::patterns::{has_flag, is_everything};

/// Such rules of one file; each is matched for every request.
pub(super) const MAX_QUERIES: usize = 20;
/// Patterns of one rule.
const MAX_PATTERNS: usize = 50;

/// Patterns of the query: of each list one must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedQuery {
    asked: Vec<Vec<String>>,
}

impl RefusedQuery {
    /// Of a rule for every path; `None` where its conditions ask anything else.
    pub(super) fn of(
        conditions: &[Vec<String>],
        pattern: &str,
        is_pattern: &dyn Fn(&str) -> bool,
    ) -> Option<RefusedQuery> {
        let mut asked = vec![Vec::new()];
        if !is_everything(pattern) || conditions.is_empty() || conditions.len() > MAX_PATTERNS {
            return None;
        }
        for (at, words) in conditions.iter().enumerate() {
            let [_, subject, pattern, flags @ ..] = &words[..] else {
                return None;
            };
            let is_query = subject.eq_ignore_ascii_case("%{QUERY_STRING}");
            if !is_query || pattern.starts_with(['!', '-', '<', '>', '=']) || !is_pattern(pattern) {
                return None;
            }
            let flags = flags
                .first()
                .map_or("", String::as_str)
                .to_ascii_lowercase();
            let compares = match has_flag(&flags, &["nc", "nocase"]) {
                true => "~*",
                false => "~",
            };
            asked.last_mut()?.push(format!("{compares}{pattern}"));
            match (
                has_flag(&flags, &["or", "ornext"]),
                at + 1 == conditions.len(),
            ) {
                (true, true) => return None,
                (false, false) => asked.push(Vec::new()),
                _ => {}
            }
        }
        Some(RefusedQuery { asked })
    }
}

/// Writes the maps that decide.
pub(super) fn write_maps(conf: &mut Conf, queries: &[RefusedQuery]) {
    for (number, query) in queries.iter().enumerate() {
        let parts = (0..query.asked.len()).map(|part| format!("$refused_query_{number}_{part}"));
        let parts: Vec<String> = parts.collect();
        for (patterns, part) in query.asked.iter().zip(&parts) {
            conf.open(&format!("map $args {part}"));
            for pattern in patterns {
                conf.line(&format!("{} 1;", quoted(pattern)));
            }
            conf.close();
        }
        conf.open(&format!(
            "map \"{}\" $refused_query_{number}",
            parts.concat()
        ));
        conf.line(&format!("{} 1;", "1".repeat(parts.len())));
        conf.close();
        conf.gap();
    }
}

/// Refuses them, in a server.
pub(super) fn refuse(conf: &mut Conf, queries: &[RefusedQuery]) {
    for number in 0..queries.len() {
        conf.line(&format!("if ($refused_query_{number}) {{ return 403; }}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(conditions: &[&str], pattern: &str) -> Option<RefusedQuery> {
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
        let conditions: Vec<Vec<String>> = conditions.iter().map(words).collect();
        RefusedQuery::of(&conditions, pattern, &|_| true)
    }

    #[test]
    fn alternatives_are_one_map_and_others_must_hold_as_well() {
        let conditions = [
            "RewriteCond %{QUERY_STRING} a=[^(] [NC,OR]",
            "RewriteCond %{QUERY_STRING} b",
            "RewriteCond %{QUERY_STRING} c",
        ];
        let query = query(&conditions, ".*").expect("a rule");
        let mut conf = Conf::default();
        write_maps(&mut conf, &[query]);
        let expected = "map $args $refused_query_0_0 {\n    \"~*a=[^(]\" 1;\n    \"~b\" 1;\n}\n\
            map $args $refused_query_0_1 {\n    \"~c\" 1;\n}\n\
            map \"$refused_query_0_0$refused_query_0_1\" $refused_query_0 {\n    11 1;\n}\n\n";
        assert_eq!(conf.text, expected);
    }

    #[test]
    fn other_conditions_and_paths_are_no_such_rule() {
        for (conditions, pattern) in [
            (&[][..], ".*"),
            (&["RewriteCond %{QUERY_STRING} a"], "^b"),
            (&["RewriteCond %{QUERY_STRING} !a"], ".*"),
            (&["RewriteCond %{QUERY_STRING} a [OR]"], ".*"),
            (
                &[
                    "RewriteCond %{QUERY_STRING} a",
                    "RewriteCond %{HTTP_HOST} b",
                ],
                ".*",
            ),
        ] {
            assert_eq!(query(conditions, pattern), None, "{conditions:?} {pattern}");
        }
    }
}
