<?php
/**
 * As MyBB: a session of its own in a table, whose cookie each answer to a new visitor gives, with cookies of times.
 * A guest's `my_post_key` is made of the browser's User-Agent and nothing of the session; it stands in each form and in links
 * (language, read marks).
 */
require __DIR__ . '/../common.php';

class MyBb extends Application
{
    protected string $field = 'my_post_key';
    protected array $has = ['comment', 'contact', 'register', 'login', 'search', 'poll'];

    protected function begin(): void
    {
        $this->ownSession('sid');
        if (!isset($_COOKIE['mybb']['lastvisit'])) {
            setcookie('mybb[lastvisit]', (string) time(), time() + 31536000, '/');
        }
        setcookie('mybb[lastactive]', (string) time(), time() + 31536000, '/');
    }

    protected function token(): string
    {
        return md5(($_SERVER['HTTP_USER_AGENT'] ?? '') . ($this->session['user'] ?? '') . 'encryption key');
    }

    protected function hidden(string $form): string
    {
        return input('my_post_key', $this->token());
    }

    protected function isRight(string $form): bool
    {
        return hash_equals($this->token(), (string) ($_POST['my_post_key'] ?? $_GET['my_post_key'] ?? ''));
    }

    protected function choice(string $address): string
    {
        return $this->with($address, 'my_post_key', $this->token());
    }

    // A member's is the same in each browser of a make.
    protected function exit(): string
    {
        return a('logout', $this->with($this->address('logout'), 'my_post_key', $this->token()), 'Log out');
    }

    protected function foot(): string
    {
        return a('read', $this->with('/misc.php?action=markread', 'my_post_key', $this->token()), 'Mark all read');
    }
}

(new MyBb())->run();
