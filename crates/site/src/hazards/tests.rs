//! Planted hazards are found, each in its line, and clean configurations have none.

use std::path::{Path, PathBuf};

use nginx_conf::{Loader, MemoryLoader, Sources};

use super::{Hazard, HazardSeverity, RULES, hazards};

fn read(files: Vec<(&str, String)>) -> (Sources, Vec<Hazard>) {
    let main = PathBuf::from(files.first().map_or("/m.conf", |(path, _)| path));
    let loader: MemoryLoader = files
        .into_iter()
        .map(|(path, text)| (path, text.into_bytes()))
        .collect();
    let loader: &dyn Loader = &loader;
    let loaded = nginx_conf::load(&main, Path::new("/"), loader);
    assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
    let found = hazards(&loaded.ast);
    (loaded.sources, found)
}

/// `rule:line` of each hazard of a server with these lines, the first of which is line 1.
fn found(http: &str, server: &str) -> Vec<String> {
    let text =
        format!("events {{}} http {{ {http} server {{ listen 80; root /srv/www;\n{server}\n}} }}");
    let (sources, found) = read(vec![("/m.conf", text)]);
    let line = |hazard: &Hazard| sources.position(hazard.span).map_or(0, |at| at.line - 1);
    let mut lines: Vec<String> = found
        .iter()
        .map(|hazard| format!("{}:{}", hazard.rule.name, line(hazard)))
        .collect();
    lines.sort();
    lines
}

const PHP: &str = r"location ~ \.php$ { try_files $fastcgi_script_name =404; fastcgi_pass unix:/run/php.sock; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }";
const DOTFILES: &str = r"location ~ /\.(?!well-known/) { deny all; }";
const CACHE: &str = "proxy_cache_path /c keys_zone=z:1m; fastcgi_cache_path /f keys_zone=f:1m;";

