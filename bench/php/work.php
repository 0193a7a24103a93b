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

/** Text of so many bytes that gzip makes as small as it makes the HTML of a blog: to about a third. */
function words(int $bytes): string
{
    $text = '';
    $random = 7;
    while (strlen($text) < $bytes) {
        $random = ($random * 1103515245 + 12345) & 0x7fffffff;
        // Few words are frequent, most are rare, as in prose.
        $rank = (int) (exp(($random >> 8) % 1000 / 1000 * 7.5));
        $text .= ($random >> 20) % 12 === 0 ? "</p>\n<p class=\"entry\">" : '';
        $text .= substr(strtr(md5((string) $rank), '0123456789', 'ghijklmnop'), 0, 2 + $rank % 9) . ' ';
    }
    return $text;
}
