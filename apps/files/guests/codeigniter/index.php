<?php
/**
 * As CodeIgniter: the token is in a cookie and in each form, and both have to be the same; nothing of it is in the session. A
 * script that writes a comment asks for the token first, at an address of its own.
 */
require __DIR__ . '/../common.php';

class CodeIgniter extends Application
{
    protected string $field = 'csrf_test_name';
    protected array $has = ['comment', 'contact', 'register', 'login', 'search', 'poll'];
    protected array $language = ['post'];

    protected function begin(): void
    {
        $this->phpSession('ci_session', 'nocache');
        $given = $_COOKIE['csrf_cookie_name'] ?? '';
        $this->session['token'] = is_string($given) && preg_match('/^[0-9a-f]{32}$/', $given) ? $given : bin2hex(random_bytes(16));
        if ($given === '') {
            setcookie('csrf_cookie_name', $this->secret($this->session['token']), time() + 7200, '/');
        }
    }

    protected function isRight(string $form): bool
    {
        $sent = $_POST['csrf_test_name'] ?? $_GET['csrf_test_name'] ?? $this->sent()['csrf_test_name'] ?? '';
        return is_string($sent) && $sent !== '' && hash_equals((string) ($_COOKIE['csrf_cookie_name'] ?? ''), $sent);
    }

    protected function show(string $page, string $id): void
    {
        if ($page === 'token') {
            header('Content-Type: application/json');
            echo json_encode(['name' => 'csrf_test_name', 'token' => $this->secret($this->token())]);
            return;
        }
        parent::show($page, $id);
    }

    protected function form(string $name, string $action, string $inputs, string $more = 'method="post"'): string
    {
        if ($name === 'comment') {
            $token = htmlspecialchars($this->address('token'));
            return "<form id=\"comment\" action=\"" . htmlspecialchars($action) . "\" data-json=\"body\" data-token=\"$token\">$inputs</form>\n";
        }
        return parent::form($name, $action, $inputs, $more);
    }
}

(new CodeIgniter())->run();
