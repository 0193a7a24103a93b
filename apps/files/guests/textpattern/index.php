<?php
/**
 * As Textpattern with a plug-in that begins a session (private_no_expire): its comments are shown once before they are
 * stored, and the form that stores them has a nonce of a table. How long the page took is in a comment at its end.
 */
require __DIR__ . '/../common.php';

class Textpattern extends Application
{
    protected string $field = 'nonce';
    protected array $free = ['search', 'language', 'comment', 'contact', 'submit'];
    protected array $has = ['comment', 'contact', 'search', 'register', 'login'];
    protected array $language = ['post'];

    protected function begin(): void
    {
        $this->phpSession('txp_session', 'private_no_expire');
    }

    protected function write(string $page, string $id): void
    {
        if ($page !== 'comment') {
            parent::write($page, $id);
        } elseif (!isset($_POST['nonce'])) {
            $nonce = $this->secret(md5(random_bytes(16)));
            $this->insert('forms', [$nonce, 'comment']);
            $text = (string) ($_POST['text'] ?? '');
            $inputs = input('text', $text) . input('nonce', $nonce);
            echo "<!doctype html>\n<html><body>", p('shown', $text), $this->form('submit', $this->address('comment', $id), $inputs), "</body></html>\n";
        } else {
            $taken = $this->db->prepare('DELETE FROM forms WHERE id = ?');
            $taken->execute([$_POST['nonce']]);
            $taken->rowCount() ? parent::write($page, $id) : $this->refuse();
        }
    }

    protected function foot(): string
    {
        return sprintf('<!-- Runtime: %.6f -->', microtime(true) - $_SERVER['REQUEST_TIME_FLOAT']);
    }
}

(new Textpattern())->run();
