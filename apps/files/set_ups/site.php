<?php
// A site as small frameworks make it: one script for all addresses, pages of about 21 KB, comments,
// sessions, a search by POST. DATA is its folder: each execution leaves a line there, and files
// named "broken" and "slow" make it fail and hang. Each page says which execution made it.
$data = $_SERVER['DATA'];
$method = $_SERVER['REQUEST_METHOD'];
$path = strtok($_SERVER['REQUEST_URI'], '?');
$execution = bin2hex(random_bytes(8));
file_put_contents("$data/executions", "$method $path $execution\n", FILE_APPEND | LOCK_EX);

if (is_file("$data/slow")) {
    sleep(4);
}
if (is_file("$data/broken")) {
    http_response_code(500);
    exit("broken\n");
}

function redirect_home() {
    header('Location: /', true, 303);
    exit;
}

header('Content-Type: text/html; charset=utf-8');
session_save_path($data);
if (isset($_COOKIE['PHPSESSID']) || $path === '/login') {
    session_start();
}
if ($method === 'POST' && $path === '/login') {
    $_SESSION['name'] = $_POST['name'];
    redirect_home();
}
if ($method === 'POST' && $path === '/comment') {
    file_put_contents("$data/comments", strtr($_POST['text'], "\n", ' ') . "\n", FILE_APPEND | LOCK_EX);
    redirect_home();
}

$comments = is_file("$data/comments") ? file("$data/comments", FILE_IGNORE_NEW_LINES) : [];
if ($path === '/search') {
    // A question, which changes nothing.
    header('X-Accel-Expires: 60');
    $word = $_POST['word'] ?? '';
    $comments = array_filter($comments, fn ($comment) => str_contains($comment, $word));
} elseif (session_status() !== PHP_SESSION_ACTIVE) {
    // As many do who never thought of a cache in front of them.
    header('Cache-Control: no-cache');
    $etag = sprintf('W/"%08x"', crc32($path . implode("\n", $comments)));
    header("ETag: $etag");
    if (($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') === $etag) {
        http_response_code(304);
        exit;
    }
}
$rows = '';
for ($row = 0; $row < 270; $row++) {
    $rows .= "<li>" . substr(hash('sha256', "$path/$row"), 0, 24) . " row $row of this list, with some more words</li>\n";
}
$facts = [
    'execution' => $execution,
    'visitor' => $_SESSION['name'] ?? null,
    'script' => $_SERVER['SCRIPT_FILENAME'],
    'root' => $_SERVER['DOCUMENT_ROOT'],
    'path_info' => $_SERVER['PATH_INFO'] ?? null,
    'comments' => array_values($comments),
];
echo "<!doctype html><link rel=stylesheet href=/style.css><title>", htmlspecialchars($path), "</title>\n";
echo "<script type=application/json id=facts>", json_encode($facts, JSON_HEX_TAG), "</script>\n";
echo "<ul>\n$rows</ul>\n<!-- whole -->\n";
