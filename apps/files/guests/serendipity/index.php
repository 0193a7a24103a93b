<?php
/**
 * As Serendipity: PHP's session in files (nocache), a token made of its name, the second at which the page was made, and
 * a picture of a word for the contact form, which the session remembers when the picture is asked for.
 */
require __DIR__ . '/../common.php';

class Serendipity extends Application
{
    protected string $field = 'serendipity[token]';
    protected array $has = ['comment', 'contact', 'register', 'login', 'search', 'captcha'];
    protected array $free = ['search', 'language'];

    protected function begin(): void
    {
        $this->phpSession('s9y_' . md5(__DIR__), 'nocache');
    }

    protected function token(): string
    {
        return md5(session_id());
    }

    protected function isRight(string $form): bool
    {
        $sent = $_POST['serendipity']['token'] ?? $_GET['serendipity']['token'] ?? '';
        return hash_equals($this->token(), (string) $sent) && ($form !== 'contact' || $this->isWord());
    }

    protected function foot(): string
    {
        return 'Made at ' . date('Y-m-d H:i:s');
    }
}

(new Serendipity())->run();
