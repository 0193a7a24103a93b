//! Lowers `memcached_pass` and the directives that only memcached has.

use super::Lowering;
use super::exchange::DirectivePrefix;
use super::level::Level;
use super::template::has_variables;
use super::values::to_u32;
use crate::model::*;

const MEMCACHED: DirectivePrefix = DirectivePrefix {
    prefix: "memcached",
    hidden: &[],
};

impl Lowering<'_> {
    /// The memcached settings, if this level asks memcached. All values are read in any case, so
    /// that mistakes are reported.
    pub fn memcached(&mut self, level: &Level<'_>) -> Option<Pass> {
        let mut exchange = self.exchange(level, &MEMCACHED);
        exchange.pass_request_body = false;
        let gzip_flags = to_u32(self.number(level, "memcached_gzip_flag", 0));
        let word = level.own("memcached_pass").first()?.arg(0);
        let key = self.variable("memcached_key", word.span);
        let target = match has_variables(word) {
            true => PassTarget::Variable(self.template(word)),
            false => PassTarget::Group(self.group_of(word)?),
        };
        Some(Pass {
            target,
            exchange,
            cache: None,
            protocol: Protocol::Memcached(Memcached { key, gzip_flags }),
        })
    }

    /// The values of `memcached_next_upstream`, which has words of its own.
    pub fn memcached_failures(&mut self, level: &Level<'_>) -> Failures {
        let mut failures = Failures::default();
        let nodes = level.all("memcached_next_upstream").to_vec();
        if nodes.is_empty() {
            failures.error = true;
            failures.timeout = true;
        }
        let mut is_off = false;
        for word in nodes.iter().flat_map(|node| node.args()) {
            match word.text.as_str() {
                "error" => failures.error = true,
                "timeout" => failures.timeout = true,
                "invalid_response" => failures.invalid_header = true,
                "not_found" => failures.http_404 = true,
                "off" => is_off = true,
                _ => self.unknown_parameter(
                    word,
                    word,
                    "memcached_next_upstream",
                    &["error", "timeout", "invalid_response", "not_found", "off"],
                ),
            }
        }
        if is_off {
            return Failures::default();
        }
        failures
    }
}
