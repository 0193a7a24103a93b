<?php

declare(strict_types=1);

namespace Mayfly\Http;

/**
 * One request with its answer. A library without dependencies brings its own, and an application can
 * put its HTTP client here.
 */
interface Exchange
{
    /**
     * @param string                $address `unix:///path`, `tcp://host:port` or `tls://host:port`
     * @param array<string, string> $fields
     *
     * @return array{int, string} status and body
     *
     * @throws ExchangeFailed if there is no whole answer
     */
    public function post(string $address, string $path, array $fields, string $body): array;
}
