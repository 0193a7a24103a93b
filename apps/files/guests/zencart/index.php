<?php
/**
 * As Zen Cart and osCommerce: visitors without a cookie have the session's name in their links (PHP's trans-sid), forms have a
 * `securityToken`, the cart is filled by a form, or by a link without a token; the currency is chosen by the address of a
 * page, and a partner's link is remembered until the guest registers.
 */
require __DIR__ . '/../common.php';

class ZenCart extends Application
{
    protected string $field = 'securityToken';
    protected array $has = ['add', 'contact', 'register', 'login', 'search', 'cart'];
    protected array $currency = ['get'];
    protected array $free = ['search', 'language', 'currency'];

    protected function begin(): void
    {
        $this->phpSession('zenid', 'nocache', ['use_only_cookies' => 0, 'use_trans_sid' => 1]);
        $this->remember('currency');
        // The partner by whose link a guest came.
        $this->session['ref'] ??= $_GET['ref'] ?? '';
    }

    protected function insert(string $table, array $values): void
    {
        if ($table === 'users' && $this->session['ref'] !== '') {
            $values[0] .= ' by ' . $this->session['ref'];
        }
        parent::insert($table, $values);
    }

    protected function choice(string $address): string
    {
        parse_str(parse_url($address, PHP_URL_QUERY), $chosen);
        return $chosen['page'] === 'currency' ? $this->with($this->address('front'), 'currency', $chosen['to']) : $address;
    }

    protected function isRight(string $form): bool
    {
        return ($form === 'add' && $_SERVER['REQUEST_METHOD'] === 'GET') || parent::isRight($form);
    }

    protected function adding(string $id): string
    {
        return $this->form('add', $this->address('add'), input('item', $id)) . a('add-link', $this->address('add', $id), 'Buy now');
    }
}

(new ZenCart())->run();
