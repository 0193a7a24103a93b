<?php

declare(strict_types=1);

namespace Mayfly\WordPress;

use Mayfly\Changes;

/**
 * What this request has changed. Each change is also one of all that are of its kind, for pages with too
 * many tags, and one of the site.
 */
final class ChangedTags
{
    public function __construct(private readonly TagNames $names, private readonly Changes $changes)
    {
    }

    public function add(string ...$names): void
    {
        foreach ($names as $name) {
            $full = $this->names->full($name);
            $this->changes->add($full);
            if ($name !== TagNames::SITE) {
                $this->changes->add(TagNames::allOf($full));
            }
        }
    }
}
