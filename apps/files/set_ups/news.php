<?php
// A news site whose finished pages are kept in memcached, under the key by which nginx asks for them.
// Data has identifiers ("article:5"). Each kind of page declares those that it reads, and a write
// takes back the pages that depend on what it has written; a page depends on many identifiers, and
// many pages on one. A search cannot say what it depends on: it is kept for a second.
$path = $_SERVER['DOCUMENT_URI']; // In a fragment, REQUEST_URI is that of the page.
$key = "page:{$_SERVER['HTTP_HOST']}{$_SERVER['REQUEST_URI']}";
file_put_contents("{$_SERVER['DATA']}/executions", "{$_SERVER['REQUEST_METHOD']} $path\n", FILE_APPEND | LOCK_EX);
header('Content-Type: text/html; charset=utf-8');

// Never stored: it is for one visitor.
if ($path === '/own/greeting') {
    exit('Hello ' . htmlspecialchars($_COOKIE['name']));
}

$database = new PDO("sqlite:{$_SERVER['DATA']}/news.db", null, null, [PDO::ATTR_TIMEOUT => 5]);
$database->exec('CREATE TABLE IF NOT EXISTS article (id INTEGER PRIMARY KEY, author TEXT, title TEXT)');
$database->exec('CREATE TABLE IF NOT EXISTS dependency (identifier TEXT, page TEXT, UNIQUE (identifier, page))');

function query($text, ...$values) {
    $statement = $GLOBALS['database']->prepare($text);
    $statement->execute($values);
    return $statement->fetchAll(PDO::FETCH_ASSOC);
}

// The protocol of memcached, as far as it is needed; without one, nothing is kept.
function memcached($command) {
    static $stream;
    $stream ??= @stream_socket_client("tcp://{$_SERVER['MEMCACHED']}", timeout: 1);
    return $stream && fwrite($stream, "$command\r\n") ? fgets($stream) : false;
}

function invalidate(...$identifiers) {
    foreach ($identifiers as $identifier) {
        foreach (query('SELECT page FROM dependency WHERE identifier = ?', $identifier) as ['page' => $page]) {
            query('DELETE FROM dependency WHERE page = ?', $page);
            memcached("delete $page");
        }
    }
}

// One after the other: what a page has read is still so when it is put into memcached.
$database->exec('BEGIN IMMEDIATE');
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    if (preg_match('~^/article/(\d+)$~', $path, $found)) {
        query('UPDATE article SET title = ? WHERE id = ?', $_POST['title'], $found[1]);
        invalidate("article:$found[1]");
    } else {
        query('INSERT INTO article (author, title) VALUES (?, ?)', $_POST['author'], $_POST['title']);
        invalidate('articles', "author:{$_POST['author']}");
    }
    $database->exec('COMMIT');
    header('Location: /', true, 303);
    exit;
}

// What a page reads: the identifiers, the lifetime without any, and the articles.
$articles = fn ($where, ...$values) => query("SELECT * FROM article WHERE $where ORDER BY id DESC", ...$values);
$ids = fn ($rows) => array_map(fn ($row) => "article:{$row['id']}", $rows);
$lifetime = 0;
if ($path === '/') {
    $rows = $articles('1');
    $identifiers = ['articles', ...$ids($rows)];
} elseif (preg_match('~^/article/(\d+)$~', $path, $found)) {
    $rows = $articles('id = ?', $found[1]);
    $identifiers = ["article:$found[1]"];
} elseif (preg_match('~^/author/(\w+)$~', $path, $found)) {
    $rows = $articles('author = ?', $found[1]);
    $identifiers = ["author:$found[1]", ...$ids($rows)];
} elseif ($path === '/search') {
    $rows = $articles('title LIKE ?', '%' . ($_GET['word'] ?? '') . '%');
    $identifiers = [];
    $lifetime = 1;
} else {
    $database->exec('COMMIT');
    http_response_code(404);
    exit('There is no such page.');
}

$list = implode("\n", array_map(fn ($row) => '<li>' . htmlspecialchars("{$row['title']} by {$row['author']}") . '</li>', $rows));
$page = <<<PAGE
    <!doctype html><title>$path</title>
    <p><!--# if expr="\$cookie_name" --><!--# include virtual="/own/greeting" --><!--# else -->Hello guest<!--# endif --></p>
    <ul>$list</ul>
    PAGE;

foreach ($identifiers as $identifier) {
    query('INSERT OR IGNORE INTO dependency VALUES (?, ?)', $identifier, $key);
}
memcached("set $key 0 $lifetime " . strlen($page) . "\r\n$page");
$database->exec('COMMIT');
echo $page;
