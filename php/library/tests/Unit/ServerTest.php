<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Server;
use PHPUnit\Framework\TestCase;

final class ServerTest extends TestCase
{
    /**
     * @return iterable<string, array{array<string, mixed>, bool, ?string, bool}>
     */
    public function params(): iterable
    {
        yield 'mayfly serve' => [['SERVER_SOFTWARE' => 'mayfly'], true, null, false];
        yield 'with rules of Apache' => [['SERVER_SOFTWARE' => 'mayfly (Apache/2.4 compatible)'], true, null, false];
        yield 'with a version' => [['SERVER_SOFTWARE' => 'Mayfly/0.1'], true, null, false];
        yield 'another server' => [['SERVER_SOFTWARE' => 'nginx/1.27'], false, null, false];
        yield 'another name' => [['SERVER_SOFTWARE' => 'mayflyer'], false, null, false];
        yield 'nothing' => [[], false, null, false];
        yield 'a mark' => [['SERVER_SOFTWARE' => 'nginx/1', 'MAYFLY_TAG_MARK' => 'm'], true, 'm', false];
        yield 'a param' => [['SERVER_SOFTWARE' => 'nginx/1', 'MAYFLY' => 'on'], true, null, false];
        yield 'a param that is off' => [['MAYFLY' => 'off'], false, null, false];
        yield 'fields of visitors' => [['HTTP_MAYFLY' => 'on', 'HTTP_SERVER_SOFTWARE' => 'mayfly'], false, null, false];
        $capability = 'mayfly="ESI/1.0"';
        yield 'fragments' => [
            ['SERVER_SOFTWARE' => 'mayfly', 'HTTP_SURROGATE_CAPABILITY' => $capability], true, null, true,
        ];
        yield 'a visitor cannot ask for fragments' => [['HTTP_SURROGATE_CAPABILITY' => $capability], false, null, false];
        yield 'no text' => [['SERVER_SOFTWARE' => ['mayfly'], 'MAYFLY' => 1], false, null, false];
    }

    /**
     * @dataProvider params
     *
     * @param array<string, mixed> $params
     */
    public function testTheServerIsKnownByItsParams(array $params, bool $isMayfly, ?string $mark, bool $parsesEsi): void
    {
        $server = Server::fromParams($params);
        self::assertSame([$isMayfly, $mark, $parsesEsi], [$server->isMayfly, $server->tagMark, $server->parsesEsi]);
    }
}