/// Returns configurations with one hazard each, whose rule comes first; their other lines are clean.
#[rustfmt::skip]
fn planted() -> Vec<(&'static str, String)> {
    let php = |more: &str| format!("{DOTFILES} {more} {PHP}");
    let proxied = |lines: &str| format!("location / {{ proxy_pass http://127.0.0.1:81; proxy_cache z;\n{lines} }}");
    let run = |lines: &str| format!("location / {{ fastcgi_pass 127.0.0.1:9000; fastcgi_cache f;\n{lines} }}");
    let plain = |lines: &str| format!("location /a/ {{\n{lines} }}");
    vec![
        ("cache-stores-cookies", run("fastcgi_ignore_headers Set-Cookie;")),
        ("cache-stores-private", run("fastcgi_ignore_headers Cache-Control;")),
        ("leak", run("fastcgi_cache_bypass $cookie_session;")),
        ("leak", format!("set $skip 0; if ($http_cookie ~ wordpress_logged_in) {{ set $skip 1; }} {}", run("fastcgi_cache_bypass $arg_new $skip; fastcgi_no_cache $arg_new;"))),
        ("purge-by-capture", "location ~ /purge(/.*) { allow 127.0.0.1; deny all;\nfastcgi_cache_purge f $scheme$host$1; }".to_owned()),
        ("cache-ignores-vary", run("fastcgi_ignore_headers Vary;")),
        ("key-without-host", run("fastcgi_cache_key $request_uri;")),
        ("key-without-host", proxied("proxy_cache_key $uri$is_args$args; proxy_set_header Host $host;")),
        ("key-without-scheme", format!("listen 443 ssl; {}", run("fastcgi_cache_key $host$request_uri;"))),
        ("key-without-method", run("fastcgi_cache_methods GET HEAD POST; fastcgi_cache_key $host$request_uri$request_body;")),
        ("php-in-uploads", format!("{DOTFILES} location /uploads/ {{ expires 1d; }}\n{PHP}")),
        ("php-in-uploads", format!("{DOTFILES} location = /wp-login.php {{ return 403; }}\n{PHP}")),
        ("php-in-uploads", format!("{DOTFILES}\n{PHP} location ~* /(?:uploads|files)/.*\\.php$ {{ deny all; }}")),
        ("access-lost-in-pattern", format!("location /admin/ {{\nauth_basic x; auth_basic_user_file /etc/x; }} {}", php(""))),
        ("php-pattern", format!("{DOTFILES}\n{}", PHP.replace(r"\.php$", r"\.php"))),
        ("php-pattern", format!("{DOTFILES}\n{}", PHP.replace(r"\.php$", ".php$"))),
        ("php-path-info", format!("{DOTFILES}\n{}", PHP.replace("try_files $fastcgi_script_name =404;", ""))),
        ("php-value-from-request", run("fastcgi_param PHP_VALUE $http_x_php;")),
        ("alias-slash", "\nlocation /i { alias /data/i/; }".to_owned()),
        ("alias-slash", "\nlocation /i/ { alias /data/i; }".to_owned()),
        ("dotfiles-served", format!("\nlocation / {{ try_files $uri /index.php; }} {PHP}")),
        ("dotfiles-served", "\nlocation ~ /\\.git { autoindex off; }".to_owned()),
        ("root-too-high", plain("root /etc;")),
        ("secret-in-root", "\nauth_basic x; auth_basic_user_file /srv/www/.htpasswd;".to_owned()),
        ("autoindex-uploads", "location /files/ {\nautoindex on; }".to_owned()),
        ("default-type-html", plain("default_type text/html;")),
        ("uri-in-redirect", "\nreturn 301 https://$host$uri;".to_owned()),
        ("uri-in-redirect", plain("return 302 $uri/;")),
        ("capture-in-field", "location ~ ^/v/([^/]*)$ {\nadd_header X-Version $1; }".to_owned()),
        ("open-redirect", plain("return 302 $arg_to;")),
        ("add-header-lost", format!("add_header X-Frame-Options DENY; {}", plain("add_header X-A b;"))),
        ("add-header-multiline", "\nadd_header X-A 'a;\n b';".to_owned()),
        ("cors-any-origin", plain("add_header Access-Control-Allow-Origin $http_origin; add_header Access-Control-Allow-Credentials true;")),
        ("proxy-to-any-host", plain("proxy_pass http://$arg_host/x;")),
        ("proxy-to-any-host", "location ~ ^/fetch/(.+)/x {\nproxy_pass http://$1; }".to_owned()),
        ("proxy-to-any-host", plain("set $to $http_x_to; proxy_pass http://$to;").replace("proxy_pass", "\nproxy_pass").replace("\nset", "set")),
        ("proxy-slash", "\nlocation /api { proxy_pass http://127.0.0.1:81/v1/; }".to_owned()),
        ("host-from-request", plain("proxy_pass http://127.0.0.1:81; proxy_set_header Host $http_host;")),
        ("real-ip-from-all", "\nset_real_ip_from 0.0.0.0/0;".to_owned()),
        ("resolver-external", "\nresolver 8.8.8.8 valid=60s;".to_owned()),
        ("allow-without-deny", plain("allow 10.0.0.0/8;")),
        ("return-before-access", plain("return 200 secret; deny all;")),
        ("valid-referers-none", plain("valid_referers none server_names;")),
        ("merge-slashes-off", "\nmerge_slashes off;".to_owned()),
        ("status-open", plain("stub_status;")),
        ("if-trap", "location / { if ($arg_a) { expires 1d; }\nif ($arg_b) { gzip off; } }".to_owned()),
        ("if-trap", "location / { try_files $uri =404;\nif ($arg_b) { set $b 1; } }".to_owned()),
        ("error-log-off", "\nerror_log off;".to_owned()),
    ]
}

#[test]
fn each_planted_hazard_is_found_in_its_line_and_nothing_else() {
    for (rule, server) in planted() {
        assert_eq!(found(CACHE, &server), [format!("{rule}:2")], "{server}");
    }
}

#[test]
fn each_rule_has_a_planted_hazard_and_a_name_of_its_own() {
    let planted = planted();
    for rule in RULES {
        assert!(
            planted.iter().any(|(name, _)| *name == rule.name),
            "{rule:?}"
        );
        let same = RULES.iter().filter(|other| other.name == rule.name);
        assert_eq!(same.count(), 1, "{rule:?}");
        assert!(rule.happens.ends_with('.'), "{rule:?}");
    }
}

#[test]
fn each_rule_is_in_the_documentation_with_its_severity() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
    let page = std::fs::read_to_string(page).expect("the page");
    for rule in RULES {
        let severity = match rule.severity {
            HazardSeverity::Warning => "warning",
            HazardSeverity::Error => "error",
        };
        let row = format!("| `{}` | {severity} | ", rule.name);
        assert!(page.contains(&row), "{row}");
    }
}

/// A tree of files, each server of which has one hazard.
#[test]
fn a_tree_with_all_of_them_tells_of_all_of_them() {
    let planted = planted();
    let paths: Vec<String> = (0..planted.len())
        .map(|at| format!("/sites/{at:02}.conf"))
        .collect();
    let main = format!("events {{}} http {{ {CACHE}\ninclude /sites/*.conf; }}");
    let mut files = vec![("/m.conf", main)];
    for ((_, server), path) in planted.iter().zip(&paths) {
        files.push((
            path,
            format!("server {{ listen 80; root /srv/www;\n{server}\n}}"),
        ));
    }
    let (sources, hazards) = read(files);
    let found: Vec<(PathBuf, &str)> = hazards
        .iter()
        .filter_map(|it| Some((sources.position(it.span)?.path.to_owned(), it.rule.name)))
        .collect();
    let wanted: Vec<(PathBuf, &str)> = paths
        .iter()
        .map(PathBuf::from)
        .zip(planted.iter().map(|(rule, _)| *rule))
        .collect();
    assert_eq!(found, wanted);
}

