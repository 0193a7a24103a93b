<?php
/**
 * As Drupal 7: guests have no session until something is to be remembered (a message, a language), and the fields of each
 * page are Drupal's own, with an Expires of 1978. Each form has a `form_build_id` that is new with each view and known to a
 * table until the form was sent.
 */
require __DIR__ . '/../common.php';

class Drupal extends Application
{
    protected string $query = 'keys';
    protected array $has = ['comment', 'contact', 'register', 'login', 'search', 'poll'];

    protected function begin(): void
    {
        header('Expires: Sun, 19 Nov 1978 05:00:00 GMT');
        header('Cache-Control: no-cache, must-revalidate');
        header('X-Generator: Drupal 7');
        if (isset($_COOKIE['SESS' . md5(__DIR__)]) || $this->isWrite($this->route()[0])) {
            $this->phpSession('SESS' . md5(__DIR__), '', [], new TableSessions($this->db));
        }
    }

    protected function address(string $page, int|string $id = ''): string
    {
        return $id === '' ? "/index.php?q=$page" : "/index.php?q=$page/$id";
    }

    protected function route(): array
    {
        [$page, $id] = explode('/', ($_GET['q'] ?? 'front') . '/');
        return [$page, $id];
    }

    protected function hidden(string $form): string
    {
        $id = 'form-' . base64_of_address(random_bytes(32));
        $this->insert('forms', [$id, $form]);
        return input('form_build_id', $this->secret($id)) . input('form_id', "{$form}_form");
    }

    protected function isRight(string $form): bool
    {
        if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
            return $form !== 'logout' || hash_equals($this->session['token'] ?? '-', (string) ($_GET['token'] ?? ''));
        }
        $taken = $this->db->prepare('DELETE FROM forms WHERE id = ? AND form = ?');
        $taken->execute([(string) ($_POST['form_build_id'] ?? ''), $form]);
        return $taken->rowCount() === 1;
    }
}

(new Drupal())->run();
