"""Makes trees of .htaccess files and requests for them, from a seed: what apache_htaccess.py --generated compares.

A tree has the same files in each of its folders; one to four folders have a .htaccess of some lines and sections. The
lines are those that applications, administrators and security plug-ins write, and odd ones: sections in sections, methods,
two generations of access rules together, rules that lead to scripts.
"""

import random

FOLDERS = ("", "a", "a/b", "a/b/c", "up", "up/x.php")
FILES = ("index.html", "x.txt", "style.css", "thumb_1.jpg", "doc.pdf", "noext", "x.inc", "a b.txt")
SCRIPTS = ("index.php", "x.php", "front.php", "x.phtml")
NAMES = ("*.php", "x.txt", "index.php", "*", "noext", "[a-d]*.*", "?.txt", "thumb_*.jpg", "a b.txt")
NAME_PATTERNS = (
    r"\.php$", r"^(style\.css|thumb_.*\.jpg)$", r"^[^.]+$", r".*", r"\.(txt|pdf|inc)$", r"^index\.", r"^$", r"(?i:PHP)",
    r"\\.txt$", r"^x",
)
PATHS = ("/", "/a", "/a/", "/a/b/x.txt", "/up", "/x.txt", "/a/x.php")
PATH_PATTERNS = (r"^/a/", r"\.php$", r"^/up/.*\.(php|txt)$", r"/b/", r"x", r"^/$", r"(\.txt|\.pdf)$")
RULE_PATTERNS = (
    r"^", r".", r"^$", r"\.php$", r"^x\.txt$", r"!\.(php|css)$", r"^(.*)\.txt$", r"^b/(.*)$", r"^(.+)/$", r"^a/", r"(doc|x)\.",
    r"^index\.php$", r"^none", r"!^index",
)
TARGETS = ("-", "index.php", "/front.php", "/front.php?p=$1", "x.php?q=$1", "/a/x.php/$1", "/up/x.txt", "b/x.txt",
           "/none", "http://other.test/$1", "/a/b/$1", "$1.pdf", "front.php?c=%1&h=%{HTTP_HOST}", "%{REQUEST_URI}")
FLAGS = ("", "[L]", "[F]", "[F,L]", "[G]", "[R=301,L]", "[R]", "[END]", "[L,QSA]", "[NC,L]", "[R=404,L]", "[QSD,L]", "[C]", "[S=1]",
         "[E=seen:1]", "[PT]", "[R=302,NE,L]", "[DPI,L]", "[NS,F]", "[H=text/plain]", "[N]")
CONDITIONS = (
    "%{REQUEST_FILENAME} !-f", "%{REQUEST_FILENAME} !-d", "%{REQUEST_FILENAME} -f", "%{REQUEST_FILENAME} -d",
    r"%{REQUEST_URI} ^/a/", r"%{REQUEST_URI} !\.(php|css)$", "%{HTTP_COOKIE} !pass=1", "%{HTTP_COOKIE} pass=(\\d)",
    "%{REQUEST_METHOD} ^(PUT|DELETE|POST)$", "%{QUERY_STRING} evil [NC]", "%{QUERY_STRING} ^$", "%{REMOTE_ADDR} !^127\\.0\\.0\\.1$",
    "%{REMOTE_ADDR} ^127\\.0\\.0\\.2", "%{HTTP_USER_AGENT} (bad|worse) [NC,OR]", "%{HTTP_REFERER} evil [NC]", "%{HTTPS} off",
    "%{ENV:REDIRECT_STATUS} ^$", "%{HTTP_HOST} ^(t\\d+)", "%{THE_REQUEST} \\.php", "%{ENV:seen} 1", "%{REQUEST_URI} =/a/x.php",
    "%{DOCUMENT_ROOT}/a/x.txt -f", "%{REQUEST_FILENAME} -s [OR]", "%{TIME_YEAR} >2000", "expr \"%{REQUEST_METHOD} == 'GET'\"",
    "%{REQUEST_FILENAME}.php -f", "%{HTTP:X-Gate} !open", "%{PATH_INFO} .", "%{IS_SUBREQ} =true", "%{SCRIPT_FILENAME} -x",
)
ADDRESSES = ("all", "127.0.0.1", "127.0.0.2", "10.9.9.9", "127", "127.0.0.0/8", "127.0.0.0/255.255.255.0", "10.0.0.1 all",
             "env=bad", "env=!good", "\"all\"", "127.0.0.2/32", "::1", "env=seen")
