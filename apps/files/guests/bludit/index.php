<?php
/**
 * As Bludit and small shops with a plug-in: PHP's session in files, without fields of PHP (session_cache_limiter('')). Only register and login have
 * a token (`tokenCSRF`). The comment form has the same bytes for everybody, and yet is taken only from who was shown it: the
 * session remembers when. The contact form asks for the word of a picture.
 */
require __DIR__ . '/../common.php';

class Bludit extends Application
{
    protected string $field = 'tokenCSRF';
    protected array $has = ['comment', 'add', 'contact', 'register', 'login', 'search', 'cart', 'captcha'];
    protected array $free = ['search', 'language', 'add'];

    protected function begin(): void
    {
        $this->phpSession('BLUDIT-KEY', '');
    }

    protected function hidden(string $form): string
    {
        return in_array($form, ['register', 'login']) ? parent::hidden($form) : '';
    }

    protected function isRight(string $form): bool
    {
        if ($form === 'comment') {
            return isset($this->session['form_time']);
        }
        if ($form === 'contact') {
            return $this->isWord();
        }
        return parent::isRight($form);
    }

    protected function show(string $page, string $id): void
    {
        if ($page === 'item') {
            $this->session['form_time'] = time();
        }
        parent::show($page, $id);
    }
}

(new Bludit())->run();
