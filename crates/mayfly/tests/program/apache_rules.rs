//! `apache_rules`: sections of Apache's configuration are as closed as in Apache, for folders, their indexes and their files.

use testkit::serving::write_files;

use crate::site;

/// Folders that a section closes, and one request that the section lets in.
const RULES: &str = "
    <Directory %%/except>
        <LimitExcept POST>
            Deny from all
        </LimitExcept>
    </Directory>
    <Location /method>
        Require method POST
    </Location>
    <Directory %%/env>
        Require env good
    </Directory>
    <Directory %%/deny>
        Order allow,deny
        Allow from all
        Deny from env=!good
    </Directory>
    <Directory ~ \"%%/mat.*\">
        Require all denied
    </Directory>
    <FilesMatch \"^a\\.css$\">
        <If \"%{REQUEST_URI} =~ m#^/files/#\">
            Require all denied
        </If>
    </FilesMatch>
    <Directory %%/merged>
        Require env good
    </Directory>
    <Directory %%/merged/inner>
        AuthMerging And
        Require all granted
    </Directory>
    <Directory %%/asked>
        AllowOverride All
    </Directory>
    SetEnvIf X-Good 1 good
    Header set X-By rules
    Redirect gone /gone
    RewriteEngine on
    RewriteRule ^/led/(.*) /asked/$1
";

#[tokio::test]
async fn sections_close_what_they_close_in_apache() {
    let rules = RULES.replace('\\', "\\\\");
    let server = site(&format!(
        "index index.html; htaccess on; apache_rules '{rules}';"
    ))
    .await;
    let closed = [
        "except",
        "method",
        "env",
        "deny",
        "match",
        "merged",
        "merged/inner",
    ];
    for folder in closed.iter().chain(&["files", "asked", "open"]) {
        for file in ["index.html", "a.css"] {
            write_files(&server.path(folder), &[(file, file)]);
        }
    }
    server.write(
        "asked/.htaccess",
        "<Files a.css>\nRequire all denied\n</Files>\n",
    );
    server.write("open/.htaccess", "Require all denied\n");
    let target = server.target();
    for folder in closed {
        for path in ["", "index.html", "a.css"] {
            let path = format!("/{folder}/{path}");
            assert_eq!(target.get(&path).await.status, 403, "{path}");
        }
    }
    for folder in ["env", "deny", "merged", "merged/inner"] {
        let reply = target
            .get_with(&format!("/{folder}/a.css"), "X-Good: 1\r\n")
            .await;
        assert_eq!(reply.status, 200, "{folder}");
    }
    for (path, status) in [
        ("/files/", 200),
        ("/files/a.css", 403),
        ("/asked/", 200),
        ("/asked/a.css", 403),
        ("/led/index.html", 200),
        ("/led/a.css", 403),
        // AllowOverride is None without a word.
        ("/open/a.css", 200),
        ("/open", 301),
        ("/gone", 410),
        ("/asked/none", 404),
    ] {
        assert_eq!(target.get(path).await.status, status, "{path}");
    }
    assert_eq!(target.get("/open/a.css").await.field("x-by"), "rules");
}
