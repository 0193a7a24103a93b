<?php
// Pages whose versions are in the database. GET shows one, and takes its time between reading and answering; POST
// changes one, in a transaction or without, or dies once others see the change and before it has read the answer.
[, $table, $page] = explode('/', $_SERVER['PAGE']);
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
function connect()
{
    ['DB_USER' => $user, 'DB_PASSWORD' => $password, 'DB_SOCKET' => $socket] = $_SERVER;
    return $_SERVER['DB_FUNCTIONS'] === 'pgsql'
        ? pg_connect('host=' . dirname($socket) . " user=$user password=$password dbname=site", PGSQL_CONNECT_FORCE_NEW)
        : new mysqli('localhost', $user, $password, 'site', null, $socket);
}
function run($database, $statement)
{
    return $database instanceof mysqli ? $database->query($statement) : pg_query($database, $statement);
}
function version($database, $table, $at)
{
    $found = run($database, "SELECT version FROM $table WHERE page = $at");
    return $database instanceof mysqli ? $found->fetch_row()[0] : pg_fetch_result($found, 0, 0);
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
    $write = "UPDATE $table SET version = version + 1 WHERE page = $at";
    if ($_SERVER['QUERY_STRING'] === 'transaction') {
        run($database, 'BEGIN');
        run($database, $write);
        usleep(random_int(0, 3000));
        run($database, 'COMMIT');
    } elseif ($_SERVER['QUERY_STRING'] === 'wide') {
        // It may concern any row.
        run($database, "UPDATE $table SET version = version + (page = $at)");
    } elseif ($_SERVER['QUERY_STRING'] === 'die') {
        $before = version($database, $table, $at);
        $database instanceof mysqli ? $database->query($write, MYSQLI_ASYNC) : pg_send_query($database, $write);
        for ($others = connect(); version($others, $table, $at) == $before; usleep(100));
        posix_kill(getmypid(), 9);
    } else {
        run($database, $write);
        header('X-Took: ' . intdiv(hrtime(true) - $begun, 1000));
    }
}
$version = version($database, $table, $at);
if ($_SERVER['REQUEST_METHOD'] === 'GET') {
    usleep(random_int(0, 20000));
}
echo "page $at version $version\n";
