<?php

declare(strict_types=1);

// A notice board: GET shows the notice, POST changes it. The page carries the tag "notice", and a change purges it:
// when the answer to the POST is there, no node shows the old notice.
$file = __DIR__ . '/../run/notice.txt';

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    file_put_contents("$file.new", (string) ($_POST['notice'] ?? ''));
    rename("$file.new", $file);
    header('X-Cache-Purge-Tags: notice');
    header('Cache-Control: no-store');
    header('Location: /', true, 303);
    exit;
}

header('X-Cache-Tags: notice');
$notice = htmlspecialchars((string) file_get_contents($file));
$made = (new DateTimeImmutable())->format('H:i:s.u');
?>
<!doctype html>
<title>Notice</title>
<p><?= $notice ?></p>
<form method="post"><input name="notice" required> <button>Change</button></form>
<footer>PHP made this page at <time><?= $made ?></time>.</footer>
