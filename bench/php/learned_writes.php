<?php
// Pages of one table. GET shows the row of the page, and reads so many others before; POST writes rows that no page shows, so many times a second for
// so many seconds, and says how often it did.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$database = new mysqli('localhost', $_SERVER['DB_USER'], $_SERVER['DB_PASSWORD'], 'site', null, $_SERVER['DB_SOCKET']);
if ($_SERVER['REQUEST_METHOD'] === 'GET') {
    $at = (int) basename($_SERVER['PAGE']) % 100;
    for ($other = 1; $other < (int) ($_GET['statements'] ?? 0); ++$other) {
        $database->query('SELECT text FROM page WHERE id = ' . ($at + $other) % 100)->fetch_row();
    }
    echo $database->query("SELECT text FROM page WHERE id = $at")->fetch_row()[0];
    return;
}
header('Cache-Control: no-store');
[$first, $rows, $rate, $seconds] = [(int) $_GET['first'], (int) $_GET['rows'], (int) $_GET['rate'], (float) $_GET['seconds']];
$began = hrtime(true);
for ($done = 0; ($passed = (hrtime(true) - $began) / 1e9) < $seconds; ++$done) {
    $at = $first + $done % $rows;
    $database->query("UPDATE page SET written = written + 1 WHERE id = $at");
    usleep(max(0, (int) (($done / $rate - $passed) * 1e6)));
}
echo $done;