EXPRESSIONS = (
    "%{REQUEST_METHOD} == 'GET'", "%{REQUEST_METHOD} in { 'PUT', 'POST' }", "%{REMOTE_ADDR} -ipmatch '127.0.0.2/32'", "-R '127.0.0.1'",
    "%{HTTP_COOKIE} =~ /pass=1/", "%{REQUEST_URI} =~ m#^/a/#", "!(%{QUERY_STRING} == '')", "-n %{QUERY_STRING} && true",
    "%{REQUEST_URI} =~ /\\.php$/ || %{HTTP_USER_AGENT} -strmatch 'bad*'", "-f %{REQUEST_FILENAME}", "%{HTTP_HOST} != 'x'", "false",
    "req('X-Gate') == 'open'", "tolower(%{HTTP_USER_AGENT}) =~ /bad/", "%{TIME_YEAR} -gt 2000", "-T reqenv('good')",
)


class Writer:
    """Writes the lines of one file."""

    def __init__(self, chance):
        self.chance = chance

    def pick(self, choices):
        return self.chance.choice(choices)

    def quoted(self, text):
        return f'"{text}"' if " " in text or self.chance.random() < 0.5 else text

    def require(self, is_negatable=False):
        line = self.pick((
            "all granted", "all denied", "all granted", "all denied", "ip 127.0.0.1", "ip 127.0.0.2 10.0.0.0/8", "ip 10", "local",
            "method GET", "method POST PUT", "env good", "env bad seen", "valid-user", "user ada", "user bob",
            f"expr {self.pick(EXPRESSIONS)}", "group staff",
        ))
        is_negated = is_negatable and self.chance.random() < 0.3
        return [f"Require {'not ' if is_negated else ''}{line}"]

    def require_section(self, depth=0):
        name = self.pick(("RequireAll", "RequireAny", "RequireAll") + (("RequireNone",) if depth else ()))
        lines = self.require()
        for _ in range(self.chance.randrange(3)):
            if depth < 2 and self.chance.random() < 0.3:
                inner = self.require_section(depth + 1)
                if "RequireNone" not in inner[0] or name == "RequireAll":
                    lines += inner
            else:
                lines += self.require(name == "RequireAll")
        return [f"<{name}>", *lines, f"</{name}>"]

    def access(self):
        """Lines on who may have it."""
        return self.pick((
            self.require, self.require, self.require_section,
            lambda: [f"Order {self.pick(('allow,deny', 'deny,allow', 'Deny,Allow', 'mutual-failure'))}"],
            lambda: [f"Allow from {self.pick(ADDRESSES)}"], lambda: [f"Deny from {self.pick(ADDRESSES)}"],
            lambda: ["Order allow,deny", f"Allow from {self.pick(ADDRESSES)}", f"Deny from {self.pick(ADDRESSES)}"],
            lambda: ["Order deny,allow", f"Deny from {self.pick(ADDRESSES)}", f"Allow from {self.pick(ADDRESSES)}"],
            lambda: [f"Satisfy {self.pick(('any', 'all'))}"], lambda: [f"AuthMerging {self.pick(('And', 'Or', 'Off'))}", *self.require()],
            lambda: ["AuthType Basic", "AuthName x", "AuthUserFile {users}", *self.require()],
            lambda: ["AuthType Basic", "AuthName \"my x\"", "AuthUserFile {users}", "Require valid-user", "AuthGroupFile {groups}"],
        ))()

    def rules(self):
        """Lines of mod_rewrite."""
        lines = [] if self.chance.random() < 0.1 else ["RewriteEngine on"]
        if self.chance.random() < 0.2:
            lines.append(f"RewriteBase {self.pick(('/', '/a/', '/a'))}")
        if self.chance.random() < 0.15:
            lines.append(f"RewriteOptions {self.pick(('Inherit', 'InheritBefore', 'AllowNoSlash', 'InheritDown', 'MergeBase', 'IgnoreInherit'))}")
        for _ in range(self.chance.randrange(1, 4)):
            for _ in range(self.pick((0, 0, 1, 1, 2))):
                lines.append(f"RewriteCond {self.pick(CONDITIONS)}")
            lines.append(f"RewriteRule {self.pick(RULE_PATTERNS)} {self.pick(TARGETS)} {self.pick(FLAGS)}".rstrip())
        if self.chance.random() < 0.05:
            lines.append("RewriteEngine off")
        return lines

    def other(self):
        """Lines that neither refuse by themselves nor rewrite."""
        pick = self.pick
        return pick((
            lambda: [f"Redirect {pick(('301', '302', 'permanent', 'temp', 'seeother'))} {pick(PATHS)} {pick(('/to', 'http://other.test/to'))}"],
            lambda: [f"Redirect {pick(('403', '404', '410', 'gone'))} {pick(PATHS)}"], lambda: [f"RedirectPermanent {pick(PATHS)} /to"],
            lambda: [f"RedirectMatch {pick(('403', '404', 'gone'))} {pick(PATH_PATTERNS)}"],
            lambda: [f"RedirectMatch ^/a/(.*)\\.txt$ {pick(('/to/$1', 'http://other.test/$1?x=1'))}"],
            lambda: [f"DirectoryIndex {pick(('index.php', 'none x.php', 'x.txt', '/front.php', 'disabled', 'index.html index.php'))}"],
            lambda: [f"DirectorySlash {pick(('off', 'on'))}"],
            lambda: [f"FallbackResource {pick(('/front.php', '/index.php', 'disabled', 'x.php'))}"],
            lambda: [f"Options {pick(('-Indexes', '-FollowSymLinks', '+FollowSymLinks', 'None', '-MultiViews', 'FollowSymLinks', '-ExecCGI'))}"],
            lambda: [f"php_flag engine {pick(('off', 'on', '0'))}"], lambda: [f"SetHandler {pick(('none', 'default-handler'))}"],
            lambda: [f"AddType {pick(('text/plain', 'application/x-httpd-php'))} .php"], lambda: ["RemoveHandler .php .phtml"],
            lambda: ["ForceType text/plain"], lambda: ["AddDefaultCharset utf-8"], lambda: ["AddCharset utf-8 .css"],
            lambda: [f"SetEnvIf {pick(('Request_URI', 'User-Agent', 'Remote_Addr', 'Request_Method', 'X-Gate', 'Cookie'))} "
                     f"{pick(('^/a', 'bad', '127.0.0.2', 'GET', 'open', 'x', 'pass'))} {pick(('bad', 'good', 'bad=1', '!bad', 'seen=$0'))}"],
            lambda: [f"SetEnvIfNoCase User-Agent BAD {pick(('bad', 'good'))}"], lambda: ["BrowserMatch bad bad"],
            lambda: [f"SetEnvIfExpr \"{pick(EXPRESSIONS)}\" {pick(('bad', 'good'))}"],
            lambda: [f"SetEnv {pick(('HTTP_MOD_REWRITE On', 'good 1', 'X y'))}"], lambda: ["UnsetEnv X"],
            lambda: [f"Header {pick(('set X-A b', 'append X-A c', 'unset X-A', 'set X-A %{seen}e env=seen', 'merge X-A b', 'set X-A d env=!bad'))}"],
            lambda: ["Header always set X-B e", "Header edit X-B e f"], lambda: [f"Header edit X-A {pick(('b c', '^ z', '(.) $1$1'))}"],
            lambda: ["ExpiresActive on", f"ExpiresDefault {pick(('A60', 'A0'))}"], lambda: ["ExpiresActive on", "ExpiresByType text/css A90"],
            lambda: ["ErrorDocument 403 \"no\""], lambda: [f"ErrorDocument {pick(('403', '404', '410'))} {pick(('/x.txt', '/front.php?e=1', '/none'))}"], lambda: ["FileETag none"],
            lambda: ["# Deny from all"], lambda: ["Require \\", "all denied"], lambda: ["ServerSignature Off"], lambda: ["ExpiresDefault A60"],
            lambda: ["php_value upload_max_filesize 10M"], lambda: ["AddOutputFilterByType DEFLATE text/css"],
        ))()

    def section(self, depth):
        """A section with lines in it."""
        inner = [line for _ in range(self.chance.randrange(1, 3)) for line in self.lines(depth + 1)]
        head = self.pick((
            lambda: f"Files {self.quoted(self.pick(NAMES))}", lambda: f'FilesMatch "{self.pick(NAME_PATTERNS)}"',
            lambda: f'Files ~ "{self.pick(NAME_PATTERNS)}"', lambda: f'If "{self.pick(EXPRESSIONS)}"',
            lambda: f"Limit {self.pick(('GET', 'POST', 'GET POST', 'PUT DELETE', 'HEAD'))}",
            lambda: f"LimitExcept {self.pick(('POST', 'GET', 'GET POST', 'OPTIONS'))}",
            lambda: f"IfModule {self.pick(('mod_rewrite.c', 'mod_authz_core.c', '!mod_authz_core.c', 'mod_access_compat.c', 'mod_mime.c', 'mod_php5.c', 'alias_module'))}",
            lambda: "IfVersion >= 2.4", lambda: "IfDefine NOTHING",
        ))()
        name = head.split()[0]
        if name.startswith("Limit"):
            inner = [line for line in self.access() if not line.startswith(("Auth", "<"))] or ["Require all denied"]
        lines = [f"<{head}>", *inner, f"</{name}>"]
        if name == "If" and self.chance.random() < 0.4:
            lines += ["<Else>", *self.access(), "</Else>"]
        return lines

    def lines(self, depth=0):
        at = self.chance.random()
        if at < 0.35:
            return self.access()
        if at < 0.5 and depth < 2:
            return self.section(depth)
        if at < 0.75 and depth == 0:
            return self.rules()
        return self.other()