/// Lines of servers that published set-ups recommend, and that have no hazards.
#[rustfmt::skip]
const CLEAN: [&str; 18] = [
    r#"location / { try_files $uri =404; } location ~* \.(?:css|js|png)$ { expires 30d; access_log off; }"#,
    r#"return 301 https://$host$request_uri;"#,
    r#"location / { try_files $uri $uri/ /index.php?$args; }
       location ~ /\.(?!well-known/) { deny all; }
       location ~* /(?:uploads|files)/.*\.php$ { deny all; }
       location ~ \.php$ { try_files $uri =404; fastcgi_pass unix:/run/php.sock; fastcgi_index index.php;
           fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }"#,
    r#"location / { try_files $uri /index.php$is_args$args; }
       location ~ ^/index\.php(?:/|$) { fastcgi_pass unix:/run/php.sock; fastcgi_split_path_info ^(.+\.php)(/.*)$;
           fastcgi_param SCRIPT_FILENAME $document_root/index.php; internal; }
       location ~ \.php$ { return 404; }"#,
    r#"add_header X-Frame-Options SAMEORIGIN; add_header X-Content-Type-Options nosniff; index index.php; charset utf-8;
       location / { try_files $uri $uri/ /index.php?$query_string; } location = /robots.txt { access_log off; log_not_found off; }
       error_page 404 /index.php;
       location ~ ^/index\.php(/|$) { fastcgi_pass unix:/run/php.sock; fastcgi_hide_header X-Powered-By;
           fastcgi_param SCRIPT_FILENAME $realpath_root$fastcgi_script_name; }
       location ~ /\.(?!well-known).* { deny all; }"#,
    r#"location / { rewrite ^ /index.php; }
       location ~ ^/(?:build|tests|config|lib|3rdparty|templates|data)(?:$|/) { return 404; }
       location ~ ^/(?:\.|autotest|occ|issue|indie|db_|console) { return 404; }
       location ~ ^/(?:index|remote|public|cron|status)\.php(?:$|/) { fastcgi_split_path_info ^(.+?\.php)(/.*)$;
           set $path_info $fastcgi_path_info; try_files $fastcgi_script_name =404; fastcgi_param PATH_INFO $path_info;
           fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass php-handler; }
       location ~ \.(?:css|js|svg|gif)$ { try_files $uri /index.php$request_uri; expires 6M; access_log off; }
       location /remote { return 301 /remote.php$request_uri; }"#,
    r#"location ~ ^/core/(?:install|authorize)\.php$ { deny all; } location ~ (^|/)\. { return 403; }
       location ~ ^/sites/.*/private/ { return 403; } location ~ ^/sites/[^/]+/files/.*\.php$ { deny all; }
       location ~ ^/sites/.*/files/styles/ { try_files $uri @rewrite; } location @rewrite { rewrite ^ /index.php; }
       location / { try_files $uri /index.php?$query_string; }
       location ~ '\.php$|^/update.php' { fastcgi_split_path_info ^(.+?\.php)(|/.*)$; try_files $fastcgi_script_name =404;
           fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass unix:/run/php.sock; }"#,
    r#"set $skip 0; if ($request_method = POST) { set $skip 1; } if ($http_cookie ~* wordpress_logged_in) { set $skip 1; }
       location ~ /\. { deny all; } location ~* /uploads/.*\.php { deny all; }
       location ~ \.php$ { try_files $uri =404; fastcgi_pass unix:/run/php.sock; fastcgi_cache f; fastcgi_cache_bypass $skip;
           fastcgi_no_cache $skip; fastcgi_cache_key $scheme$request_method$host$request_uri;
           fastcgi_ignore_headers Cache-Control Expires Set-Cookie; fastcgi_cache_valid 200 10m; }
       location = /wp-login.php { try_files $uri =404; fastcgi_pass unix:/run/php.sock; }"#,
    r#"location / { proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr;
           proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; }"#,
    r#"set $renew 0; if ($arg_renew) { set $renew 1; } location / { proxy_pass http://app; proxy_cache z; proxy_set_header Host $host;
           proxy_cache_key $host$request_uri; proxy_cache_bypass $renew $http_x_renew; }
       location /all { proxy_pass http://app; proxy_cache z; proxy_cache_key $host$request_uri; proxy_set_header Host $host;
           proxy_cache_bypass $http_cookie; cache_store_bypassed on; }"#,
    r#"location / { proxy_pass http://app; proxy_cache z; proxy_cache_key $scheme$host$request_uri; proxy_set_header Host $host;
           proxy_cache_valid 200 1m; proxy_cache_use_stale updating error; add_header X-Cache $upstream_cache_status; }
       location /api/ { proxy_pass http://app/v1/; } location /raw { proxy_pass http://app; }"#,
    r#"location /images/ { alias /data/images/; } location = /favicon.ico { log_not_found off; }
       location ^~ /admin/ { auth_basic x; auth_basic_user_file /etc/nginx/users; }"#,
    r#"add_header Strict-Transport-Security max-age=63072000 always; add_header X-Content-Type-Options nosniff;
       location /static/ { expires max; }
       location /a/ { add_header Strict-Transport-Security max-age=63072000 always; add_header X-Content-Type-Options nosniff;
           add_header Cache-Control immutable; }"#,
    r#"set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; resolver 127.0.0.53 [::1] valid=30s;
       location = /status { stub_status; allow 127.0.0.1; deny all; }
       location /internal/ { allow 10.0.0.0/8; deny all; try_files $uri =404; }"#,
    r#"location / { if ($request_method = OPTIONS) { add_header Allow GET; return 204; } if ($arg_old) { return 301 /new$is_args$args; }
           root /srv/app; try_files $uri $uri/ =404; }"#,
    r#"location / { add_header Access-Control-Allow-Origin $allowed_origin; add_header Access-Control-Allow-Credentials true; }
       location /public/ { add_header Access-Control-Allow-Origin *; }"#,
    r#"location / { set $backend app; proxy_pass http://$backend$request_uri; }
       location ~ ^/(en|de)/ { proxy_pass http://$1.internal; } location ~ ^/x(/.*)$ { proxy_pass http://app$1$is_args$args; }"#,
    r#"location ~ ^/u/([^/\s]+)$ { return 302 /user/$1; } rewrite ^/old/(.*)$ /new/$1 permanent;
       location /go { return 302 /login?to=$arg_to; }"#,
];

