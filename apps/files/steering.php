<?php
// A small site that says itself how long each of its pages may be kept:
// /page/N for a second, /long/N for an hour, /own for its visitor only, /never
// not at all. Each page tells which execution made it, and costs a millisecond
// or two, which is little for PHP.
$path = strtok($_SERVER['REQUEST_URI'], '?');
$lifetimes = ['page' => 'public, max-age=1', 'long' => 'max-age=3600', 'own' => 'private, max-age=60', 'never' => 'no-store'];
$kind = explode('/', $path)[1];
header('Cache-Control: ' . ($lifetimes[$kind] ?? 'no-cache'));
header('Content-Type: text/html; charset=utf-8');
$rows = '';
for ($row = 0; $row < 400; $row++) {
    $rows .= sprintf("<li id=\"%s\">%s</li>\n", substr(hash('sha256', "$path/$row"), 0, 12), htmlspecialchars("row $row of $path"));
}
$execution = bin2hex(random_bytes(8));
echo "<!doctype html><title>$path</title><p>execution $execution</p>\n<ul>\n$rows</ul>\n<!-- whole -->\n";
