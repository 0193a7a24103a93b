<?php

declare(strict_types=1);

namespace Mayfly\Tests;

use Mayfly\Purge\Purge;
use Mayfly\Purge\PurgeFailed;
use Mayfly\Purge\Purger;

final class FakePurger implements Purger
{
    /** @var list<Purge> */
    public array $purges = [];

    public ?string $failure = null;

    public function purge(Purge $purge): int
    {
        if ($this->failure !== null) {
            throw new PurgeFailed($this->failure);
        }
        $this->purges[] = $purge;

        return 1;
    }
}