#[test]
fn clean_configurations_have_no_hazard() {
    let http = format!("{CACHE} upstream app {{ server 127.0.0.1:3000; }}");
    for server in CLEAN {
        assert_eq!(found(&http, server), <[String; 0]>::default(), "{server}");
    }
}

/// The examples, the packaged configuration, and those of the project's own tests of applications have no
/// hazard.
#[test]
fn configurations_of_this_repository_have_no_hazard() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in [
        "examples/news/nginx.conf",
        "examples/news/memcached.conf",
        "examples/several-machines/node-1.conf",
        "examples/several-machines/node-2.conf",
        "examples/several-machines/node-3.conf",
        "packaging/conf/mayfly.conf",
        "apps/files/mediawiki.conf",
        "apps/files/set_ups/memcached.conf",
        "apps/files/set_ups/wordpress.conf",
    ] {
        let path = top.join(file);
        let text = std::fs::read_to_string(&path).expect(file);
        // Some are templates of the tests of applications.
        let text = text.replace("{{", "/srv/").replace("}}", "");
        let included = path.with_file_name("site.conf");
        let mut texts = vec![(path.clone(), text.into_bytes())];
        texts.extend(std::fs::read(&included).ok().map(|bytes| (included, bytes)));
        let loader: MemoryLoader = texts.into_iter().collect();
        let folder = path.parent().unwrap_or(&top);
        let loaded = nginx_conf::load(&path, folder, &loader);
        assert!(
            loaded.ast.directives.len() >= 4,
            "{file}: {:?}",
            loaded.diagnostics
        );
        let found: Vec<String> = hazards(&loaded.ast)
            .iter()
            .map(|it| format!("{}: {}", it.rule.name, it.found))
            .collect();
        assert_eq!(found, <[String; 0]>::default(), "{file}");
    }
}

/// An edit ends the hazard of its rule.
#[test]
fn edits_end_the_hazard() {
    let mut mended = 0;
    for (rule, server) in planted() {
        let text = format!(
            "events {{}} http {{ {CACHE} server {{ listen 80; root /srv/www;\n{server}\n}} }}"
        );
        let (_, hazards) = read(vec![("/m.conf", text.clone())]);
        let edits: Vec<_> = hazards.into_iter().flat_map(|it| it.edits).collect();
        if edits.is_empty() {
            continue;
        }
        let text = super::edited(&text, edits.iter());
        assert_eq!(
            read(vec![("/m.conf", text.clone())]).1.len(),
            0,
            "{rule}: {text}"
        );
        mended += 1;
    }
    assert!(mended >= 15, "{mended}");
}
