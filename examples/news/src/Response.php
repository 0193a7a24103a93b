<?php

declare(strict_types=1);

namespace News;

final class Response
{
    /**
     * @param array<string, string> $fields
     */
    public function __construct(
        public readonly int $status,
        public readonly string $type,
        public readonly string $body,
        public readonly array $fields = [],
    ) {
    }

    public static function html(string $body, int $status = 200): self
    {
        return new self($status, 'text/html; charset=utf-8', $body);
    }

    /**
     * Back to a page, after something was written.
     *
     * @param array<string, string> $fields
     */
    public static function seeOther(string $path, array $fields = []): self
    {
        return new self(303, 'text/plain; charset=utf-8', '', ['Location' => $path] + $fields);
    }

    public function send(): void
    {
        http_response_code($this->status);
        header("Content-Type: $this->type");
        foreach ($this->fields as $name => $value) {
            header("$name: $value");
        }
        echo $this->body;
    }
}
