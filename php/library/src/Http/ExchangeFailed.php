<?php

declare(strict_types=1);

namespace Mayfly\Http;

/**
 * A request got no whole answer.
 */
class ExchangeFailed extends \RuntimeException
{
}
