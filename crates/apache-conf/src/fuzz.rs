//! Properties that hold for any bytes at all; fuzz targets and property tests
//! call them.

use nginx_conf::parse;

use crate::convert::{Conversion, HtaccessFile, Options, convert_htaccess};
use crate::servers::convert_servers;

/// Translates the bytes as a `.htaccess` and as the configuration of a server.
///
/// # Panics
///
/// When a promise of the crate is broken.
pub fn fuzz_convert(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for php in [None, Some("unix:/run/php.sock".to_owned())] {
        let options = Options { php };
        let folders = ["a", "b"].map(|name| HtaccessFile { name, text: &text });
        check(&convert_htaccess(&folders, &options));
        let load = |_: &str| Ok(vec![("inner".to_owned(), String::new())]);
        check(&convert_servers("fuzz", &text, &load, &options));
    }
}

fn check(conversion: &Conversion) {
    let parsed = parse("made.conf", conversion.text.as_bytes());
    let mistakes: Vec<&str> = parsed
        .diagnostics
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(
        mistakes,
        Vec::<&str>::new(),
        "the result is nginx's syntax:\n{}",
        conversion.text
    );
    for note in &conversion.notes {
        let is_named = conversion.text.contains(&format!("# {note}"));
        assert!(is_named, "{note} is told:\n{}", conversion.text);
    }
    assert!(
        conversion.notes.len() <= conversion.lines,
        "each line is counted once"
    );
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines that lead deep into the translation, and parts of such.
    const PARTS: &str = r##"RewriteEngine on
RewriteBase /a
RewriteCond |RewriteRule |%{REQUEST_FILENAME} |!-f
%{REQUEST_URI} |%{HTTP_HOST} |%{QUERY_STRING} |%{HTTPS} |off
^(.*)$ |^a(b;c)$ |. |/index.php |[L,R=301]
[F]
[OR]
[NC,OR]
[C]
[S=1]
[E=A:b]
- |https://%{HTTP_HOST}/$1 |%1/x |<Files "a.php">
</Files>
<FilesMatch "\.(css;js)$">
</FilesMatch>
<IfModule x>
</IfModule>
<Limit GET>
</Limit>
<RequireAll>
</RequireAll>
Require all granted
Require not ip 10.0.0.1
Require valid-user
AuthUserFile /x
Order allow,deny
Deny from 10.0.0.1
Allow from all
Header set A "b;}{"
Header always unset ETag
ExpiresByType image/png A60
ExpiresDefault "access 1 day"
AddType a/b .c
ErrorDocument 404 "a } b
DirectoryIndex a
Redirect /a /b
RedirectMatch 301 ^/(.*)$ /$1
SetEnvIf Referer x y
Deny from env=y
php_value a b
<VirtualHost *:80>
</VirtualHost>
DocumentRoot /w
<Directory /w/x>
</Directory>
Alias /x /y
ProxyPass /p http://h/
ServerName a
"##;

    fn parts() -> Vec<String> {
        let lines = PARTS.split_inclusive('\n');
        lines
            .flat_map(|it| it.split('|'))
            .map(|it| it.replace(';', "|"))
            .collect()
    }

    proptest! {
        #[test]
        fn any_bytes_become_nginx_syntax(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            fuzz_convert(&bytes);
        }

        #[test]
        fn any_lines_become_nginx_syntax(
            parts in prop::collection::vec(
                prop_oneof![9 => prop::sample::select(parts()), 1 => "[ -~]{0,12}\n?"],
                0..40,
            )
        ) {
            fuzz_convert(parts.concat().as_bytes());
        }
    }
}
