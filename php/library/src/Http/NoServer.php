<?php

declare(strict_types=1);

namespace Mayfly\Http;

/**
 * No server listens there.
 */
final class NoServer extends ExchangeFailed
{
}
