<?php
/**
 * A small site that does what Laravel's `web` middleware does, without its
 * packages: an encrypted session cookie and XSRF-TOKEN on every response, a
 * token on every form, messages shown once, the visitor's language from
 * Accept-Language until one is chosen, `Cache-Control: no-cache, private`. The
 * pages below /open/ are outside of that middleware and say that they are public;
 * X-Run names the run of PHP that made them. /open/draw differs each time.
 */
const COOKIE = 'laravel_session';
const PASSWORDS = ['alice' => 'wonderland', 'bob' => 'builder'];
const WORDS = ['en' => 'Welcome', 'de' => 'Willkommen', 'fr' => 'Bienvenue'];

$path = strtok($_SERVER['REQUEST_URI'], '?');
if (str_starts_with($path, '/open/')) {
    header('Cache-Control: public, max-age=60');
    header('X-Run: ' . ($run = bin2hex(random_bytes(8))));
    page($path === '/open/draw' ? ['drawn' => $run] : ['price' => 12]);
}

$storage = dirname(__DIR__) . '/storage';
$key = file_get_contents("$storage/key");
$id = unseal($_COOKIE[COOKIE] ?? '', $key);
$is_known = preg_match('/^[0-9a-f]{40}$/', $id) && is_file("$storage/sessions/$id");
if (!$is_known) {
    $id = bin2hex(random_bytes(20));
}
$session = $is_known ? json_decode(file_get_contents("$storage/sessions/$id"), true) : ['token' => bin2hex(random_bytes(20))];

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $token = $_POST['_token'] ?? unseal(urldecode($_SERVER['HTTP_X_XSRF_TOKEN'] ?? ''), $key);
    if (!is_string($token) || !hash_equals($session['token'], $token)) {
        http_response_code(419);
        finish(['error' => 'Page Expired']);
    }
    if ($path === '/login') {
        $user = $_POST['user'] ?? '';
        $is_right = isset(PASSWORDS[$user]) && hash_equals(PASSWORDS[$user], $_POST['password'] ?? '');
        $session['flash'] = $is_right ? "Hello $user." : 'These credentials do not match our records.';
        if ($is_right) {
            // A new name and token for a session that is worth something.
            @unlink("$storage/sessions/$id");
            $id = bin2hex(random_bytes(20));
            $session = ['token' => bin2hex(random_bytes(20)), 'user' => $user] + $session;
        }
    } elseif ($path === '/note') {
        $session['flash'] = 'Saved: ' . ($_POST['note'] ?? '');
    } elseif ($path === '/locale') {
        $session['locale'] = $_POST['locale'] ?? 'en';
    } elseif ($path === '/logout') {
        @unlink("$storage/sessions/$id");
        $id = bin2hex(random_bytes(20));
        $session = ['token' => bin2hex(random_bytes(20))];
    }
    header('Location: /', true, 302);
    finish([]);
}

$flash = $session['flash'] ?? null;
unset($session['flash']);
finish([
    'session' => hash('sha256', $id),
    'token' => $session['token'],
    'user' => $session['user'] ?? null,
    'flash' => $flash,
    'greeting' => WORDS[$session['locale'] ?? preferred()] ?? WORDS['en'],
]);

// Keeps the session, sends both cookies, ends.
function finish($facts) {
    global $storage, $key, $id, $session;
    file_put_contents("$storage/sessions/$id", json_encode($session), LOCK_EX);
    $expires = time() + 7200;
    setcookie(COOKIE, seal($id, $key), ['expires' => $expires, 'path' => '/', 'httponly' => true, 'samesite' => 'Lax']);
    setcookie('XSRF-TOKEN', seal($session['token'], $key), ['expires' => $expires, 'path' => '/', 'samesite' => 'Lax']);
    header('Cache-Control: no-cache, private');
    page($facts);
}

function page($facts) {
    header('Content-Type: text/html; charset=utf-8');
    echo "<!doctype html>\n<html><body><script type=\"application/json\">", json_encode($facts, JSON_HEX_TAG), "</script></body></html>\n";
    exit;
}

// Other bytes each time, as Laravel's: only the key tells that two are alike.
function seal($text, $key) {
    $iv = random_bytes(12);
    $sealed = openssl_encrypt($text, 'aes-256-gcm', $key, OPENSSL_RAW_DATA, $iv, $tag);
    return base64_encode($iv . $tag . $sealed);
}

function unseal($text, $key) {
    $bytes = is_string($text) ? base64_decode($text) : '';
    if (strlen($bytes) < 28) {
        return '';
    }
    return (string) openssl_decrypt(substr($bytes, 28), 'aes-256-gcm', $key, OPENSSL_RAW_DATA, substr($bytes, 0, 12), substr($bytes, 12, 16));
}

// The first language of Accept-Language that the site has.
function preferred() {
    foreach (explode(',', $_SERVER['HTTP_ACCEPT_LANGUAGE'] ?? '') as $language) {
        $language = strtolower(substr(trim($language), 0, 2));
        if (isset(WORDS[$language])) {
            return $language;
        }
    }
    return 'en';
}
