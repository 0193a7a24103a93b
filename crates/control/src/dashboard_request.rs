//! A request to the dashboard, parsed from its arguments.

use http_semantics::escape::unescape;

use crate::{EntryRequest, Refusal, SearchRequest};

/// The message for an unknown name.
pub const UNKNOWN: &str = "the dashboard has nothing of this name";

#[derive(Debug, PartialEq, Eq)]
pub enum DashboardRequest {
    Page,
    About,
    Numbers,
    Pages,
    Table,
    /// Since this moment, in milliseconds.
    History(u64),
    Search(SearchRequest),
    Entry(EntryRequest),
    Purge(EntryRequest),
}

impl DashboardRequest {
    /// # Errors
    /// It is nothing that there is (404), or not as it should be (400).
    pub fn read(args: &[u8]) -> Result<DashboardRequest, Refusal> {
        let mut pairs = args.split(|&byte| byte == b'&').map(pair);
        let (name, value) = pairs.next().transpose()?.unwrap_or_default();
        if name == "search" {
            return search(value, pairs);
        }
        if pairs.next().is_some() {
            return Err(Refusal::new(404, UNKNOWN));
        }
        Ok(match (&*name, value) {
            ("", None) => DashboardRequest::Page,
            ("about", None) => DashboardRequest::About,
            ("numbers", None) => DashboardRequest::Numbers,
            ("pages", None) => DashboardRequest::Pages,
            ("table", None) => DashboardRequest::Table,
            ("history", since) => DashboardRequest::History(number("history", since.as_deref())?),
            ("entry", Some(id)) => DashboardRequest::Entry(EntryRequest { id }),
            ("purge", Some(id)) => DashboardRequest::Purge(EntryRequest { id }),
            _ => return Err(Refusal::new(404, UNKNOWN)),
        })
    }
}

type Pair = (String, Option<String>);

fn search(
    text: Option<String>,
    others: impl Iterator<Item = Result<Pair, Refusal>>,
) -> Result<DashboardRequest, Refusal> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let mut search = SearchRequest {
        text: given(text),
        ..SearchRequest::default()
    };
    for pair in others {
        let (name, value) = pair?;
        match &*name {
            "tag" => search.tag = given(value),
            "zone" => search.zone = given(value),
            "after" => search.after = given(value),
            "limit" => search.limit = Some(number("limit", value.as_deref())?),
            _ => return Err(Refusal::new(404, UNKNOWN)),
        }
    }
    Ok(DashboardRequest::Search(search))
}

fn number<N: std::str::FromStr>(name: &str, text: Option<&str>) -> Result<N, Refusal> {
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Refusal::field(name, "expected a number"))
}

/// `name` or `name=value`, decoded.
fn pair(argument: &[u8]) -> Result<Pair, Refusal> {
    let text = |bytes: &[u8]| {
        String::from_utf8(unescape(bytes).into_owned())
            .map_err(|_| Refusal::new(400, "expected UTF-8"))
    };
    let mut halves = argument.splitn(2, |&byte| byte == b'=');
    let name = text(halves.next().unwrap_or_default())?;
    let value = halves.next().map(text).transpose()?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_say_what_is_asked_for() {
        let id = || EntryRequest {
            id: "1-2-a b".to_owned(),
        };
        let search = |text: &str, tag: &str| {
            DashboardRequest::Search(SearchRequest {
                text: Some(text.to_owned()).filter(|it| !it.is_empty()),
                tag: Some(tag.to_owned()).filter(|it| !it.is_empty()),
                ..SearchRequest::default()
            })
        };
        for (args, expected) in [
            ("", DashboardRequest::Page),
            ("about", DashboardRequest::About),
            ("numbers", DashboardRequest::Numbers),
            ("history=7", DashboardRequest::History(7)),
            ("entry=1-2-a%20b", DashboardRequest::Entry(id())),
            ("purge=1-2-a%20b", DashboardRequest::Purge(id())),
            ("search=", search("", "")),
            ("search", search("", "")),
            ("search=a%26b=%3f&tag=", search("a&b=?", "")),
            ("search=&tag=news:5", search("", "news:5")),
        ] {
            assert_eq!(
                DashboardRequest::read(args.as_bytes()).unwrap(),
                expected,
                "{args}"
            );
        }
        for (args, status) in [
            ("other", 404),
            ("numbers=1", 404),
            ("numbers&pages", 404),
            ("entry", 404),
            ("purge", 404),
            ("history", 400),
            ("history=-1", 400),
            ("search=a&limit=b", 400),
            ("search=a&b=c", 404),
            ("search=%ff", 400),
            ("%ff", 400),
        ] {
            let refusal = DashboardRequest::read(args.as_bytes()).unwrap_err();
            assert_eq!(refusal.status, status, "{args}");
        }
    }
}
