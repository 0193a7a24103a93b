<?php

declare(strict_types=1);

namespace Mayfly\Purge;

/**
 * A way to have something purged, other than by the response to the current request.
 */
interface Purger
{
    /**
     * When it returns, no answer that begins afterwards shows older data.
     *
     * @return int how many stored responses were named
     *
     * @throws PurgeFailed if the server was not reached or refuses
     */
    public function purge(Purge $purge): int;
}
