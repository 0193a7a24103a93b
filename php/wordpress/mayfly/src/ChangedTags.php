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
    /**
     * @param Counters|null $counters where somebody looks at a page: what is written then may be a count of views
     */
    public function __construct(
        private readonly TagNames $names,
        private readonly Changes $changes,
        private readonly ?Counters $counters = null,
    ) {
    }

    public function add(string ...$names): void
    {
        $this->changes->add(...$this->full($names));
    }

    /**
     * What may also be written by looking at a page.
     *
     * @param string $what is written, in the words of `Counters`
     */
    public function addWritten(string $what, string ...$names): void
    {
        if ($this->counters === null) {
            $this->add(...$names);
        } else {
            $this->counters->wrote($what, ...$this->full($names));
        }
    }

    /**
     * @param array<string> $names
     *
     * @return list<string>
     */
    private function full(array $names): array
    {
        $all = [];
        foreach ($names as $name) {
            $full = $this->names->full($name);
            $all[] = $full;
            if ($name !== TagNames::SITE) {
                $all[] = TagNames::allOf($full);
            }
        }

        return $all;
    }
}
