<?php
// The same of keys in a Redis, whose protocol is spoken here: no extension is needed.
function send($stream, ...$words)
{
    $text = '*' . count($words) . "\r\n";
    foreach ($words as $word) {
        $text .= '$' . strlen($word) . "\r\n$word\r\n";
    }
    fwrite($stream, $text);
}
function answer($stream)
{
    $line = fgets($stream);
    if ($line[0] === '*') {
        $list = [];
        for ($left = (int) substr($line, 1); $left > 0; $left--) {
            $list[] = answer($stream);
        }
        return $list;
    }
    return $line[0] === '$' ? rtrim(fgets($stream)) : rtrim(substr($line, 1));
}
function keys_of_redis()
{
    return stream_socket_client("tcp://127.0.0.1:{$_SERVER['KEYS_PORT']}");
}
function ask($stream, ...$words)
{
    send($stream, ...$words);
    return answer($stream);
}
$keys = keys_of_redis();
$key = "$table:$at";
$begun = hrtime(true);
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    header('Cache-Control: no-store');
    if ($_SERVER['QUERY_STRING'] === 'transaction') {
        ask($keys, 'MULTI');
        ask($keys, 'INCR', $key);
        usleep(random_int(0, 3000));
        ask($keys, 'EXEC');
    } elseif ($_SERVER['QUERY_STRING'] === 'die') {
        $before = ask($keys, 'GET', $key);
        send($keys, 'INCR', $key);
        for ($others = keys_of_redis(); ask($others, 'GET', $key) === $before; usleep(100));
        posix_kill(getmypid(), 9);
    } else {
        ask($keys, 'INCR', $key);
        header('X-Took: ' . intdiv(hrtime(true) - $begun, 1000));
    }
}
$version = ask($keys, 'GET', $key);
if ($_SERVER['REQUEST_METHOD'] === 'GET') {
    usleep(random_int(0, 20000));
}
echo "page $at version $version\n";
