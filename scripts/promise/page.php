<?php
// A page and its version. GET shows it, a while after it was read; POST changes it and names what has changed.
$page = basename($_SERVER['PAGE']);
$file = __DIR__ . "/version-$page";
$version = (int) @file_get_contents($file);
header("Content-Type: text/plain");
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $version++;
    file_put_contents("$file.new", $version);
    rename("$file.new", $file);
    header("X-Cache-Purge-Tags: page-$page");
    header("Cache-Control: no-store");
} elseif (is_file(__DIR__ . "/broken")) {
    http_response_code(503);
    header("Cache-Control: no-store");
} else {
    file_put_contents(__DIR__ . "/made", ".", FILE_APPEND);
    header("X-Cache-Tags: page-$page");
    usleep(1000 * (int) (@file_get_contents(__DIR__ . "/slow-$page") ?: 2));
}
echo "version $version;";
