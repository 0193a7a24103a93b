<?php

declare(strict_types=1);

namespace News;

function h(mixed $text): string
{
    return htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE | ENT_HTML5, 'UTF-8');
}

/** The time of day, with microseconds: two pages of the same one are the same page. */
function now(): string
{
    return (new \DateTimeImmutable())->format('H:i:s.u');
}
