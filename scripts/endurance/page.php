<?php
// One page, or a fragment of one: which it is and which version of it, in each line.
[, , $page] = explode('/', $_SERVER['PAGE']);
$version = (int) file_get_contents($_SERVER['PLACE'] . "/versions/$page");
header("Cache-Tag: page-$page");
$line = "page $page version $version\n";
if ($page % 8 === 1) {
    // The fragment is the page before.
    header('Surrogate-Control: content="ESI/1.0"');
    echo $line, '<esi:include src="/page/', $page - 1, '"/>', $line;
    return;
}
usleep(random_int(0, 3000));
echo str_repeat($line, $page % 4 === 0 ? 600 : 3);
