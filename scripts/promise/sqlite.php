<?php
// Pages whose versions are in SQLite databases, one for each kind of journal. GET shows one, and takes its time between
// reading and answering; POST changes one, in a transaction or without.
[, $journal, $page] = explode('/', $_SERVER['PAGE']);
$file = __DIR__ . '/data/' . basename($journal) . '.db';
$is_persistent = $_SERVER['QUERY_STRING'] === 'persistent';
$database = new PDO("sqlite:$file", null, null, [PDO::ATTR_PERSISTENT => $is_persistent, PDO::ATTR_TIMEOUT => 20]);
$at = (int) $page;
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    header('Cache-Control: no-store');
    if ($_SERVER['QUERY_STRING'] === 'transaction') {
        $database->exec('BEGIN IMMEDIATE');
        $database->exec("UPDATE page SET version = version + 1 WHERE page = $at");
        usleep(random_int(0, 3000));
        $database->exec('COMMIT');
    } else {
        $database->exec("UPDATE page SET version = version + 1 WHERE page = $at");
    }
}
$version = $database->query("SELECT version FROM page WHERE page = $at")->fetchColumn();
if ($_SERVER['REQUEST_METHOD'] === 'GET') {
    usleep(random_int(0, 20000));
}
echo "page $at version $version\n";
