<?php
// The page under test. Its cost and its notebook come as FastCGI parameters
// from the server's configuration, its size as ?bytes=N. It notes its start and
// its end itself, so nobody else needs to be believed about either.

require __DIR__ . '/work.php';

$notebook = fopen($_SERVER['EXECUTIONS'], 'a');
fwrite($notebook, 'S ' . hrtime(true) . "\n");

work((int) $_SERVER['WORK_ROUNDS']);

$bytes = min((int) ($_GET['bytes'] ?? 21504), 1 << 20);
$mark = sprintf('%010x', mt_rand(0, 0xffffffff));

header('Content-Type: text/html; charset=utf-8');
// Both ends carry the same mark: a page put together from two shows it.
echo $bytes < 40 ? '' : str_pad($mark, $bytes - 10, 'a page of the benchmark; '), $bytes < 40 ? str_repeat('x', $bytes) : $mark;

fwrite($notebook, 'E ' . hrtime(true) . "\n");
