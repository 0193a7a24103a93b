<?php
/**
 * As SMF: PHP's session in a table, a token whose field has a random name of the session's own, and the session's name in the
 * links of visitors without its cookie. (SMF itself can send `Cache-Control: private`; here PHP's own fields stay.)
 */
require __DIR__ . '/../common.php';

class Smf extends Application
{
    protected array $has = ['comment', 'register', 'login', 'search', 'poll', 'contact'];

    protected function begin(): void
    {
        // Who has no cookie yet may follow a link with the session's name in it.
        $this->phpSession('PHPSESSID', 'nocache', ['use_only_cookies' => 0], new TableSessions($this->db));
        $this->session['var'] ??= chr(random_int(97, 102)) . bin2hex(random_bytes(random_int(3, 5)));
        $this->token();
    }

    protected function hidden(string $form): string
    {
        return input($this->session['var'], $this->secret($this->token()));
    }

    protected function isRight(string $form): bool
    {
        $sent = $_POST[$this->session['var']] ?? $_GET[$this->session['var']] ?? '';
        return is_string($sent) && hash_equals($this->token(), $sent);
    }

    protected function address(string $page, int|string $id = ''): string
    {
        $address = '/index.php?action=' . $page . ($id === '' ? '' : ";topic=$id.0");
        return isset($_COOKIE['PHPSESSID']) ? $address : str_replace('?', '?PHPSESSID=' . session_id() . '&', $address);
    }

    protected function route(): array
    {
        [$page, $topic] = explode(';topic=', ($_GET['action'] ?? 'front') . ';topic=');
        return [$page, (string) (int) $topic ?: ''];
    }

    protected function exit(): string
    {
        return a('logout', $this->with($this->address('logout'), $this->session['var'], $this->secret($this->token())), 'Log out');
    }

    protected function choice(string $address): string
    {
        return $this->with($address, $this->session['var'], $this->secret($this->token()));
    }

    protected function foot(): string
    {
        return '<script>var smf_session_id = "' . $this->secret($this->token()) . '", smf_session_var = "' . $this->session['var'] . '", smf_time = ' . time() . ';</script>';
    }
}

(new Smf())->run();
