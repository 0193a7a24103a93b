<?php

declare(strict_types=1);

namespace Mayfly\Purge;

/**
 * Nobody has answered that a purge is done.
 */
final class PurgeFailed extends \RuntimeException
{
}
