//! HAR 1.2: loads for the tools of browsers. Cookies and credentials are left out, as browsers do by
//! default.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use url::Url;

use crate::page::{FieldList, LoadedResource, PageLoad, Source};

/// Fields whose values are secrets.
const SECRET_FIELDS: [&str; 4] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
];
const LEFT_OUT: &str = "(left out)";

/// Loads with an identifier each, such as `cold-1`. `version` is the program's.
#[must_use]
pub fn to_har(loads: &[(String, &PageLoad)], version: &str) -> Value {
    let pages = loads.iter().map(|(id, load)| {
        json!({
            "startedDateTime": moment(load.begun, 0.0),
            "id": id,
            "title": load.url,
            "pageTimings": {"onContentLoad": -1, "onLoad": load.everything_ms()},
        })
    });
    let entries = loads
        .iter()
        .flat_map(|(id, load)| load.resources.iter().map(|it| entry(id, load, it)));
    json!({"log": {
        "version": "1.2",
        "creator": {"name": "mayfly bench --page", "version": version},
        "pages": pages.collect::<Vec<_>>(),
        "entries": entries.collect::<Vec<_>>(),
    }})
}

fn entry(page: &str, load: &PageLoad, resource: &LoadedResource) -> Value {
    let answer = resource.answer.as_ref();
    let version = answer.map_or("", |it| it.version);
    let fields = &resource.fields;
    let sizes = &resource.sizes;
    let timings = timings(resource);
    let mut entry = json!({
        "pageref": page,
        "startedDateTime": moment(load.begun, resource.times.found),
        "time": resource.times.end - resource.times.found,
        "request": {
            "method": "GET",
            "url": resource.url,
            "httpVersion": version,
            "cookies": [],
            "headers": pairs(&fields.request),
            "queryString": query(&resource.url),
            "headersSize": -1,
            "bodySize": 0,
        },
        "response": {
            "status": answer.map_or(0, |it| it.status),
            "statusText": "",
            "httpVersion": version,
            "cookies": [],
            "headers": pairs(&fields.response),
            "content": {
                "size": sizes.decoded,
                "compression": sizes.decoded as i64 - sizes.body as i64,
                "mimeType": fields.answered("content-type").unwrap_or_default(),
            },
            "redirectURL": answer.and_then(|it| it.location.as_deref()).unwrap_or_default(),
            "headersSize": if sizes.head == 0 { -1 } else { sizes.head as i64 },
            "bodySize": sizes.body,
        },
        "cache": {},
        "timings": timings,
        "_priority": resource.priority,
        "_resourceType": resource.kind,
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let (Some(value), Some(entry)) = (value, entry.as_object_mut()) {
            entry.insert(name.to_owned(), value);
        }
    };
    put(
        "serverIPAddress",
        answer.and_then(|it| it.server.clone()).map(Value::from),
    );
    let connection = answer.and_then(|it| it.connection);
    put("connection", connection.map(|it| it.to_string().into()));
    put("_error", resource.fault.clone().map(Value::from));
    let is_kept = resource.source == Source::BrowserCache;
    put("_fromCache", is_kept.then(|| "disk".into()));
    let namer = resource.initiator.and_then(|it| load.resources.get(it));
    let initiator = namer.map(|it| json!({"type": "parser", "url": it.url}));
    put("_initiator", initiator);
    entry
}

/// Milliseconds of each step; -1 for one that was not needed. `ssl` is part of `connect`.
fn timings(resource: &LoadedResource) -> Value {
    let times = &resource.times;
    let Some(sent) = times.sent else {
        let blocked = times.end - times.found;
        return json!({"blocked": blocked, "dns": -1, "connect": -1, "ssl": -1, "send": 0, "wait": 0, "receive": 0});
    };
    let first_byte = times.first_byte.unwrap_or(times.end);
    let (blocked, dns, connect, ssl, ready) = match &times.connect {
        None => (sent - times.found, -1.0, -1.0, -1.0, sent),
        Some(it) => (
            it.begun - times.found,
            it.resolved - it.begun,
            it.end() - it.resolved,
            it.encrypted.map_or(-1.0, |end| end - it.connected),
            it.end(),
        ),
    };
    json!({
        "blocked": blocked.max(0.0),
        "dns": dns,
        "connect": connect,
        "ssl": ssl,
        "send": (sent - ready).max(0.0),
        "wait": first_byte - sent,
        "receive": times.end - first_byte,
    })
}

fn moment(begun: SystemTime, after: f64) -> String {
    let at = begun + Duration::from_secs_f64((after / 1000.0).max(0.0));
    let at = jiff::Timestamp::try_from(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{at:.3}")
}

fn pairs(fields: &FieldList) -> Vec<Value> {
    let each = fields.iter().map(|(name, value)| {
        let is_secret = SECRET_FIELDS.iter().any(|it| name.eq_ignore_ascii_case(it));
        let value = if is_secret { LEFT_OUT } else { value.as_str() };
        json!({"name": name, "value": value})
    });
    each.collect()
}

fn query(url: &str) -> Vec<Value> {
    let Ok(url) = Url::parse(url) else {
        return Vec::new();
    };
    let pairs = url.query_pairs();
    pairs
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::example;

    #[test]
    fn an_archive_has_what_the_standard_asks_for() {
        let load = example();
        let har = to_har(&[("cold-1".to_owned(), &load)], "1.0");
        let log = &har["log"];
        assert_eq!(log["version"], "1.2");
        assert_eq!(
            log["pages"][0]["startedDateTime"],
            "2024-01-01T00:00:00.000Z"
        );
        assert_eq!(log["pages"][0]["pageTimings"]["onLoad"], 150.0);
        let entries = log["entries"].as_array().expect("entries");
        assert_eq!(entries.len(), 5);
        assert_eq!(entries[0]["timings"]["ssl"], 0.5);
        assert_eq!(entries[0]["timings"]["connect"], 0.75);
        assert_eq!(entries[1]["request"]["queryString"][0]["name"], "v");
        assert_eq!(entries[1]["startedDateTime"], "2024-01-01T00:00:00.020Z");
        assert_eq!(entries[3]["response"]["status"], 0);
        assert!(entries[3]["_error"].is_string());
        assert_eq!(entries[4]["_fromCache"], "disk");
        for entry in entries {
            assert_eq!(entry["pageref"], "cold-1");
            let steps = ["blocked", "dns", "connect", "send", "wait", "receive"];
            let steps = steps
                .iter()
                .map(|it| entry["timings"][it].as_f64().expect("a number"));
            let sum: f64 = steps.filter(|it| *it >= 0.0).sum();
            let time = entry["time"].as_f64().expect("a number");
            assert!((sum - time).abs() < 0.001, "{entry}: {sum}");
        }
    }

    #[test]
    fn secrets_are_left_out_of_an_archive() {
        let load = example();
        let har = to_har(&[("cold-1".to_owned(), &load)], "1.0").to_string();
        assert!(
            !har.contains("secret") && har.contains("(left out)"),
            "{har}"
        );
    }
}
