<?php
/**
 * As Laravel: every answer gives the session's name and the token of scripts in cookies, sealed anew each time, and says
 * `no-cache, private`. Forms have the token in `_token`; comments and the cart are sent by a script, which reads the cookie
 * XSRF-TOKEN and sends it back in X-XSRF-TOKEN.
 */
require __DIR__ . '/../common.php';

class Laravel extends Application
{
    protected string $field = '_token';
    protected array $has = ['comment', 'add', 'contact', 'register', 'login', 'search', 'cart'];
    protected array $currency = ['post'];
    protected array $free = ['search', 'language'];

    protected function begin(): void
    {
        ob_start();
        header('Cache-Control: no-cache, private');
        $_COOKIE['laravel_session'] = $this->opened((string) ($_COOKIE['laravel_session'] ?? ''));
        $this->ownSession('laravel_session');
    }

    protected function end(): void
    {
        header_remove('Set-Cookie');
        setcookie('XSRF-TOKEN', $this->sealed($this->token()), ['expires' => time() + 7200, 'path' => '/', 'samesite' => 'Lax']);
        setcookie('laravel_session', $this->sealed($this->id), ['expires' => time() + 7200, 'path' => '/', 'httponly' => true, 'samesite' => 'Lax']);
        parent::end();
        ob_end_flush();
    }

    protected function isRight(string $form): bool
    {
        $in_field = $this->opened((string) ($_SERVER['HTTP_X_XSRF_TOKEN'] ?? ''));
        return parent::isRight($form) || ($in_field !== '' && hash_equals($this->session['token'] ?? '-', $in_field));
    }

    private function sealed(string $text): string
    {
        $nonce = random_bytes(12);
        $sealed = openssl_encrypt($text, 'aes-256-gcm', 'key of the application', OPENSSL_RAW_DATA, $nonce, $tag);
        return $this->secret(base64_encode(json_encode(['iv' => base64_encode($nonce), 'value' => base64_encode($sealed), 'tag' => base64_encode($tag)])));
    }

    private function opened(string $sealed): string
    {
        $parts = json_decode((string) base64_decode($sealed), true);
        if (!is_array($parts)) {
            return '';
        }
        [$nonce, $text, $tag] = array_map(base64_decode(...), [$parts['iv'], $parts['value'], $parts['tag']]);
        return (string) openssl_decrypt($text, 'aes-256-gcm', 'key of the application', OPENSSL_RAW_DATA, $nonce, $tag);
    }

    protected function head(): string
    {
        return '<script src="/axios.js"></script>';
    }

    protected function form(string $name, string $action, string $inputs, string $more = 'method="post"'): string
    {
        // Without the token, which the script takes from the cookie.
        $is_of_script = in_array($name, ['comment', 'add']);
        return $is_of_script ? "<form id=\"$name\" action=\"" . htmlspecialchars($action) . "\" data-json=\"xsrf\">$inputs</form>\n" : parent::form($name, $action, $inputs, $more);
    }
}

(new Laravel())->run();
