<?php
/**
 * As Magento 2: PHP's session in Redis, locked while a page is made, and fields of its own that say of each page that it is not
 * to be kept. Forms have one `form_key` for the session, which is a cookie besides; currency and cart change by forms. A message is in
 * the session until a page shows it.
 */
require __DIR__ . '/../common.php';

class Magento extends Application
{
    protected string $field = 'form_key';
    protected array $has = ['comment', 'add', 'contact', 'register', 'login', 'search', 'cart'];
    protected array $language = ['get'];
    protected array $currency = ['post'];

    protected function begin(): void
    {
        $this->phpSession('PHPSESSID', '', [], new RedisSessions("$this->data/redis.sock"));
        $this->free[] = 'language';
        header('Pragma: no-cache');
        header('Cache-Control: max-age=0, must-revalidate, no-cache, no-store');
        header('Expires: ' . gmdate('D, d M Y H:i:s', time() - 31536000) . ' GMT');
    }

    protected function address(string $page, int|string $id = ''): string
    {
        return "/index.php/$page/view/" . ($id === '' ? '' : "id/$id/");
    }

    protected function route(): array
    {
        $parts = explode('/', strtok($_SERVER['REQUEST_URI'], '?'));
        return [$parts[2] ?? '' ?: 'front', $parts[5] ?? ''];
    }

    protected function token(): string
    {
        return $this->session['token'] ??= substr(strtr(base64_encode(random_bytes(24)), '+/', 'xy'), 0, 16);
    }

    protected function exit(): string
    {
        return a('logout', $this->with($this->address('logout'), 'form_key', $this->secret($this->token())), 'Log out');
    }
}

(new Magento())->run();