def tree(seed, users, groups):
    """The .htaccess files of a tree, by folder."""
    chance = random.Random(seed)
    files = {}
    for folder in chance.sample(FOLDERS, chance.choice((1, 1, 2, 2, 3, 4))):
        writer = Writer(chance)
        lines = [line for _ in range(chance.randrange(1, 4)) for line in writer.lines()]
        text = "\n".join(lines) + "\n"
        files[folder] = text.replace("{users}", users).replace("{groups}", groups)
    return files


def server(seed, root, rules):
    """The inside of a virtual host: some of the rules in sections for their folders, others in the files of the tree, and
    sections for addresses and patterns. Gives the text and the folders whose files stay."""
    chance = random.Random(seed * 13 + 5)
    writer = Writer(chance)
    quote = lambda folder: f'"{root}/{folder}"'.replace('/"', '"')
    kept = [folder for folder in rules if chance.random() < 0.4]
    lines = [f"<Directory {quote('')}>", f"AllowOverride {'All' if kept else 'None'}", "Options FollowSymLinks", "Require all granted", "</Directory>"]
    for folder in sorted(set(rules) - set(kept), key=lambda it: chance.random()):
        lines += [f"<Directory {quote(folder)}>", *rules[folder].splitlines(), "</Directory>"]
    for _ in range(chance.randrange(3)):
        inner = writer.access()
        head = writer.pick((
            lambda: f"Location {writer.pick(PATHS)}", lambda: f'LocationMatch "{writer.pick(PATH_PATTERNS)}"',
            lambda: f'Location ~ "{writer.pick(PATH_PATTERNS)}"', lambda: f"Location {writer.pick(('/a/*', '/*.txt', '/up/?.php'))}",
            lambda: f'Directory ~ "{root}/{writer.pick(("a.*", "up", "a/b/", "[^/]+$"))}"', lambda: f'DirectoryMatch "{writer.pick(("/b$", "/up/", "x.php"))}"',
            lambda: f'Directory "{root}/{writer.pick(("*", "a/*", "*/b", "u?"))}"', lambda: f"Files {writer.quoted(writer.pick(NAMES))}",
            lambda: f'FilesMatch "{writer.pick(NAME_PATTERNS)}"', lambda: f"Directory {quote(writer.pick(FOLDERS))}",
        ))()
        if chance.random() < 0.3:
            methods = writer.pick(("LimitExcept POST", "Limit GET", "LimitExcept GET"))
            inner = [f"<{methods}>", writer.pick(("Require all denied", "Deny from all", "Require ip 127.0.0.2")), f"</{methods.split()[0]}>"]
        lines += [f"<{head}>", *inner, f"</{head.split()[0]}>"]
    if chance.random() < 0.3:
        lines.append("RewriteEngine on")
        if chance.random() < 0.5:
            lines.append(f"RewriteCond {writer.pick(CONDITIONS)}")
        pattern = writer.pick(("^/a/(.*)$", r"\.txt$", "^/none", "^/(.+)$", "!^/index", r"^/(.*)\.pdf$"))
        lines.append(f"RewriteRule {pattern} {writer.pick(('-', '/front.php', '/a/x.php', '/up/$1', 'http://other.test/$1'))} {writer.pick(FLAGS[:12])}".rstrip())
    if chance.random() < 0.2:
        lines.append(writer.pick(("Redirect /a/b http://other.test/b", "Redirect 410 /up", r"RedirectMatch 403 ^/a/.*\.php$", "Redirect 301 /x.txt /doc.pdf")))
    text = "\n".join(lines) + "\n"
    return text, kept


