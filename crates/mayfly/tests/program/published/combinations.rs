//! The other published set-ups, each reduced to its author's promises: pages put into
//! memcached by the application (stack B), lifetimes chosen by the application (C), a tuned
//! PHP-FPM with two caches (D), a proxy in front of Apache (E), and PHP in a container of
//! its own that sees another document root.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::fake_http::{self, FakeHttp};
use testkit::process::{Signal, send_signal};
use testkit::wait::until;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::*;
use crate::start;

/// A memcached that has one page.
async fn answer_as_memcached(stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let answer = match line.trim() {
            "get site.test/stored" => "VALUE site.test/stored 0 6\r\nstored\r\nEND\r\n",
            _ => "END\r\n",
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        line.clear();
    }
}

#[tokio::test]
async fn pages_in_memcached_are_served_without_php_and_the_rest_falls_back() {
    let php = pages("Content-Type: text/html\r\n").await;
    let memcached = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let memcached = memcached.expect("a port");
    let at = memcached.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = memcached.accept().await {
            tokio::spawn(answer_as_memcached(stream));
        }
    });
    let server = start(&format!(
        "upstream memcached {{ server {at}; keepalive 32; }}\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
           location / {{\n\
             if ($request_method = POST) {{ rewrite ^ /index.php last; }}\n\
             set $memcached_key \"$host$request_uri\"; default_type text/html;\n\
             memcached_pass memcached; error_page 404 502 504 = @php; }}\n\
           location @php {{ {FASTCGI_PARAMS} fastcgi_pass {php}; }}\n\
           location ~ \\.php$ {{ {FASTCGI_PARAMS} fastcgi_pass {php}; }} }}",
        php = php.address()
    ))
    .await;
    let target = server.target();
    let stored = target.get("/stored").await;
    assert_eq!((stored.status, &*stored.text()), (200, "stored"));
    assert_eq!(stored.field("content-type"), "text/html");
    assert_eq!(php.requests(), 0, "a stored page costs no PHP");
    assert!(target.get("/other").await.text().starts_with("GET /other"));
    let posted = target.ask("POST", "/stored", "", "a=1").await.text();
    assert!(posted.starts_with("POST /stored a=1"), "{posted}");
}

#[tokio::test]
async fn the_application_chooses_lifetimes_and_who_is_logged_in_goes_past() {
    let php = FakePhp::tcp(|request| {
        let lifetime = match request.param("REQUEST_URI").starts_with("/forum") {
            true => "X-Accel-Expires: 0.001\r\n",
            false => "X-Accel-Expires: 3600\r\n",
        };
        Script::page(lifetime, format!("run {}", request.number))
    })
    .await;
    let server = start(&format!(
        "fastcgi_cache_path %%/cache levels=1:2 keys_zone=wordpress:10m inactive=60m;\n\
         fastcgi_cache_key \"$scheme$request_method$host$request_uri\";\n\
         map $http_cookie $logged_in {{ default 0; ~wordpress_logged_in 1; }}\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
           set $skip_cache 0;\n\
           if ($request_method = POST) {{ set $skip_cache 1; }}\n\
           if ($logged_in) {{ set $skip_cache 1; }}\n\
           if ($request_uri ~* \"/wp-admin/|/xmlrpc.php|wp-.*.php\") {{ set $skip_cache 1; }}\n\
           location / {{ {FASTCGI_PARAMS} fastcgi_pass {php}; fastcgi_cache wordpress;\n\
             fastcgi_cache_bypass $skip_cache; fastcgi_no_cache $skip_cache;\n\
             fastcgi_cache_use_stale updating error timeout; fastcgi_cache_lock on;\n\
             fastcgi_cache_background_update on;\n\
             add_header X-Cache $upstream_cache_status; }} }}",
        php = php.address()
    ))
    .await;
    let target = server.target();
    assert_eq!(target.get("/").await.x_cache(), "MISS");
    assert_eq!(target.get("/").await.x_cache(), "HIT");
    let logged_in = "Cookie: wordpress_logged_in_1=a\r\n";
    assert_eq!(target.get_with("/", logged_in).await.x_cache(), "BYPASS");
    assert_eq!(target.get("/").await.x_cache(), "HIT");
    // The forum's pages end after a moment; a stale page is shown while it is refreshed.
    let first = target.get("/forum").await.text();
    let begun = Instant::now();
    loop {
        let reply = target.get("/forum").await;
        match reply.x_cache() {
            "HIT" if reply.text() == first => assert!(begun.elapsed() < Duration::from_secs(20)),
            "STALE" | "UPDATING" => break assert_eq!(reply.text(), first),
            _ => break assert_ne!(reply.text(), first),
        }
    }
}

#[tokio::test]
async fn pages_and_assets_outlive_a_failing_php_and_can_be_purged() {
    let fails = Arc::new(AtomicBool::new(false));
    let is_failing = Arc::clone(&fails);
    let php = FakePhp::tcp(move |request| match is_failing.load(Ordering::SeqCst) {
        true => Script::page("Status: 500\r\n", "sorry"),
        false => Script::page(
            "Cache-Control: max-age=0\r\n",
            format!("run {}", request.number),
        ),
    })
    .await;
    let assets = FakeHttp::start(|_| {
        fake_http::Script::page("ETag: \"a\"\r\nContent-Type: text/css\r\n", "a {}")
    })
    .await;
    let server = start(&format!(
        "fastcgi_cache_path %%/pages levels=1:2 keys_zone=pages:10m max_size=100m inactive=1h;\n\
         proxy_cache_path %%/assets levels=1:2 keys_zone=assets:10m max_size=100m inactive=1d;\n\
         server {{ listen unix:%%/http; server_name site.test;\n\
           location / {{ {FASTCGI_PARAMS} fastcgi_pass {php}; fastcgi_cache pages;\n\
             fastcgi_cache_key $scheme$request_method$host$request_uri;\n\
             fastcgi_ignore_headers Cache-Control Expires; fastcgi_cache_valid 200 1ms;\n\
             fastcgi_cache_use_stale error timeout invalid_header http_500 http_503;\n\
             fastcgi_cache_methods GET HEAD; fastcgi_cache_revalidate on;\n\
             fastcgi_cache_purge PURGE from all; add_header X-Cache $upstream_cache_status always; }}\n\
           location ~* \\.(css|js|png)$ {{ proxy_pass http://{assets}; proxy_cache assets;\n\
             proxy_cache_valid 200 1d; proxy_cache_purge PURGE from all; expires 7d;\n\
             add_header X-Cache $upstream_cache_status; }} }}",
        php = php.address(),
        assets = assets.address()
    ))
    .await;
    let target = server.target();
    let page = target.get("/").await;
    assert_eq!((page.status, page.x_cache()), (200, "MISS"));
    assert_eq!(target.get("/a.css").await.x_cache(), "MISS");
    let range = target.get_with("/a.css", "Range: bytes=0-0\r\n").await;
    assert_eq!(
        (range.status, range.x_cache(), &*range.text()),
        (206, "HIT", "a")
    );
    fails.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    loop {
        let reply = target.get("/").await;
        assert_eq!(reply.status, 200, "always online: {reply:?}");
        if reply.x_cache() == "STALE" {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(target.ask("PURGE", "/", "", "").await.status, 200);
    assert_eq!(target.get("/").await.status, 500, "it is gone");
    assert_eq!(target.ask("PURGE", "/a.css", "", "").await.status, 200);
    assert_eq!(target.get("/a.css").await.x_cache(), "MISS");
}

#[tokio::test]
async fn a_proxy_in_front_of_apache_caches_by_its_rules_and_tells_who_asks() {
    let apache = FakeHttp::start(|request| {
        let told = format!(
            "{} {} {}",
            request.field("host"),
            request.field("x-real-ip"),
            request.field("x-forwarded-for")
        );
        match request.target.as_str() {
            "/none" => fake_http::Script::new()
                .raw("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"),
            "/private" => fake_http::Script::page("Cache-Control: private\r\n", told),
            _ => fake_http::Script::page("", told),
        }
    })
    .await;
    let server = start(&format!(
        "proxy_cache_path %%/cache levels=1:2 keys_zone=apache:8m max_size=100m inactive=600m;\n\
         server {{ listen unix:%%/http; server_name site.test; root %%/static;\n\
           location / {{ proxy_pass http://{apache}; proxy_redirect off;\n\
             proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr;\n\
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
             client_max_body_size 10m; proxy_connect_timeout 90; proxy_read_timeout 90;\n\
             proxy_buffer_size 4k; proxy_buffers 4 32k; proxy_busy_buffers_size 64k;\n\
             proxy_cache apache; proxy_cache_key \"$scheme$host$request_uri\";\n\
             proxy_cache_valid 200 302 60m; proxy_cache_valid 404 1m;\n\
             add_header X-Cache $upstream_cache_status always; }}\n\
           location ~* \\.(txt|png)$ {{ expires 30d; }} }}",
        apache = apache.address()
    ))
    .await;
    std::fs::create_dir(server.path("static")).expect("a folder");
    server.write("static/a.txt", "from disk");
    let target = server.target();
    assert_eq!(target.get("/").await.text(), "site.test unix: unix:");
    assert_eq!(target.get("/").await.x_cache(), "HIT");
    for wanted in [(404, "MISS"), (404, "HIT")] {
        let reply = target.get("/none").await;
        assert_eq!((reply.status, reply.x_cache()), wanted);
    }
    for _ in 0..2 {
        assert_eq!(target.get("/private").await.x_cache(), "MISS");
    }
    assert_eq!(target.get("/a.txt").await.text(), "from disk");
}

/// Asked to end, PHP-FPM ends its workers; killed, it would leave them behind.
struct PhpFpm(Child);

impl Drop for PhpFpm {
    fn drop(&mut self) {
        send_signal(self.0.id(), Signal::TERM);
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn php_elsewhere_by_tcp_with_another_document_root_serves_the_site() {
    let php_fpm = [
        "/usr/sbin/php-fpm8.2",
        "/usr/sbin/php-fpm8.3",
        "/usr/sbin/php-fpm8.4",
    ]
    .into_iter()
    .find(|path| std::path::Path::new(path).exists());
    let Some(php_fpm) = php_fpm else {
        eprintln!("skipped: no php-fpm");
        return;
    };
    // The folders of the two containers: files here, scripts there.
    let there = testkit::serving::FolderServer::folder();
    let scripts = there.path().join("app");
    std::fs::create_dir(&scripts).expect("a folder");
    let script = "<?php echo $_SERVER['SCRIPT_FILENAME'], ' ', $_SERVER['REQUEST_URI'];";
    std::fs::write(scripts.join("index.php"), script).expect("a script");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    drop(listener);
    let conf = format!(
        "[global]\nerror_log = {0}/log\ndaemonize = no\n[www]\nlisten = {at}\npm = static\n\
         pm.max_children = 2\n{1}",
        there.path().display(),
        if rustix::process::geteuid().is_root() {
            "user = www-data\ngroup = www-data\n"
        } else {
            ""
        }
    );
    let file = there.path().join("fpm.conf");
    std::fs::write(&file, conf).expect("a file");
    let child = Command::new(php_fpm)
        .args(["-F", "-n", "-y"])
        .arg(&file)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _php = PhpFpm(child.expect("php-fpm starts"));
    until("php-fpm listens", || {
        std::net::TcpStream::connect(at).is_ok()
    })
    .await;
    let root = scripts.display();
    let server = start(&format!(
        "fastcgi_cache_path %%/cache keys_zone=pages:1m;\n\
         upstream php {{ server {at}; }}\n\
         server {{ listen unix:%%/http; server_name site.test; root %%/public;\n\
           index index.php index.html;\n\
           location / {{ try_files $uri $uri/ /index.php?$query_string; }}\n\
           location ~ \\.php$ {{\n\
             fastcgi_split_path_info ^(.+\\.php)(/.+)$;\n\
             fastcgi_pass php; fastcgi_index index.php; {FASTCGI_PARAMS}\n\
             fastcgi_param SCRIPT_FILENAME {root}$fastcgi_script_name;\n\
             fastcgi_param DOCUMENT_ROOT {root};\n\
             fastcgi_param PATH_INFO $fastcgi_path_info;\n\
             fastcgi_cache pages; fastcgi_cache_key $host$request_uri; fastcgi_cache_valid 200 1h;\n\
             add_header X-Cache $upstream_cache_status; }} }}"
    ))
    .await;
    std::fs::create_dir(server.path("public")).expect("a folder");
    server.write("public/a.txt", "file");
    let target = server.target();
    let expected = format!("{root}/index.php /a/route?x=1");
    for wanted in ["MISS", "HIT"] {
        let reply = target.get("/a/route?x=1").await;
        assert_eq!((&*reply.text(), reply.x_cache()), (&*expected, wanted));
    }
    assert_eq!(target.get("/a.txt").await.text(), "file");
}
