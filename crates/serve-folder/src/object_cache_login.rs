//! The object cache that an application's settings name with a password or a socket (`--learn`): such a one is followed only
//! by an account. Pure over [`Files`].

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::account_settings::AccountSettingsFile;
use super::database_login::is_plain;
use super::detect::DetectedSite;
use super::options::DatabaseLogin;
use super::site_files::Files;

/// A file and the names of its settings: host, port, socket, user, password. An empty name: it has none.
type CachePlace = (&'static str, [&'static str; 5]);

const REDIS_OBJECT_CACHE: [&str; 5] = [
    "WP_REDIS_HOST",
    "WP_REDIS_PORT",
    "WP_REDIS_PATH",
    "",
    "WP_REDIS_PASSWORD",
];

const LARAVEL: [&str; 5] = [
    "REDIS_HOST",
    "REDIS_PORT",
    "",
    "REDIS_USERNAME",
    "REDIS_PASSWORD",
];

/// The plug-in Redis Object Cache of WordPress, and Laravel.
const PLACES: [CachePlace; 4] = [
    ("wp-config.php", REDIS_OBJECT_CACHE),
    ("../wp-config.php", REDIS_OBJECT_CACHE),
    ("../.env", LARAVEL),
    (".env", LARAVEL),
];

const PORT: u16 = 6379;

/// `None`: the settings name none, or none that needs an account, or not in literals.
pub fn object_cache_login(files: &dyn Files, found: &DetectedSite) -> Option<DatabaseLogin> {
    let has_project = !found.document_root.is_empty();
    let is_wordpress = found.kind == super::kind::SiteKind::WordPress;
    PLACES.iter().find_map(|(file, names)| {
        if file.starts_with("../") && !has_project && !is_wordpress {
            // It would be another site's.
            return None;
        }
        let path = Path::new(found.document_root).join(file);
        let text = files.text(&path.to_string_lossy())?;
        login(&AccountSettingsFile::of(file, &text), file, *names)
    })
}

fn login(
    settings: &AccountSettingsFile,
    file: &str,
    [host, port, socket, user, password]: [&str; 5],
) -> Option<DatabaseLogin> {
    let literal = |name: &str| match settings.has(name) {
        true => settings.literal(name).map(Some),
        false => Some(None),
    };
    let is_set = |value: &String| !matches!(&value[..], "" | "null" | "NULL" | "false");
    let password = literal(password)?.filter(is_set);
    let socket = literal(socket)?.filter(is_set);
    let user = literal(user)?.filter(is_set);
    let host = literal(host)?.filter(is_set);
    if password.is_none() && socket.is_none() {
        return None;
    }
    let path = socket.or_else(|| host.clone().filter(|host| host.starts_with('/')));
    let server = match path {
        Some(path) => format!("unix:{}", path.strip_prefix("unix:").unwrap_or(&path)),
        None => {
            let ip: IpAddr = match host.as_deref() {
                None | Some("localhost") => IpAddr::from([127, 0, 0, 1]),
                Some(host) => host.parse().ok()?,
            };
            let port = literal(port)?.filter(is_set);
            let port = port.map_or(Some(PORT), |port| port.parse().ok())?;
            SocketAddr::from((ip, port)).to_string()
        }
    };
    let login = DatabaseLogin {
        server,
        user: user.unwrap_or_else(|| "default".to_owned()),
        password: Some(password.unwrap_or_default()),
        settings: file.to_owned(),
    };
    let values = [&login.server, &login.user];
    is_plain(values.into_iter().chain(login.password.as_ref())).ok()?;
    Some(login)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(file: &str, text: &str) -> Option<String> {
        let settings = AccountSettingsFile::of(file, text);
        let names = PLACES
            .iter()
            .find(|(it, _)| *it == file)
            .expect("a place")
            .1;
        let it = login(&settings, file, names)?;
        let password = it.password.unwrap_or_default();
        Some(format!("{} {} {password}", it.server, it.user))
    }

    #[test]
    fn account_of_an_object_cache_comes_from_literals_where_one_is_needed() {
        #[rustfmt::skip]
        let cases = [
            (
                "wp-config.php",
                "<?php define('WP_REDIS_HOST', '10.0.0.7'); define('WP_REDIS_PORT', 6380); define('WP_REDIS_PASSWORD', 'word');",
                Some("10.0.0.7:6380 default word"),
            ),
            (
                "wp-config.php",
                "<?php define('WP_REDIS_SCHEME', 'unix'); define('WP_REDIS_PATH', '/run/redis/redis.sock');",
                Some("unix:/run/redis/redis.sock default "),
            ),
            ("wp-config.php", "<?php define('WP_REDIS_PASSWORD', getenv('WORD'));", None),
            ("wp-config.php", "<?php define('WP_REDIS_PASSWORD', ['user', 'word']);", None),
            ("wp-config.php", "<?php define('WP_REDIS_HOST', '127.0.0.1');", None),
            (
                "../.env", "REDIS_HOST=127.0.0.1\nREDIS_PASSWORD=word\nREDIS_PORT=6379\n",
                Some("127.0.0.1:6379 default word"),
            ),
            (
                "../.env", "REDIS_HOST=localhost\nREDIS_USERNAME=ada\nREDIS_PASSWORD=\"word\"\n",
                Some("127.0.0.1:6379 ada word"),
            ),
            ("../.env", "REDIS_HOST=127.0.0.1\nREDIS_PASSWORD=null\n", None),
            ("../.env", "REDIS_HOST=redis\nREDIS_PASSWORD=word\n", None),
            ("../.env", "REDIS_HOST=10.0.0.7\nREDIS_PASSWORD=wo\u{1}rd\n", None),
        ];
        for (file, text, expected) in cases {
            assert_eq!(named(file, text).as_deref(), expected, "{text}");
        }
    }
}
