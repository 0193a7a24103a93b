//! Table of the `limit_req*` and `limit_conn*` directives.

use super::Directive;
use super::declaration::*;
use crate::model::LogLevel;

const LOG_LEVELS: &[(&str, LogLevel)] = &[
    ("info", LogLevel::Info),
    ("notice", LogLevel::Notice),
    ("warn", LogLevel::Warn),
    ("error", LogLevel::Error),
];

table! {
    _ = lines("limit_conn", LEVELS, (2, 2), "ZONE NUMBER").inherited_as_a_whole().repeats().text(
        "limits the requests under way for each key", "limit_conn addr 10;", "\
        The first argument is a zone of `limit_conn_zone`. Further requests with the same key are refused with \
        `limit_conn_status`.");
    LIMIT_CONN_DRY_RUN: Flag = flag("limit_conn_dry_run", LEVELS, "off").text(
        "counts requests, but refuses none", "limit_conn_dry_run on;",
        "With `on`, `$limit_conn_status` and the error log say what would have happened. Use it to find a good limit.");
    LIMIT_CONN_LOG_LEVEL: Choice<LogLevel> = choice("limit_conn_log_level", LEVELS, "info | notice | warn | error", LOG_LEVELS)
        .default("error").text("sets the level at which refusals are logged", "limit_conn_log_level warn;",
        "The refusal is logged if `error_log` has this level or a lower one.");
    LIMIT_CONN_STATUS: Number = number("limit_conn_status", LEVELS).takes((1, 1), "CODE").range(400, 599).default("503").text(
        "sets the status of a refused request", "limit_conn_status 429;",
        "429 (Too Many Requests) tells the client the reason. 503 is the default of nginx.");
    _ = lines("limit_conn_zone", HTTP, (2, 2), "KEY zone=NAME:SIZE").repeats().text(
        "defines a zone that counts requests under way", "limit_conn_zone $binary_remote_addr zone=visitors:10m;", "\
        Requests are counted for each value of the key, usually the client's address. One megabyte is enough for \
        about 16,000 addresses. When the zone is full, requests with a new key are refused.");
    _ = lines("limit_req", LEVELS, (1, 3), "zone=NAME [burst=NUMBER] [nodelay | delay=NUMBER]").inherited_as_a_whole().repeats().text(
        "limits the rate of requests for each key", "limit_req zone=ip burst=10 nodelay;", "\
        The zone is one of `limit_req_zone`. Requests above its rate are delayed, up to the number of `burst` \
        (default 0). Further requests are refused with `limit_req_status`. With `nodelay`, the requests of the burst \
        are not delayed. With `delay=NUMBER`, the first ones are not delayed.");
    LIMIT_REQ_DRY_RUN: Flag = flag("limit_req_dry_run", LEVELS, "off").text(
        "counts requests, but delays and refuses none", "limit_req_dry_run on;",
        "With `on`, `$limit_req_status` and the error log say what would have happened. Use it to find a good limit.");
    LIMIT_REQ_LOG_LEVEL: Choice<LogLevel> = choice("limit_req_log_level", LEVELS, "info | notice | warn | error", LOG_LEVELS)
        .default("error").text("sets the level at which refusals are logged", "limit_req_log_level warn;",
        "Delays are logged one level lower.");
    LIMIT_REQ_STATUS: Number = number("limit_req_status", LEVELS).takes((1, 1), "CODE").range(400, 599).default("503").text(
        "sets the status of a refused request", "limit_req_status 429;",
        "429 (Too Many Requests) tells the client the reason. 503 is the default of nginx.");
    _ = lines("limit_req_zone", HTTP, (3, 4), "KEY zone=NAME:SIZE rate=RATE [sync]").repeats().text(
        "defines a zone that measures the rate of requests", "limit_req_zone $binary_remote_addr zone=visitors:10m rate=5r/s;", "\
        The rate is measured for each value of the key, usually the client's address in binary form. It is in \
        requests per second (`r/s`) or per minute (`r/m`). One megabyte is enough for about 8,000 addresses. When \
        the zone is full, the keys that were not used for the longest time are removed.");
}
