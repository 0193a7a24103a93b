<?php
/**
 * As e107: PHP's session in files with PHP's own fields (nocache), long tokens with - and _ in forms and in attributes for
 * scripts, and how long the page took at its end.
 */
require __DIR__ . '/../common.php';

class E107 extends Application
{
    protected string $field = 'e-token';
    protected array $has = ['comment', 'contact', 'register', 'login', 'search', 'poll'];
    protected array $language = ['get', 'post'];
    protected array $free = ['search', 'language'];

    protected function begin(): void
    {
        $this->phpSession('SESSE107COOKIE', 'nocache');
    }

    protected function token(): string
    {
        return $this->session['token'] ??= base64_of_address(random_bytes(64));
    }

    protected function head(): string
    {
        return '<script>var e107 = {"token": "' . $this->secret($this->token()) . '"};</script>';
    }

    protected function foot(): string
    {
        $took = sprintf('%.4f', microtime(true) - $_SERVER['REQUEST_TIME_FLOAT']);
        return '<span class="e-rate" data-e-token="' . $this->token() . "\"></span>Render time: $took sec, " . date('H:i:s');
    }
}

(new E107())->run();
