<?php

declare(strict_types=1);

namespace Mayfly\Psr;

use Mayfly\ResponseHead;
use Psr\Http\Message\ResponseInterface;

/**
 * Fields that are kept until there is a response to carry them.
 */
final class CollectedHead implements ResponseHead
{
    /** @var array<string, list<string>> */
    private array $fields = [];

    public function isOpen(): bool
    {
        return true;
    }

    public function add(string $name, string $value, bool $replace = false): void
    {
        $this->fields[$name] = $replace ? [$value] : [...$this->fields[$name] ?? [], $value];
    }

    /**
     * A field that the application has given the response itself is replaced only if it says how long
     * the page may be kept; what else is named is added to it.
     */
    public function onto(ResponseInterface $response): ResponseInterface
    {
        foreach ($this->fields as $name => $values) {
            $isLifetime = in_array($name, ['Cache-Control', 'X-Accel-Expires'], true);
            $response = $isLifetime ? $response->withHeader($name, $values) : $response->withAddedHeader($name, $values);
        }

        return $response;
    }
}
