<?php
// What PHP's curl gets from a server, as JSON. Usage: php_client.php 1|2 URL CERTIFICATE MB
[, $version, $url, $certificate, $megabytes] = $argv;

function handle(string $url, array $options = []): CurlHandle
{
    global $version, $certificate;
    $handle = curl_init($url);
    // In this order: what takes the body itself is an option that comes later.
    curl_setopt_array($handle, [
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_CAINFO => $certificate,
        CURLOPT_HTTP_VERSION => $version === '2' ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1,
        CURLOPT_PIPEWAIT => true,
    ]);
    curl_setopt_array($handle, $options);
    return $handle;
}

function ask(CurlHandle $handle): string
{
    $text = curl_exec($handle);
    if ($text === false) {
        fwrite(STDERR, curl_error($handle) . "\n");
        exit(1);
    }
    return $text;
}

$told = [];
$page = handle("$url/page");
$told['page'] = ask($page);
$told['version'] = curl_getinfo($page, CURLINFO_HTTP_VERSION) === CURL_HTTP_VERSION_2_0 ? 'HTTP/2' : 'HTTP/1.1';
$told['post'] = ask(handle("$url/echo", [CURLOPT_POSTFIELDS => 'said']));

$told['download'] = 0;
$count = function ($handle, $piece) use (&$told) {
    $told['download'] += strlen($piece);
    return strlen($piece);
};
ask(handle("$url/large", [CURLOPT_WRITEFUNCTION => $count]));

$left = $megabytes << 20;
$zeros = function ($handle, $file, $most) use (&$left) {
    $count = min($left, $most);
    $left -= $count;
    return str_repeat("\0", $count);
};
$told['upload'] = (int) ask(handle("$url/upload", [
    CURLOPT_UPLOAD => true,
    CURLOPT_CUSTOMREQUEST => 'POST',
    CURLOPT_INFILESIZE => $left,
    CURLOPT_READFUNCTION => $zeros,
    CURLOPT_HTTPHEADER => ['Expect:'],
]));

$all = curl_multi_init();
$handles = [];
for ($number = 0; $number < 200; $number++) {
    curl_multi_add_handle($all, $handles[] = handle("$url/page?$number"));
}
do {
    curl_multi_exec($all, $running);
    curl_multi_select($all);
} while ($running > 0);
$told['parallel'] = count(array_filter($handles, fn ($handle) => curl_multi_getcontent($handle) === 'page'));

// A handle of its own, which keeps its connection; the function ends each transfer.
$one = handle("$url/large");
for ($number = 0; $number < 20; $number++) {
    curl_setopt($one, CURLOPT_WRITEFUNCTION, fn ($handle, $piece) => 0);
    curl_exec($one);
}
curl_setopt_array($one, [CURLOPT_URL => "$url/page", CURLOPT_WRITEFUNCTION => null, CURLOPT_RETURNTRANSFER => true]);
$told['after_cancelling'] = ask($one);

$told['trailer'] = '';
$fields = function ($handle, $line) use (&$told) {
    if (stripos($line, 'x-sum:') === 0) {
        $told['trailer'] = trim(substr($line, 6));
    }
    return strlen($line);
};
ask(handle("$url/trailers", [CURLOPT_HEADERFUNCTION => $fields]));
echo json_encode($told), "\n";
