<?php
/** Work of a fixed amount: hashing, as much of it as there are rounds. */
function work(int $rounds): string
{
    $state = '';
    for ($round = 0; $round < $rounds; $round++) {
        $state = md5($state . $round, true);
    }
    return $state;
}
