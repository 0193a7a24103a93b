<?php
/**
 * As OpenCart: a session of its own in a table (OCSESSID), cookies of language and currency with the same value for everybody,
 * a token for the login alone, which stands in the address of its form. The cart is filled by a script, without a token; pages have
 * the same bytes for all guests.
 */
require __DIR__ . '/../common.php';

class OpenCart extends Application
{
    protected array $has = ['add', 'contact', 'register', 'login', 'search', 'cart'];
    protected array $free = ['search', 'add', 'contact', 'register', 'language', 'currency'];
    protected array $language = ['post'];
    protected array $currency = ['post'];

    protected function begin(): void
    {
        $this->ownSession('OCSESSID');
        foreach (['language' => 'en-gb', 'currency' => 'USD'] as $name => $value) {
            if (!isset($_COOKIE[$name])) {
                setcookie($name, $value, time() + 2592000, '/');
            }
        }
        // The partner by whose link a guest came.
        if (isset($_GET['tracking'])) {
            setcookie('tracking', (string) $_GET['tracking'], time() + 2592000, '/');
        }
    }

    protected function address(string $page, int|string $id = ''): string
    {
        return "/index.php?route=$page" . ($id === '' ? '' : "&product_id=$id");
    }

    protected function route(): array
    {
        return [(string) ($_GET['route'] ?? 'front'), (string) ($_GET['product_id'] ?? '')];
    }

    // The token is in the address of the form, and new whenever the form is shown.
    protected function form(string $name, string $action, string $inputs, string $more = 'method="post"'): string
    {
        if ($name === 'login') {
            $this->session['login_token'] = $this->secret(bin2hex(random_bytes(13)));
            $action = $this->with($action, 'login_token', $this->session['login_token']);
        }
        return parent::form($name, $action, $inputs, $more);
    }

    protected function hidden(string $form): string
    {
        return '';
    }

    protected function isRight(string $form): bool
    {
        $token = $this->session['login_token'] ?? '';
        return $form === 'logout' || ($token !== '' && hash_equals($token, (string) ($_GET['login_token'] ?? '')));
    }

    protected function exit(): string
    {
        return a('logout', '/index.php?route=logout', 'Log out');
    }
}

(new OpenCart())->run();
