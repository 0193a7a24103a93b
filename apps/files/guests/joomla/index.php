<?php
/**
 * As Joomla: the token is the name of a field whose value is 1. PHP's session in a table (nocache); the contact form is
 * multipart, with a file before the token; addresses go through /index.php/.
 */
require __DIR__ . '/../common.php';

class Joomla extends Application
{
    protected array $has = ['comment', 'contact', 'register', 'login', 'search', 'poll'];
    protected array $language = ['post'];

    protected function begin(): void
    {
        $this->phpSession(md5(__DIR__), 'nocache', [], new TableSessions($this->db));
    }

    protected function address(string $page, int|string $id = ''): string
    {
        return "/index.php/$page" . ($id === '' ? '' : "/$id");
    }

    protected function route(): array
    {
        $parts = explode('/', strtok($_SERVER['REQUEST_URI'], '?'));
        return [$parts[2] ?? '' ?: 'front', $parts[3] ?? ''];
    }

    protected function hidden(string $form): string
    {
        return input($this->secret($this->token()), '1');
    }

    protected function isRight(string $form): bool
    {
        return ($_POST[$this->token()] ?? $_GET[$this->token()] ?? '') === '1';
    }

    protected function exit(): string
    {
        return a('logout', $this->with($this->address('logout'), $this->secret($this->token()), '1'), 'Log out');
    }

    protected function form(string $name, string $action, string $inputs, string $more = 'method="post"'): string
    {
        if ($name === 'contact') {
            $inputs .= '<input name="file" type="file">';
            $more .= ' enctype="multipart/form-data"';
        }
        return parent::form($name, $action, $inputs, $more);
    }

    protected function head(): string
    {
        return '<script type="application/json">' . json_encode(['csrf.token' => $this->secret($this->token()), 'system.paths' => ['root' => '']]) . '</script>';
    }
}

(new Joomla())->run();
