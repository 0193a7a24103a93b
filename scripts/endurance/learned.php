<?php
// A page whose version is in the database. GET shows it, POST changes it.
[, , $page] = explode('/', $_SERVER['PAGE']);
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$database = new mysqli('localhost', $_SERVER['DB_USER'], $_SERVER['DB_PASSWORD'], 'site', null, $_SERVER['DB_SOCKET']);
$at = (int) $page;
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $database->query("UPDATE pages SET version = version + 1 WHERE page = $at");
    header('Cache-Control: no-store');
}
$version = $database->query("SELECT version FROM pages WHERE page = $at")->fetch_row()[0];
header("Cache-Tag: learned-$at");
echo "page $at version $version\n";
