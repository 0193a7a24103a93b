<?php
/**
 * As Piwigo: PHP's session in a table, how long the page took at its end, and a comment form whose key is made of
 * the time, the visitor's address and the picture: it is good from two seconds after the page was made until an hour after it. The language is
 * chosen by the address of a page (`?language=de`).
 */
require __DIR__ . '/../common.php';

class Piwigo extends Application
{
    protected string $field = 'pwg_token';
    protected array $free = ['search', 'language'];
    protected array $has = ['comment', 'register', 'login', 'search', 'contact'];

    protected function begin(): void
    {
        $this->phpSession('pwg_id', 'nocache', [], new TableSessions($this->db));
        $this->remember('language');
    }

    protected function token(): string
    {
        return hash_hmac('md5', session_id(), 'secret key');
    }

    protected function choice(string $address): string
    {
        parse_str(parse_url($address, PHP_URL_QUERY), $chosen);
        return $this->with($this->address('front'), 'language', $chosen['to']);
    }

    private function key(float $time): string
    {
        $made = sprintf('%.1f', $time);
        return "$made:2:" . hash_hmac('md5', "$made{$_SERVER['REMOTE_ADDR']}2{$this->route()[1]}", 'secret key');
    }

    protected function hidden(string $form): string
    {
        return $form === 'comment' ? input('key', $this->secret($this->key(microtime(true)))) : input('pwg_token', $this->secret($this->token()));
    }

    protected function isRight(string $form): bool
    {
        $sent = (string) ($_POST['key'] ?? '');
        $age = microtime(true) - (float) $sent;
        if ($form === 'comment') {
            return $age > 2 && $age < 3600 && hash_equals($this->key((float) $sent), $sent);
        }
        return hash_equals($this->token(), (string) ($_POST['pwg_token'] ?? $_GET['pwg_token'] ?? ''));
    }

    protected function foot(): string
    {
        return sprintf('Page generated in %.3f seconds.', microtime(true) - $_SERVER['REQUEST_TIME_FLOAT']);
    }
}

(new Piwigo())->run();
