//! Lowers `php_pool` blocks.

use super::Lowering;
use super::level::Level;
use super::values::{to_u32, to_usize};
use crate::check::Node;
use crate::directives::constants::*;
use crate::model::*;

/// Names become parts of socket paths, which systems limit to 107 bytes.
const MAX_NAME_BYTES: usize = 32;

impl Lowering<'_> {
    /// The pools declared at this level (main or http).
    pub fn php_pools(&mut self, level: &Level<'_>) {
        for node in level.own("php_pool") {
            let name = node.arg(0);
            let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_name_byte) {
                let expected =
                    format!("expected at most {MAX_NAME_BYTES} letters, digits, - _ or .");
                self.invalid(name, "name of a pool", expected);
                continue;
            }
            if self.pools.iter().any(|pool| pool.name == name.text) {
                self.error(name.span, format!("duplicate php_pool \"{name}\""));
                continue;
            }
            let pool = self.php_pool(name, &Level::new(&node.children, None));
            self.pools.push(pool);
        }
    }

    fn php_pool(&mut self, name: &str, level: &Level<'_>) -> PhpPool {
        PhpPool {
            name: name.to_owned(),
            binary: level.word("binary").map(|word| self.path(word)),
            workers: self.pool_workers(level),
            manager: self.pool_manager(level),
            max_requests: self.given(level, MAX_REQUESTS),
            request_terminate_timeout: self
                .given(level, REQUEST_TERMINATE_TIMEOUT)
                .filter(|timeout| !timeout.is_zero()),
            slow_log: level.find("slow_log").and_then(|node| {
                Some((
                    self.own_files.logs.join(&node.arg(0).text),
                    self.duration_of(node.arg(1))?,
                ))
            }),
            user: pool_user(level),
            no_new_privs: self.value(level, NO_NEW_PRIVS),
            chdir: level.word("chdir").map(|word| self.path(word)),
            env: pairs(level, "env"),
            clear_env: self.value(level, CLEAR_ENV),
            settings: self.php_settings(level),
            catch_workers_output: self.value(level, CATCH_WORKERS_OUTPUT),
            listen_backlog: self.given(level, LISTEN_BACKLOG).map(to_u32),
            rlimit_files: self.given(level, RLIMIT_FILES).map(to_u32),
            log_level: self.value(level, LOG_LEVEL),
            drain_timeout: self.value(level, DRAIN_TIMEOUT),
            extra: pairs(level, "ini"),
        }
    }

    fn pool_workers(&mut self, level: &Level<'_>) -> Option<usize> {
        if let (Some(workers), Some(max)) = (level.find("workers"), level.find("max_children")) {
            let first = workers.span();
            self.report(
                nginx_conf::Diagnostic::error(
                    max.span(),
                    "\"max_children\" is another name for \"workers\"",
                )
                .label("expected one of the two")
                .note_at(first, "the other"),
            );
        }
        let node = level
            .find("workers")
            .or_else(|| level.find("max_children"))?;
        let word = node.arg(0);
        if word.text == "auto" {
            return None;
        }
        match self.number_of(word) {
            Some(0) => {
                self.invalid(
                    word,
                    "number of workers",
                    "expected auto or a number above 0",
                );
                None
            }
            count => count.map(to_usize),
        }
    }

    fn pool_manager(&mut self, level: &Level<'_>) -> PoolManager {
        let kind = self.value(level, PM);
        let of_dynamic = ["start_servers", "min_spare_servers", "max_spare_servers"];
        for (name, wanted, manager) in of_dynamic
            .map(|name| (name, 1, "dynamic"))
            .into_iter()
            .chain([("idle_timeout", 2, "ondemand")])
        {
            if let Some(node) = level.find(name)
                && kind != wanted
            {
                let message = format!("\"{name}\" has no effect without \"pm {manager}\"");
                self.report(nginx_conf::Diagnostic::warning(node.span(), message));
            }
        }
        match kind {
            1 => PoolManager::Dynamic {
                start_servers: self.given(level, START_SERVERS).map(to_usize),
                min_spare_servers: self.given(level, MIN_SPARE_SERVERS).map(to_usize),
                max_spare_servers: self.given(level, MAX_SPARE_SERVERS).map(to_usize),
            },
            2 => PoolManager::OnDemand {
                idle_timeout: self.value(level, IDLE_TIMEOUT),
            },
            _ => PoolManager::Static,
        }
    }

    fn php_settings(&mut self, level: &Level<'_>) -> Vec<PhpSetting> {
        let kind = |node: &Node<'_>| match node.name() {
            "php_value" => PhpSettingKind::Value,
            "php_flag" => PhpSettingKind::Flag,
            "php_admin_value" => PhpSettingKind::AdminValue,
            _ => PhpSettingKind::AdminFlag,
        };
        let names = ["php_value", "php_flag", "php_admin_value", "php_admin_flag"];
        let mut settings = Vec::new();
        for node in level.list(&names) {
            if node.name().ends_with("_flag") && self.flag_of(node.arg(1)).is_none() {
                continue;
            }
            settings.push(PhpSetting {
                kind: kind(node),
                name: node.arg(0).text.clone(),
                value: node.arg(1).text.clone(),
            });
        }
        settings
    }
}

fn pool_user(level: &Level<'_>) -> Option<User> {
    let node = level.find("user")?;
    let group = node.args().get(1).or_else(|| level.word("group"));
    Some(User {
        name: node.arg(0).text.clone(),
        group: group.map(|word| word.text.clone()),
    })
}

fn pairs(level: &Level<'_>, name: &str) -> Vec<(String, String)> {
    let pair = |node: &&Node<'_>| (node.arg(0).text.clone(), node.arg(1).text.clone());
    level.all(name).iter().map(pair).collect()
}
