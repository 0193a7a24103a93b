<?php

declare(strict_types=1);

namespace Mayfly\Tests;

use Mayfly\Http\Exchange;

final class FakeExchange implements Exchange
{
    /** @var list<array{string, string, array<string, string>, string}> */
    public array $requests = [];

    public function __construct(private readonly int $status, private readonly string $answer)
    {
    }

    public function post(string $address, string $path, array $fields, string $body): array
    {
        $this->requests[] = [$address, $path, $fields, $body];

        return [$this->status, $this->answer];
    }
}
