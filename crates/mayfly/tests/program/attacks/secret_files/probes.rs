//! Names of files that scanners ask every site for.

/// Paths that programs which look for mistakes ask every site for.
#[rustfmt::skip]
pub const PROBES: &[&str] = &[
    ".env", ".env.local", ".env.production", ".env.bak", ".env~", ".git/config", ".git/HEAD", ".git/index",
    ".gitignore", ".gitlab-ci.yml", ".svn/entries", ".svn/wc.db", ".hg/hgrc", ".bzr/README", "CVS/Root",
    "CVS/Entries", ".DS_Store", ".htaccess", ".htpasswd", ".htpasswd.bak", ".bash_history", ".bashrc",
    ".ssh/id_rsa", ".ssh/authorized_keys", ".aws/credentials", ".docker/config.json", ".dockercfg", ".npmrc",
    ".netrc", ".pgpass", ".my.cnf", ".mysql_history", ".psql_history", ".vscode/sftp.json",
    ".vscode/settings.json", ".idea/workspace.xml", ".idea/dataSources.xml", ".user.ini", ".ftpconfig",
    ".ftpquota", ".remote-sync.json", ".travis.yml", ".circleci/config.yml", ".kube/config", ".viminfo",
    ".index.php.swp", ".config.php.swp", "wp-config.php~", "wp-config.php.bak", "wp-config.php.old",
    "wp-config.php.save", "wp-config.php.swp", "wp-config.php.orig", "wp-config.php.txt", "wp-config.php_bak",
    "wp-config.php-bak", "wp-config.php.1", "wp-config.php.2", "wp-config.php.dist", "wp-config.php.copy",
    "wp-config.php.bk", "wp-config.php.dpkg-old", "wp-config.php.zip", "wp-config.php-", "wp-config.php_",
    "wp-config.bak", "wp-config.old", "config.php~", "config.php.bak", "config.php.old", "config.PHP",
    "config.pHp", "config.php5", "config.php7", "config.phps", "config.phtml", "config.pht", "config.phar",
    "config.inc", "config.inc.php.bak", "config.ini", "config.yml", "config.yaml", "config.toml", "config.cfg",
    "config.conf", "config.xml.bak", "configuration.php.bak", "configuration.php-dist", "settings.php.bak",
    "settings.py", "local_settings.py", "database.yml", "database.sql", "database.sqlite", "database.sqlite3",
    "database.db", "data.db", "data.sqlite-wal", "data.sqlite-shm", "data.sqlite-journal", "data.db-wal",
    "data.db-shm", "data.db-journal", "data.db3", "data.mdb", "db.sql", "db.sql.gz", "db.sql.zip", "db.sql.bz2",
    "db.zip", "db.tar.gz", "db_backup.sql", "dump.sql", "dump.sql.gz", "dump.sql.xz", "dump.rdb", "dump.tar",
    "backup.sql", "backup.sql.1", "backup.zip", "backup.tar", "backup.tar.gz", "backup.tgz", "backup.rar",
    "backup.7z", "backup/db.sql", "backups/site.zip", "backups/2026.tar.gz", "bak.zip", "old.zip", "site.zip",
    "site.tar.gz", "www.zip", "www.tar.gz", "www.rar", "wwwroot.zip", "html.zip", "public_html.zip",
    "htdocs.tar.gz", "website.zip", "web.zip", "wordpress.zip", "source.zip", "src.tar.gz", "example.com.zip",
    "mysql.sql", "users.sql", "localhost.sql", "test.sql", "auth.json", "secrets.json", "secret.json",
    "secrets.yml", "credentials.json", "credentials", "credentials.csv", "client_secret.json",
    "client_secrets.json", "service-account.json", "serviceAccountKey.json", "firebase-adminsdk.json",
    "appsettings.json", "appsettings.Production.json", "sftp-config.json", "sftp.json", "ftpsync.json",
    "passwords.txt", "password.txt", "passwd", "shadow", "logins.json", "WS_FTP.LOG", "ws_ftp.ini",
    "filezilla.xml", "sitemanager.xml", "recentservers.xml", "id_rsa", "id_rsa.pub", "id_dsa", "id_ecdsa",
    "id_ed25519", "server.key", "private.key", "privatekey.key", "key.pem", "cert.pem", "server.pem",
    "server.crt", "server.cer", "server.csr", "server.pfx", "server.p12", "putty.ppk", "keystore.jks",
    "passwords.kdbx", "vpn.ovpn", "secring.gpg", "private.asc", "htpasswd", "htpasswd.txt", "htpasswd.bak",
    "passwd.htpasswd", "htaccess.bak", "error_log", "error.log", "errors.log", "error.log.1", "error.log.2.gz",
    "access.log", "access_log", "debug.log", "php_error.log", "php_errors.log", "php_error_log",
    "php-errors.log", "mail.log", "app.log", "laravel.log", "npm-debug.log", "yarn-error.log", "logs/error.log",
    "logs/access", "log/production.log", "storage/logs/laravel.log", "var/log/prod.log", "core", "core.1234",
    "core.31337", "nohup.out", "cachegrind.out.123", "java_pid1.hprof", "composer.json", "composer.lock",
    "composer.phar", "package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bower.json",
    "Gruntfile.js", "gulpfile.js", "webpack.config.js", "Gemfile", "Gemfile.lock", "Makefile", "Dockerfile",
    "docker-compose.yml", "docker-compose.override.yaml", "Vagrantfile", "Jenkinsfile", "Procfile",
    "phpunit.xml", "phpunit.xml.dist", "phpcs.xml", "web.config", "web.config.bak", "artisan", "deploy.sh",
    "backup.sh", "install.bat", "run.ps1", "app.py", "main.pyc", "app.rb", "test.pl", "test.cgi", "index.php~",
    "index.php.bak", "index.php.old", "index.php.swp", "index.php.1", "index.PHP", "index.php.", "index.bak",
    "index.old", "#index.php#", "terraform.tfstate", "terraform.tfstate.backup", "terraform.tfvars",
    "wallet.dat", "kubeconfig", "kubeconfig.yml", "values.yaml", "WEB-INF/web.xml", "META-INF/context.xml",
    "nbproject/project.properties", "application.properties", "application.yml", "site.wpress", "site.jpa",
    "site.daf", "disk.vmdk", "disk.qcow2",
];

/// The probes that even a folder of static files may hold by mistake only.
pub fn is_for_static(probe: &str) -> bool {
    let name = probe
        .rsplit('/')
        .next()
        .expect("a name")
        .to_ascii_lowercase();
    probe.starts_with('.')
        || name.contains(".php")
        || [
            ".key", ".p12", ".pfx", ".ppk", ".jks", ".kdbx", ".log", ".sqlite", "-wal", "-shm",
        ]
        .iter()
        .any(|end| name.ends_with(end))
        || [
            "id_rsa",
            "htpasswd",
            "error_log",
            "core",
            "auth.json",
            "secrets.json",
        ]
        .contains(&&*name)
}
