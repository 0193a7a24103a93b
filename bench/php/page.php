<?php
// The page under test. Its size comes as ?bytes=N, its lifetime as ?age=SECONDS,
// as many tags as ?tags=N, its cost as ?work=ROUNDS (with ?words its text compresses as prose does) or as a FastCGI parameter, its notebook as a parameter.
// It notes its start and its end itself, so nobody else needs to be believed about
// either. With a length, every server can keep its connection to PHP.

require __DIR__ . '/work.php';

$notebook = fopen($_SERVER['EXECUTIONS'] ?? '/dev/null', 'a');
fwrite($notebook, 'S ' . hrtime(true) . "\n");

work(min((int) ($_GET['work'] ?? $_SERVER['WORK_ROUNDS'] ?? 0), 100000000));

$bytes = min((int) ($_GET['bytes'] ?? 21504), 1 << 20);
$mark = sprintf('%010x', mt_rand(0, 0xffffffff));

header('Content-Type: text/html; charset=utf-8');
if (isset($_GET['age'])) {
    header('Cache-Control: public, max-age=' . (int) $_GET['age']);
    header('ETag: "a-page-of-the-benchmark"');
    header('Content-Length: ' . $bytes);
}
if (isset($_GET['tags'])) {
    header('Surrogate-Key: ' . implode(' ', range(1, (int) $_GET['tags'])));
}
$text = isset($_GET['words']) ? words($bytes) : 'a page of the benchmark; ';
// Both ends carry the same mark: a page put together from two shows it.
echo $bytes < 40 ? '' : str_pad($mark, $bytes - 10, $text), $bytes < 40 ? str_repeat('x', $bytes) : $mark;

fwrite($notebook, 'E ' . hrtime(true) . "\n");
