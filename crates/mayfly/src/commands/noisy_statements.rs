//! `mayfly advise --learned`: the statements of learned pages that writes concern most often.

use command_line::{AdviseArgs, Exit, print, printable};
use numbers::TopEntry;

use crate::commands::running_server::{self, explained, find};

/// Asks the running server.
pub fn run(args: &AdviseArgs) -> Exit {
    running_server::run(async {
        let path = find(&args.server, &[]).await?;
        let pages = control::client::pages(&path).await;
        let pages = pages.map_err(|error| explained(&path, &error))?;
        Ok(print(&match args.json {
            true => serde_json::to_string_pretty(&pages.noisy).unwrap_or_default() + "\n",
            false => noisy(&pages.noisy),
        }))
    })
}

/// The statements for people. Those of all pages that are written every minute keep no page for long.
fn noisy(entries: &[TopEntry]) -> String {
    if entries.is_empty() {
        return "no write has concerned a learned page yet\n".to_owned();
    }
    let mut text = format!("{:>8} {:>10}  STATEMENT OF PAGES\n", "WRITES", "SUSPECT");
    for entry in entries {
        let name: String = entry.name.chars().map(printable).collect();
        text.push_str(&format!(
            "{:>8} {:>10}  {name}\n",
            entry.count, entry.weight
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noisiest_statements_are_a_table() {
        let entry = TopEntry {
            name: "SELECT option_value FROM wp_options\u{7}".to_owned(),
            count: 60,
            weight: 4740,
        };
        let text = noisy(&[entry]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[1].contains("60       4740  SELECT option_value"),
            "{text}"
        );
        assert!(!text.contains('\u{7}'));
        assert!(noisy(&[]).starts_with("no write"));
    }
}
