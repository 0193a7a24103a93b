//! Times as logs show them.

use site::Builtin as B;

use crate::exchange::value::{put, put_seconds};
use crate::exchange::variable_table::Value::Received as Of;
use crate::exchange::variable_table::Variables;

pub const VARIABLES: Variables = &[
    (
        B::DateGmt,
        Of(|_, out| put(Some(date_gmt().as_bytes()), out)),
    ),
    (
        B::DateLocal,
        Of(|_, out| put(Some(date_local().as_bytes()), out)),
    ),
    (B::Msec, Of(|_, out| put_seconds(clock::wall_now(), out))),
    (
        B::RequestTime,
        Of(|received, out| put_seconds(clock::now().saturating_sub(received.started_at()), out)),
    ),
    (
        B::TimeIso8601,
        Of(|_, out| {
            clock::put_iso8601(clock::recent(), out);
            true
        }),
    ),
    (
        B::TimeLocal,
        Of(|_, out| {
            clock::put_log_time(clock::recent(), out);
            true
        }),
    ),
];

fn date_gmt() -> String {
    let seconds = i64::try_from(clock::wall_now() / 1000).unwrap_or(0);
    let now = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    now.strftime("%A, %d-%b-%Y %H:%M:%S GMT").to_string()
}

fn date_local() -> String {
    let now = clock::local(i64::try_from(clock::wall_now() / 1000).unwrap_or(0));
    now.strftime("%A, %d-%b-%Y %H:%M:%S %Z").to_string()
}
