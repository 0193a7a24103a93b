<?php
/**
 * As Backdrop with a module that begins a session for everybody (private): a `form_build_id` for each form, and a token in
 * base64 with its +, / and =, which forms, links and the settings of scripts spell each in their own way.
 */
require __DIR__ . '/../common.php';

class Backdrop extends Application
{
    protected string $field = 'form_token';
    protected array $language = ['post'];

    protected function begin(): void
    {
        $this->phpSession('SSESS' . md5(__DIR__), 'private');
    }

    protected function token(): string
    {
        // One that has all three of them.
        while (!preg_match('~\+.*/|/.*\+~', $this->session['token'] ?? '')) {
            $this->session['token'] = base64_encode(random_bytes(40));
        }
        return $this->session['token'];
    }

    protected function hidden(string $form): string
    {
        return input('form_build_id', 'form-' . base64_of_address(random_bytes(32))) . parent::hidden($form);
    }

    protected function head(): string
    {
        return '<script>window.Backdrop = {settings: ' . json_encode(['ajaxPageState' => ['token' => $this->token()]]) . '};</script>';
    }

    protected function foot(): string
    {
        return a('hide', $this->with($this->address('list'), 'token', $this->token()), 'Hide');
    }
}

(new Backdrop())->run();