def requests(seed, count):
    """Method, target, fields and the address that they come from."""
    chance = random.Random(seed * 7 + 1)
    found = []
    for _ in range(count):
        folder = chance.choice(FOLDERS[:5])
        prefix = f"/{folder}/" if folder else "/"
        name = chance.choice(("", "", *FILES, *SCRIPTS, *SCRIPTS, "none", "none/more", "x.php/info/more", "index.php/a.css", "x.txt/more"))
        path = (prefix + name).replace(" ", "%20")
        if chance.random() < 0.08:
            path = path.rstrip("/") or "/"
        if chance.random() < 0.1:
            path = path.replace("x", "%78", 1).replace("/", "//", 1)
        if chance.random() < 0.05:
            path = path.replace("/", "/./", 1)
        args = chance.choice(("", "", "", "?a=b", "?evil=1", "?a=b%20c&d"))
        method = chance.choice(("GET",) * 8 + ("HEAD", "POST", "PUT", "DELETE"))
        fields = {}
        if chance.random() < 0.3:
            fields["Cookie"] = chance.choice(("pass=1", "other=2"))
        if chance.random() < 0.3:
            fields["User-Agent"] = chance.choice(("good", "bad robot", "BAD"))
        if chance.random() < 0.15:
            fields["X-Gate"] = "open"
        if chance.random() < 0.2:
            fields["Authorization"] = chance.choice(("Basic YWRhOnNlY3JldA==", "Basic YWRhOndyb25n", "Basic Ym9iOnNlY3JldA=="))
        found.append((method, path + args, fields, chance.choice(("127.0.0.1",) * 3 + ("127.0.0.2",))))
    return found
