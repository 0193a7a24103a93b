<?php
/**
 * As PrestaShop: what a session holds is in the cookie itself, encrypted, other bytes whenever it is written. The guest's
 * token is in a script and in data attributes; the cart is filled by a form with it, and by a link with it.
 */
require __DIR__ . '/../common.php';

class PrestaShop extends Application
{
    protected array $has = ['add', 'contact', 'register', 'login', 'search', 'cart'];
    protected array $free = ['search', 'currency', 'language'];
    protected array $currency = ['get'];
    private string $before = '';

    protected function begin(): void
    {
        $this->session = $this->opened((string) ($_COOKIE['PrestaShop-7f3c'] ?? '')) ?: ['id_guest' => random_int(1, PHP_INT_MAX)];
        $this->token();
        $this->before = isset($_COOKIE['PrestaShop-7f3c']) ? json_encode($this->session) : '';
        ob_start();
    }

    protected function anew(): void
    {
        $this->session['id_guest'] = random_int(1, PHP_INT_MAX);
    }

    protected function end(): void
    {
        if (json_encode($this->session) !== $this->before) {
            $nonce = random_bytes(12);
            $sealed = openssl_encrypt(json_encode($this->session), 'aes-256-gcm', 'cookie key', OPENSSL_RAW_DATA, $nonce, $tag);
            setcookie('PrestaShop-7f3c', $this->secret(bin2hex($nonce . $tag . $sealed)), time() + 1728000, '/', '', false, true);
        }
        ob_end_flush();
    }

    private function opened(string $cookie): array
    {
        $bytes = ctype_xdigit($cookie) && strlen($cookie) % 2 === 0 ? hex2bin($cookie) : '';
        $text = strlen($bytes) < 28 ? '' : openssl_decrypt(substr($bytes, 28), 'aes-256-gcm', 'cookie key', OPENSSL_RAW_DATA, substr($bytes, 0, 12), substr($bytes, 12, 16));
        return json_decode((string) $text, true) ?: [];
    }

    protected function head(): string
    {
        return '<script>var prestashop = ' . json_encode(['static_token' => $this->secret($this->token()), 'cart' => []]) . ';</script>';
    }

    protected function adding(string $id): string
    {
        $link = $this->with($this->with($this->address('add', $id), 'qty', '1'), 'token', $this->token());
        return parent::adding($id) . a('add-link', $link, 'Add') . '<div data-token="' . $this->token() . "\"></div>\n";
    }
}

(new PrestaShop())->run();
