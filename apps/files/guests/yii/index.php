<?php
/**
 * As Yii 2: a token in <meta name="csrf-token"> and in forms, masked anew for each page, in base64. Comments
 * and cart are sent by a script as JSON, comments with X-CSRF-Token and
 * the cart with the token in what is sent.
 */
require __DIR__ . '/../common.php';

class Yii extends Application
{
    protected string $field = '_csrf';
    protected array $has = ['comment', 'add', 'contact', 'register', 'login', 'search', 'cart'];
    protected array $language = ['post'];
    protected array $currency = ['get'];
    private string $masked = '';

    protected function begin(): void
    {
        $this->phpSession('advanced-frontend', 'nocache');
        $this->free[] = 'currency';
    }

    private function masked(): string
    {
        $mask = random_bytes(32);
        return $this->masked = $this->masked ?: strtr(base64_encode($mask . ($mask ^ md5($this->token()))), '+/', '-_');
    }

    protected function hidden(string $form): string
    {
        return input('_csrf', $this->secret($this->masked()));
    }

    protected function isRight(string $form): bool
    {
        $sent = base64_decode(strtr((string) ($_POST['_csrf'] ?? $_GET['_csrf'] ?? $_SERVER['HTTP_X_CSRF_TOKEN'] ?? $this->sent()['_csrf'] ?? ''), '-_', '+/'));
        return strlen($sent) === 64 && hash_equals(md5($this->token()), substr($sent, 0, 32) ^ substr($sent, 32));
    }

    protected function head(): string
    {
        return '<meta name="csrf-param" content="_csrf"><meta name="csrf-token" content="' . $this->secret($this->masked()) . '">';
    }

    protected function form(string $name, string $action, string $inputs, string $more = 'method="post"'): string
    {
        $of_script = ['comment' => 'data-json', 'add' => 'data-json="body"'][$name] ?? '';
        return $of_script ? parent::form($name, $action, $inputs, $of_script) : parent::form($name, $action, $inputs, $more);
    }

    protected function exit(): string
    {
        return a('logout', $this->with($this->address('logout'), '_csrf', $this->masked()), 'Log out');
    }
}

(new Yii())->run();
