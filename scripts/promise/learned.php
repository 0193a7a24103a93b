<?php
// Pages whose versions are in the database. GET shows one, and takes its time between reading and answering; POST
// changes one, in a transaction or without, or dies once others see the change and before it has read the answer.
[, $table, $page] = explode('/', $_SERVER['PAGE']);
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
function connect()
{
    return new mysqli('localhost', $_SERVER['DB_USER'], $_SERVER['DB_PASSWORD'], 'site', null, $_SERVER['DB_SOCKET']);
}
$at = (int) $page;
$table = $table === 'own' ? 'own' : 'others';
if ($_SERVER['KEYS_PORT']) {
    require __DIR__ . '/learned_keys.php';
    exit;
}
$database = connect();
$begun = hrtime(true);
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    header('Cache-Control: no-store');
    if ($_SERVER['QUERY_STRING'] === 'transaction') {
        $database->begin_transaction();
        $database->query("UPDATE $table SET version = version + 1 WHERE page = $at");
        usleep(random_int(0, 3000));
        $database->commit();
    } elseif ($_SERVER['QUERY_STRING'] === 'wide') {
        // It may concern any row.
        $database->query("UPDATE $table SET version = version + (page = $at)");
    } elseif ($_SERVER['QUERY_STRING'] === 'die') {
        $select = "SELECT version FROM $table WHERE page = $at";
        $before = $database->query($select)->fetch_row();
        $database->query("UPDATE $table SET version = version + 1 WHERE page = $at", MYSQLI_ASYNC);
        for ($others = connect(); $others->query($select)->fetch_row() == $before; usleep(100));
        posix_kill(getmypid(), 9);
    } else {
        $database->query("UPDATE $table SET version = version + 1 WHERE page = $at");
        header('X-Took: ' . intdiv(hrtime(true) - $begun, 1000));
    }
}
$version = $database->query("SELECT version FROM $table WHERE page = $at")->fetch_row()[0];
if ($_SERVER['REQUEST_METHOD'] === 'GET') {
    usleep(random_int(0, 20000));
}
echo "page $at version $version\n";
