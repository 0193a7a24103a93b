<?php
/**
 * As Laravel and as many an application with accounts: `private, no-store` is the application's own word, so no page of it may be
 * shared, although a session like any other is begun.
 */
require __DIR__ . '/../common.php';

class Ledger extends Application
{
    protected string $field = '_token';
    protected array $free = ['search', 'language'];

    protected function begin(): void
    {
        $this->phpSession('ledger_session', '');
        header('Cache-Control: private, no-store');
    }
}

(new Ledger())->run();
