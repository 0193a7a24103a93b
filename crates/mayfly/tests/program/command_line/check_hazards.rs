//! `mayfly check` on whole trees: a tree with twenty planted hazards, each in a file of its own, and ten clean ones.

use std::path::Path;

use serde_json::Value;

use super::{code, folder, stderr, stdout, words};

/// The tree around the servers, each of which is a file of `sites`.
const MAIN: &str = "events {}\nhttp {\n  access_log off;\n  proxy_cache_path %%/c keys_zone=z:1m;\n  \
     fastcgi_cache_path %%/f keys_zone=f:1m;\n  upstream app { server 127.0.0.1:3000; }\n  \
     include %%/sites/*.conf;\n}\n";
const PHP: &str = r"location ~ \.php$ { try_files $fastcgi_script_name =404; fastcgi_pass unix:/run/php.sock; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }";
const DOTFILES: &str = r"location ~ /\.(?!well-known/) { deny all; }";

/// A rule, and lines of a server that break it once.
#[rustfmt::skip]
const PLANTED: [(&str, &str); 20] = [
    ("cache-stores-cookies", "location / { fastcgi_pass 127.0.0.1:9000; fastcgi_cache f; fastcgi_ignore_headers Set-Cookie; }"),
    ("cache-ignores-vary", "location / { fastcgi_pass 127.0.0.1:9000; fastcgi_cache f; fastcgi_ignore_headers Vary; }"),
    ("key-without-host", "location / { fastcgi_pass 127.0.0.1:9000; fastcgi_cache f; fastcgi_cache_key $request_uri; }"),
    ("php-in-uploads", "DOTFILES location /uploads/ { expires 1d; } PHP"),
    ("php-path-info", "DOTFILES location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }"),
    ("alias-slash", "location /i { alias /data/i/; }"),
    ("dotfiles-served", "location / { try_files $uri /index.php; } PHP"),
    ("root-too-high", "location /a/ { root /etc; }"),
    ("secret-in-root", "auth_basic x; auth_basic_user_file /srv/www/.htpasswd;"),
    ("autoindex-uploads", "location /files/ { autoindex on; }"),
    ("uri-in-redirect", "return 301 https://$host$uri;"),
    ("capture-in-field", "location ~ ^/v/([^/]*)$ { add_header X-Version $1; }"),
    ("open-redirect", "location /a/ { return 302 $arg_to; }"),
    ("add-header-lost", "add_header X-Frame-Options DENY; location /a/ { add_header X-A b; }"),
    ("cors-any-origin", "location /a/ { add_header Access-Control-Allow-Origin $http_origin; add_header Access-Control-Allow-Credentials true; }"),
    ("proxy-slash", "location /api { proxy_pass http://127.0.0.1:81/v1/; }"),
    ("host-from-request", "location /a/ { proxy_pass http://127.0.0.1:81; proxy_set_header Host $http_host; }"),
    ("real-ip-from-all", "set_real_ip_from 0.0.0.0/0;"),
    ("return-before-access", "location /a/ { return 200 secret; deny all; }"),
    ("status-open", "location /a/ { stub_status; }"),
];

/// Servers as published set-ups recommend them; each is a tree.
#[rustfmt::skip]
const CLEAN: [&str; 10] = [
    r"location / { try_files $uri =404; } location ~* \.(?:css|js|png)$ { expires 30d; access_log off; }",
    "return 301 https://$host$request_uri;",
    r"DOTFILES location / { try_files $uri $uri/ /index.php?$args; } location ~* /(?:uploads|files)/.*\.php$ { deny all; } PHP",
    r"location / { try_files $uri /index.php$is_args$args; }
      location ~ ^/index\.php(?:/|$) { fastcgi_pass unix:/run/php.sock; fastcgi_split_path_info ^(.+\.php)(/.*)$;
        fastcgi_param SCRIPT_FILENAME $document_root/index.php; internal; }
      location ~ \.php$ { return 404; }",
    r"set $skip 0; if ($request_method = POST) { set $skip 1; } if ($http_cookie ~* wordpress_logged_in) { set $skip 1; }
      location ~ /\. { deny all; } location ~* /uploads/.*\.php { deny all; }
      location ~ \.php$ { try_files $uri =404; fastcgi_pass unix:/run/php.sock; fastcgi_cache f; fastcgi_cache_bypass $skip;
        fastcgi_no_cache $skip; fastcgi_cache_key $scheme$request_method$host$request_uri; fastcgi_cache_valid 200 10m; }",
    "location / { proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; }",
    "location / { proxy_pass http://app; proxy_cache z; proxy_cache_key $scheme$host$request_uri; proxy_set_header Host $host; }
     location /api/ { proxy_pass http://app/v1/; }",
    "location /images/ { alias /data/images/; } location ^~ /admin/ { auth_basic x; auth_basic_user_file /etc/nginx/users; }",
    "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; location = /status { stub_status; allow 127.0.0.1; deny all; }",
    r"location ~ ^/u/([^/\s]+)$ { return 302 /user/$1; } location /go { return 302 /login?to=$arg_to; }",
];

/// Returns the output of `check` for a tree with these servers: each hazard's rule with the file that it is in, and
/// the exit code.
fn checked(servers: &[&str]) -> (Vec<String>, i32) {
    let tree = folder(&[("main.conf", MAIN)]);
    std::fs::create_dir(tree.path().join("sites")).expect("a folder");
    for (number, server) in servers.iter().enumerate() {
        let server = server.replace("DOTFILES", DOTFILES).replace("PHP", PHP);
        let text = format!(
            "server {{\n  listen 8080;\n  server_name s{number}.test;\n  root /srv/www;\n  {server}\n}}\n"
        );
        let path = tree.path().join(format!("sites/{number:02}.conf"));
        std::fs::write(path, text).expect("a file");
    }
    let main = tree.path().join("main.conf");
    let output = words(&["check", "--format", "json", main.to_str().expect("a path")]);
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)));
    assert_eq!(json["accepted"], true, "{json:#}");
    let hazards = json["unsafe"].as_array().into_iter().flatten();
    let shown = hazards.map(|hazard| {
        let file = Path::new(hazard["file"].as_str().expect("a file"));
        let name = file.file_name().expect("a name").to_string_lossy();
        format!("{name} {}", hazard["rule"].as_str().expect("a rule"))
    });
    (shown.collect(), code(&output))
}

#[test]
fn check_finds_each_of_twenty_planted_hazards_and_nothing_else() {
    let servers: Vec<&str> = PLANTED.iter().map(|(_, server)| *server).collect();
    let expected = PLANTED.iter().enumerate();
    let expected = expected.map(|(number, (rule, _))| format!("{number:02}.conf {rule}"));
    assert_eq!(checked(&servers), (expected.collect(), 4));
}

#[test]
fn check_reports_nothing_on_ten_clean_trees() {
    for server in CLEAN {
        assert_eq!(checked(&[server]), (Vec::new(), 0), "{server}");
    }
}
