//! Lowers `limit_req*`, `limit_conn*` and `auth_delay`.

use nginx_conf::{Diagnostic, Word, did_you_mean};

use super::Lowering;
use super::level::Level;
use super::values::parameter;
use crate::check::Node;
use crate::directives::constants::*;
use crate::directives::declaration::{Choice, Declaration, Flag, Number};
use crate::model::*;

impl Lowering<'_> {
    pub fn limit_zones(&mut self, level: &Level<'_>) {
        for node in level.own("limit_req_zone") {
            let key = self.template(node.arg(0));
            let Some((name, size_bytes)) = self.zone_parameter(node) else {
                continue;
            };
            let Some(rate_per_1000s) = self.rate(node) else {
                continue;
            };
            let mut known = self.declared.limit_req_zones.iter();
            if known.any(|zone| zone.name == name) {
                self.error(node.span(), format!("duplicate zone \"{name}\""));
                continue;
            }
            self.declared.limit_req_zones.push(LimitReqZone {
                name,
                key,
                size_bytes,
                rate_per_1000s,
            });
        }
        for node in level.own("limit_conn_zone") {
            let key = self.template(node.arg(0));
            let Some((name, size_bytes)) = self.zone_parameter(node) else {
                continue;
            };
            let mut known = self.declared.limit_conn_zones.iter();
            if known.any(|zone| zone.name == name) {
                self.error(node.span(), format!("duplicate zone \"{name}\""));
                continue;
            }
            self.declared.limit_conn_zones.push(LimitConnZone {
                name,
                key,
                size_bytes,
            });
        }
    }

    /// `zone=NAME:SIZE`
    fn zone_parameter(&mut self, node: &Node<'_>) -> Option<(String, u64)> {
        let found = super::listen::find_parameter(node.args(), "zone");
        let Some((word, text)) = found else {
            self.refuse(
                node.span(),
                format!("no zone in \"{}\"", node.name()),
                "expected zone=NAME:SIZE",
            );
            return None;
        };
        let Some((name, size)) = text.split_once(':').filter(|(name, _)| !name.is_empty()) else {
            self.invalid(word, "zone", "expected zone=NAME:SIZE");
            return None;
        };
        let bytes = self.size_in(word, size)?;
        if bytes < 32 << 10 {
            self.refuse(
                word.span,
                format!("zone \"{name}\" is too small"),
                "expected at least 32k",
            );
        }
        Some((name.to_owned(), bytes))
    }

    fn rate(&mut self, node: &Node<'_>) -> Option<u64> {
        for word in node.args().iter().skip(1) {
            if parameter(word, "zone").is_some() {
                continue;
            }
            if word.text == "sync" {
                self.invalid(word, "parameter", "zones are not shared between machines");
                continue;
            }
            if parameter(word, "rate").is_none() {
                self.unknown_parameter(word, word, node.name(), "zone rate");
            }
        }
        let Some((word, text)) = super::listen::find_parameter(node.args(), "rate") else {
            self.refuse(
                node.span(),
                "no rate in \"limit_req_zone\"",
                "expected rate=NUMBERr/s or NUMBERr/m",
            );
            return None;
        };
        let per_1000s = |number: &str| {
            number
                .parse::<u64>()
                .ok()
                .filter(|&rate| rate > 0 && number.bytes().all(|it| it.is_ascii_digit()))
        };
        let rate = match (text.strip_suffix("r/s"), text.strip_suffix("r/m")) {
            (Some(number), _) => per_1000s(number).map(|rate| rate.saturating_mul(1000)),
            (_, Some(number)) => per_1000s(number).map(|rate| rate.saturating_mul(1000) / 60),
            _ => None,
        };
        if rate.is_none() {
            self.invalid(word, "rate", "expected rate=NUMBERr/s or NUMBERr/m");
        }
        rate
    }

    pub fn limits(&mut self, level: &Level<'_>) -> Limits {
        Limits {
            requests: level
                .all("limit_req")
                .to_vec()
                .iter()
                .filter_map(|it| self.limit_req(it))
                .collect(),
            on_requests: self.reaction(
                level,
                LIMIT_REQ_STATUS,
                LIMIT_REQ_LOG_LEVEL,
                LIMIT_REQ_DRY_RUN,
            ),
            connections: level
                .all("limit_conn")
                .to_vec()
                .iter()
                .filter_map(|it| self.limit_conn(it))
                .collect(),
            on_connections: self.reaction(
                level,
                LIMIT_CONN_STATUS,
                LIMIT_CONN_LOG_LEVEL,
                LIMIT_CONN_DRY_RUN,
            ),
            auth_delay: self.value(level, AUTH_DELAY),
        }
    }

    fn limit_req(&mut self, node: &Node<'_>) -> Option<LimitReq> {
        let mut zone = None;
        let mut burst = 0;
        let mut delay_after = 0;
        for word in node.args() {
            if let Some(name) = parameter(word, "zone") {
                zone = Some((word, name));
            } else if let Some(text) = parameter(word, "burst") {
                burst = self.number_in(word, text)?;
            } else if let Some(text) = parameter(word, "delay") {
                delay_after = self.number_in(word, text)?;
            } else if word.text == "nodelay" {
                delay_after = u64::MAX;
            } else {
                self.unknown_parameter(word, word, "limit_req", "zone burst nodelay delay");
            }
        }
        let Some((word, name)) = zone else {
            self.refuse(
                node.span(),
                "\"limit_req\" must have \"zone\" parameter",
                "expected zone=NAME",
            );
            return None;
        };
        let names: Vec<String> = self
            .declared
            .limit_req_zones
            .iter()
            .map(|zone| zone.name.clone())
            .collect();
        let zone = LimitReqZoneId(self.zone_index(word, name, &names, "limit_req_zone")?);
        Some(LimitReq {
            zone,
            burst,
            delay_after,
        })
    }

    fn limit_conn(&mut self, node: &Node<'_>) -> Option<LimitConn> {
        let word = node.arg(0);
        let names: Vec<String> = self
            .declared
            .limit_conn_zones
            .iter()
            .map(|zone| zone.name.clone())
            .collect();
        let zone = LimitConnZoneId(self.zone_index(word, word, &names, "limit_conn_zone")?);
        let connections = self.number_of(node.arg(1))?;
        if connections == 0 || connections > 65535 {
            self.invalid(node.arg(1), "number of connections", "expected 1 to 65535");
            return None;
        }
        Some(LimitConn { zone, connections })
    }

    /// The index of `name` in `names`. An unknown zone is reported.
    pub fn zone_index(
        &mut self,
        word: &Word,
        name: &str,
        names: &[String],
        by: &str,
    ) -> Option<usize> {
        let found = names.iter().position(|known| known == name);
        if found.is_none() {
            let error = Diagnostic::error(word.span, format!("unknown zone \"{name}\""));
            self.report(match did_you_mean(name, names.iter().map(String::as_str)) {
                Some(meant) => error
                    .label("no such zone")
                    .hint(format!("did you mean \"{meant}\"?")),
                None => error.label(format!("no `{by}` of the http block defines it")),
            });
        }
        found
    }

    fn reaction(
        &mut self,
        level: &Level<'_>,
        status: Declaration<Number>,
        log_level: Declaration<Choice<LogLevel>>,
        dry_run: Declaration<Flag>,
    ) -> LimitReaction {
        LimitReaction {
            status: u16::try_from(self.value(level, status)).unwrap_or(u16::MAX),
            log_level: self.value(level, log_level),
            dry_run: self.value(level, dry_run),
        }
    }
}
