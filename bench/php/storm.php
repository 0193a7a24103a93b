<?php
// A page that computes (?work=ROUNDS), waits (?wait=MILLISECONDS) or asks a database (?query), of ?bytes=N bytes. Who has
// no session gets one with ?session.
require __DIR__ . '/work.php';
work(min((int) ($_GET['work'] ?? 0), 100000000));
usleep(1000 * min((int) ($_GET['wait'] ?? 0), 10000));
if (isset($_GET['query'])) {
    $database = stream_socket_client('unix://' . $_SERVER['DATABASE']);
    fread($database, 1);
}
if (isset($_GET['session'])) {
    setcookie('session', bin2hex(random_bytes(16)));
}
$bytes = min((int) ($_GET['bytes'] ?? 2048), 1 << 22);
header('Content-Type: text/html');
header('Content-Length: ' . $bytes);
echo str_repeat('x', $bytes);
