//! Lowers `memcached_pass` and the directives that only memcached has.

use super::Lowering;
use super::exchange::DirectivePrefix;
use super::level::Level;
use super::template::has_variables;
use super::values::to_u32;
use crate::directives::constants::*;
use crate::model::*;

const MEMCACHED: DirectivePrefix = DirectivePrefix {
    prefix: "memcached",
    hidden: &[],
    failures: &[
        ("error", |it| &mut it.error),
        ("timeout", |it| &mut it.timeout),
        ("invalid_response", |it| &mut it.invalid_header),
        ("not_found", |it| &mut it.http_404),
    ],
};

impl Lowering<'_> {
    /// The memcached settings, if this level asks memcached. The values of this level are read in
    /// any case, so that mistakes are reported.
    pub fn memcached(&mut self, level: &Level<'_>) -> Option<Pass> {
        if level.only_inherits(MEMCACHED.prefix) {
            return None;
        }
        let mut exchange = self.exchange(level, &MEMCACHED);
        exchange.pass_request_body = false;
        let gzip_flags = to_u32(self.value(level, MEMCACHED_GZIP_FLAG));
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
}
