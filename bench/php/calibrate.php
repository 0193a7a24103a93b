<?php
// php calibrate.php MILLISECONDS: how many rounds of work() cost that much CPU
// here. The median of nine, since the first is slow and the machine is noisy.

require __DIR__ . '/work.php';

$rounds = 100000;
$costs = [];
for ($try = 0; $try < 9; $try++) {
    $before = getrusage();
    work($rounds);
    $after = getrusage();
    $costs[] = ($after['ru_utime.tv_sec'] - $before['ru_utime.tv_sec']) * 1e6
        + $after['ru_utime.tv_usec'] - $before['ru_utime.tv_usec'];
}
sort($costs);
echo (int) round($rounds * $argv[1] * 1000 / max(1, $costs[4])), "\n";
